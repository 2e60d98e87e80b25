// What the operator requests: to create a pod, to delete it, or a verb of its sidecar (crds/wire.h). An action may be carried
// out twice.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "crds/requests.h"
#include "crds/seat.h"
#include "crds/wire.h"
#include "operator/migrate/wave.h"

namespace bsp::migrate {

enum class ActionKind {
  kCreateTargetPod,
  kDeletePod,
  kPrepareEpoch,  // {epoch}: the wave's or the rollback's plan
  kOpenEpoch,     // {epoch}
  kReceive,       // and restore what arrives
  kArmGate,       // {superstep}
  kCommitGate,    // {superstep}; with a move: its source sends its checkpoint as soon as it has stopped there
  kCancelGate,    // {superstep} of the gate to cancel
  kSend,
  kRestore,
  kDiscard,
  kSave,      // for the checkpoint set of the wave
  kLoad,      // and restore what is loaded; of a job that starts from a set
  kKeepSets,  // and remove the others from the storage
  kKill,      // of a source whose pod has other ranks
};
std::string_view to_string(ActionKind kind);  // of one for a sidecar: the verb

struct Action {
  using Fields = std::shared_ptr<const nlohmann::json>;
  using Plan = std::shared_ptr<const wire::EpochPlan>;

  ActionKind kind = ActionKind::kDeletePod;
  Seat seat;                                        // of one that concerns the pod: any of its seats
  std::uint64_t number = 0;                         // epoch or superstep
  std::optional<std::size_t> move = std::nullopt;   // index into Wave::moves
  Fields fields = nullptr;                          // of the verb; null for pods and for prepareEpoch
  Plan plan = nullptr;                              // of prepareEpoch: large, and the same for all pods
  std::optional<wire::Token> token = std::nullopt;  // of the stored state that the verb follows from; not set: of none

  // The verb's fields, also of prepareEpoch, with the token.
  [[nodiscard]] Fields encoded() const;

  static Action prepare_epoch(Seat seat, Plan plan);
  static Action open_epoch(Seat seat, std::uint64_t epoch);
  static Action arm_gate(Seat seat, std::uint64_t superstep);
  static Action commit_gate(Seat seat, std::uint64_t superstep);
  static Action commit_gate_and_send(std::uint64_t superstep, const Wave& wave, std::size_t move);
  static Action commit_gate_and_save(Seat seat, std::uint64_t superstep, const Wave& wave);
  static Action cancel_gate(Seat seat, std::uint64_t superstep);
  static Action receive(const Wave& wave, std::size_t move);
  static Action send(const Wave& wave, std::size_t move);
  static Action restore(const Wave& wave, std::size_t move);
  static Action kill(Seat seat, std::size_t move);
  static Action discard(Seat seat, const Wave& wave, std::size_t move);
  // Without the set's key, which whoever sends them adds (with_key).
  static Action save(Seat seat, const Wave& wave);
  static Action load(Seat seat, const wire::LoadRequest& image);
  static Action keep_sets(Seat seat, const wire::KeepSetsRequest& sets);  // its pod's sidecar does
  // The set whose key it needs; nullopt: none.
  struct NeededKey {
    std::uint64_t set = 0;
    std::string of_job;  // uid of another job, whose set it is; "": the job's own
    std::string grant;
  };
  [[nodiscard]] std::optional<NeededKey> needs_key() const;
  [[nodiscard]] Action with_key(std::string key) const;
};

// The fields of a verb, as they are sent.
nlohmann::json with_token(nlohmann::json fields, const std::optional<wire::Token>& token);

}  // namespace bsp::migrate
