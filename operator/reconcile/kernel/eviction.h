// An eviction of one rank's pod asks for the rank to leave its node: what it is answered, and the RankMigration that it makes.
//
//   is the pod that runs the rank now, and its job keeps evictions off (drain.h)?
//     no  ─> allowed: what becomes of it is the PodDisruptionBudget's affair, as if nobody had been asked
//     yes ─> 429, which drains and deschedulers try again ─┬ it is on its way, or was rolled back just now: no more than that
//                                                          └ else a RankMigration to any other node
//
// Today the question is the AdmissionReview of a webhook on pods/eviction; whoever asks otherwise needs answer_eviction() only.
// Pure.
#pragma once

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "crds/rankmigration.h"

namespace bsp::reconcile {

struct EvictionReview {
  std::string uid;  // of the review
  std::string name_space, pod;
  std::string pod_uid;   // the eviction is of no other; "": of any
  bool dry_run = false;  // asked for in the request or in the eviction itself
};
// Reads an AdmissionReview (admission.k8s.io/v1). kInvalid, with the field's path.
Result<EvictionReview> eviction_review_from(const std::string& text);
inline constexpr std::size_t kReviewBytes = 128 << 10;  // an Eviction, and who asks; anything larger is refused

// Objects as the API server has them; null: there is none.
struct EvictionFacts {
  nlohmann::json pod;
  nlohmann::json job;                      // named by the pod's owner reference
  nlohmann::json budget;                   // its PodDisruptionBudget
  nlohmann::json node;                     // the pod's
  std::vector<nlohmann::json> migrations;  // RankMigrations of the job
  Time now{};
};

struct EvictionAnswer {
  bool allowed = true;
  std::string message;                   // why it is or isn't
  std::vector<crds::RankMigration> ask;  // to be created; in a dry run too they are what would be
};
EvictionAnswer answer_eviction(const EvictionReview& review, const EvictionFacts& facts);

// The AdmissionReview that answers.
nlohmann::json to_review(const EvictionReview& review, const EvictionAnswer& answer);

}  // namespace bsp::reconcile
