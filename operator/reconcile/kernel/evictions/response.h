// Evictions that the API server keeps (lifecycle.k8s.io, of EvictionRequests): a rank's pod names the operator as its responder, and
// the operator says in the Eviction's status how far it is.
//
//   Active   ─> the rank is asked to leave, as by the webhook (eviction.h); a heartbeat as long as its pod is kept
//            └> completed once the pod goes, or its job keeps evictions off no longer: the next responder evicts what is left
//   Canceled ─> all requesters have withdrawn: the RankMigrations of this Eviction are deleted, and the rank stays
//
// The API server's controller chooses the state, from all requesters. It passes an Active responder over after 20 minutes
// without a heartbeat, wants none more often than every 20 s, and refuses times that are not the present. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

#include "crds/names.h"
#include "operator/reconcile/kernel/eviction.h"

namespace bsp::reconcile {

inline const std::string kResponder = std::string(names::kGroup) + "/operator";
// On a RankMigration: the uid of the Eviction that asked for it.
inline const std::string kLabelEviction = std::string(names::kGroup) + "/eviction";

// Names the operator in a pod that is to be created, beside the responders that the template names. A pod of a PodGroup
// (spec.schedulingGroup) may have none, and no pod more than ten.
void name_responder(nlohmann::json& pod);

enum class ResponderState {
  kNone,      // the operator is no responder of it, or is not yet to act
  kActive,    // it is to act
  kCanceled,  // nobody wants the eviction any longer
  kOver       // it was passed over, or has completed
};
// `eviction`: as the API server has it; anything else is kNone.
ResponderState responder_state(const nlohmann::json& eviction);
// The pod that is to go; its uid in pod_uid. Its names are "" where the Eviction names no pod.
EvictionReview review_of(const nlohmann::json& eviction);

// The operator is done with this pod: it goes or is gone, or its job keeps evictions off no longer.
bool is_done(const EvictionReview& review, const EvictionFacts& facts);
// Why, for people.
std::string message_of(const EvictionAnswer& answer, bool done);
// Writes that into the operator's part of an Active Eviction's status. False if there is nothing to write now.
bool respond(nlohmann::json& eviction, bool done, const std::string& message, Time now);

}  // namespace bsp::reconcile
