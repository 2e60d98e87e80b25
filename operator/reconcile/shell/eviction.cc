#include "operator/reconcile/shell/eviction.h"

#include <utility>

#include "base/core/log.h"
#include "crds/names.h"
#include "operator/kinds.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/capacity/stores/owner.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

Result<json> there_or_null(Result<kube::Object> got) {
  if (got) return std::move(*got);
  if (got.error().code == ErrorCode::kNotFound) return json();
  return std::unexpected(got.error());
}

}  // namespace

Result<EvictionFacts> facts_of(kube::Client& client, const EvictionReview& review) {
  EvictionFacts facts;
  facts.now = SystemClock::now();
  BSP_TRY(facts.pod, there_or_null(client.get({kPod, review.name_space, review.pod})));
  const JobOwner owner = owner_of(facts.pod);
  if (owner.name.empty()) return facts;
  const std::string node = text_at(part_at(facts.pod, "spec"), "nodeName");
  const std::string budget = name_of_job({owner.name, owner.uid});
  BSP_TRY(facts.job, there_or_null(client.get({kBspJob, review.name_space, owner.name})));
  BSP_TRY(facts.budget, there_or_null(client.get({kDisruptionBudget, review.name_space, budget})));
  if (!node.empty()) {
    BSP_TRY(facts.node, there_or_null(client.get({kNode, "", node})));
  }
  BSP_TRY(facts.migrations,
          client.list(kRankMigration, review.name_space, {{std::string(names::kLabelJob), owner.name}}));
  return facts;
}

Result<EvictionAnswer> evict(kube::Client& client, const EvictionReview& review) {
  BSP_TRY(const EvictionFacts facts, facts_of(client, review));
  EvictionAnswer answer = answer_eviction(review, facts);
  if (!review.dry_run) BSP_CHECK_OK(ask_to_leave(client, review, answer));
  return answer;
}

Result<void> ask_to_leave(kube::Client& client, const EvictionReview& review, const EvictionAnswer& answer,
                          const std::map<std::string, std::string>& labels) {
  const std::string pod = review.name_space + "/" + review.pod;
  for (const crds::RankMigration& ask : answer.ask) {
    json object;
    to_json(object, ask);
    object.erase("status");
    for (const auto& [label, value] : labels) object["metadata"]["labels"][label] = value;
    const auto created = client.create(object);
    // kConflict: an eviction at the same moment has asked already.
    if (!created && created.error().code != ErrorCode::kConflict) {
      log_warning("an eviction could not be answered by a migration",
                  {{"pod", pod}, {"error", created.error().message}});
      return std::unexpected(created.error());
    }
    log_info("an eviction asks a rank to move", {{"pod", pod}, {"migration", ask.metadata.name}});
  }
  return {};
}

}  // namespace bsp::reconcile
