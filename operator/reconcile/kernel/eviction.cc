#include "operator/reconcile/kernel/eviction.h"

#include <algorithm>
#include <cmath>
#include <format>

#include "base/core/first_few.h"
#include "base/json/bounded.h"
#include "base/json/fields.h"
#include "crds/bspjob.h"
#include "operator/reconcile/capacity/resources.h"
#include "operator/reconcile/kernel/pods/pods.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/stored.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {

namespace {

using nlohmann::json;

// What moved a rank back may have passed after this, as for a drain.
constexpr std::chrono::seconds kAskAgain{15};

Result<std::string> required_text(const json& request, const char* name) {
  std::string text = text_at(request, name);
  if (!text.empty()) return text;
  return fail(ErrorCode::kInvalid, std::format("request.{}: must be a string that is not empty", name));
}

std::string metadata_of(const json& object, const char* name) { return text_at(part_at(object, "metadata"), name); }
bool is_there(const json& object) { return object.is_object() && !object.empty(); }
bool goes(const json& object) { return !part_at(part_at(object, "metadata"), "deletionTimestamp").is_null(); }

bool is_controlled_by(const json& object, const std::string& uid) {
  const json& owners = part_at(part_at(object, "metadata"), "ownerReferences");
  return !uid.empty() && owners.is_array() && std::ranges::any_of(owners, [&](const json& owner) {
    return flag_at(owner, "controller", false) && text_at(owner, "uid") == uid;
  });
}

// The pod's ranks, as their job's status has them.
struct Evicted {
  crds::BspJob job;
  std::vector<RankId> ranks;
  std::string node;
};

Result<Evicted> evicted_ranks(const EvictionReview& review, const EvictionFacts& facts) {
  const auto nothing = [](std::string why) { return fail(ErrorCode::kNotFound, std::move(why)); };
  if (!is_there(facts.pod)) return nothing("there is no such pod");
  const std::string uid = metadata_of(facts.pod, "uid");
  if (!review.pod_uid.empty() && review.pod_uid != uid) return nothing("the eviction is of an earlier pod");
  if (goes(facts.pod)) return nothing("the pod is being deleted already");
  if (!is_there(facts.job) || !is_controlled_by(facts.pod, metadata_of(facts.job, "uid")))
    return nothing("the pod belongs to no BSPJob");
  Evicted e;
  BSP_TRY(e.job, crds::bsp_job_from_json(facts.job));
  BSP_CHECK_OK(check_stored(e.job));
  const crds::BspJobStatus& status = e.job.status;
  if (e.job.metadata.deletion_timestamp != Time{}) return nothing("its job is being deleted");
  if (!ranks_run(status)) return nothing(std::format("its job is {}", crds::to_string(status.phase)));
  for (const crds::RankPlace& place : status.ranks)
    if (place.pod == review.pod && status.epoch->members[place.rank.value].pod_uid == uid)
      e.ranks.push_back(place.rank);
  if (e.ranks.empty()) return nothing("no rank runs in the pod now");
  if (!is_there(facts.budget) || goes(facts.budget)) return nothing("its job lets its pods be evicted");
  e.node = text_at(part_at(facts.pod, "spec"), "nodeName");
  return e;
}

std::vector<crds::RankMigration> migrations_of(const Evicted& e, RankId of, const EvictionFacts& facts) {
  std::vector<crds::RankMigration> found;
  for (const json& object : facts.migrations) {
    const bool owned = !part_at(part_at(object, "metadata"), "ownerReferences").empty();
    if (owned && !is_controlled_by(object, e.job.metadata.uid)) continue;  // of an earlier job of this name
    if (auto m = crds::rank_migration_from_json(object); m && m->spec.job == e.job.metadata.name && m->spec.rank == of)
      found.push_back(std::move(*m));
  }
  return found;
}

// "": nothing is under way for the rank.
std::string on_its_way(const Evicted& e, std::uint32_t rank, const EvictionFacts& facts,
                       const std::vector<crds::RankMigration>& known) {
  if (const auto wave = stored_wave(e.job.status); wave && *wave && !migrate::is_finished(**wave))
    for (const migrate::Move& move : (*wave)->moves)
      if (move.rank == rank)
        return std::format("rank {} is moving from node {} to node {} (RankMigration {}: {})", rank, e.node,
                           move.target_node, move.migration, crds::to_string((*wave)->phase));
  for (const crds::RankMigration& m : known) {
    if (m.metadata.deletion_timestamp != Time{}) continue;
    if (!crds::is_finished(m.status.phase))
      return std::format("rank {} is to leave node {} (RankMigration {}: {})", rank, e.node, m.metadata.name,
                         m.status.message.empty() ? crds::to_string(m.status.phase) : m.status.message);
    if (m.status.phase == crds::MigrationPhase::kSucceeded || m.status.completion_time == Time{}) continue;
    const double since = to_seconds(std::chrono::abs(facts.now - m.status.completion_time));
    if (const double left = to_seconds(kAskAgain) - since; left > 0)
      return std::format(
          "rank {} could not leave node {} just now (RankMigration {}: {}); it can be asked again in {:.0f} s", rank,
          e.node, m.metadata.name, m.status.message, std::ceil(left));
  }
  if (const std::string why = leaving(facts.node, e.job.spec.pod_template); !why.empty()) {
    const crds::Condition* drain = crds::find_condition(e.job.status.conditions, "Draining");
    const bool told = drain && drain->status == crds::ConditionStatus::kTrue;
    return told ? drain->message : std::format("node {} {}, and rank {} must leave it", e.node, why, rank);
  }
  return "";
}

// Deterministic: evictions of one pod at the same moment make one.
crds::RankMigration request_to_leave(const Evicted& e, RankId rank, const std::string& pod_uid,
                                     const std::vector<crds::RankMigration>& known) {
  crds::RankMigration m;
  for (std::size_t again = 0; again <= known.size(); ++again) {
    m.metadata.name = named_after(e.job.metadata, std::format("-r{}-{}-e{}", rank.value, pod_uid.substr(0, 8), again));
    if (std::ranges::none_of(known, [&](const auto& each) { return each.metadata.name == m.metadata.name; })) break;
  }
  m.metadata.name_space = e.job.metadata.name_space;
  m.metadata.labels[std::string(names::kLabelJob)] = e.job.metadata.name;
  m.metadata.labels[std::string(names::kLabelRank)] = std::to_string(rank.value);
  m.metadata.owner_references = owner_reference(e.job);
  m.spec.job = e.job.metadata.name;
  m.spec.rank = rank;
  m.spec.target_node = crds::kAnyOtherNode;
  return m;
}

}  // namespace

Result<EvictionReview> eviction_review_from(const std::string& text) {
  BSP_TRY(const json review, parse_bounded(text, {.bytes = kReviewBytes, .values = 8192, .depth = 24}));
  if (text_at(review, "kind") != "AdmissionReview" || text_at(review, "apiVersion") != "admission.k8s.io/v1")
    return fail(ErrorCode::kInvalid, "the body must be an AdmissionReview of admission.k8s.io/v1");
  const json& request = part_at(review, "request");
  const json& resource = part_at(request, "resource");
  if (text_at(resource, "resource") != "pods" || !text_at(resource, "group").empty() ||
      text_at(request, "subResource") != "eviction" || text_at(request, "operation") != "CREATE")
    return fail(ErrorCode::kInvalid, "request.resource: only CREATE of pods/eviction is answered here");
  EvictionReview r;
  BSP_TRY(r.uid, required_text(request, "uid"));
  BSP_TRY(r.name_space, required_text(request, "namespace"));
  BSP_TRY(r.pod, required_text(request, "name"));
  const json& options = part_at(part_at(request, "object"), "deleteOptions");
  r.pod_uid = text_at(part_at(options, "preconditions"), "uid");
  // kubectl drain --dry-run=server says it in the eviction alone.
  const json& dry_run = part_at(options, "dryRun");
  r.dry_run = flag_at(request, "dryRun", false) || (dry_run.is_array() && !dry_run.empty());
  return r;
}

EvictionAnswer answer_eviction(const EvictionReview& review, const EvictionFacts& facts) {
  const auto evicted = evicted_ranks(review, facts);
  if (!evicted) return {.allowed = true, .message = evicted.error().message, .ask = {}};
  EvictionAnswer answer{.allowed = false, .message = "", .ask = {}};
  FirstFew texts("; ");
  for (const RankId rank : evicted->ranks) {
    const auto known = migrations_of(*evicted, rank, facts);
    if (const std::string why = on_its_way(*evicted, rank.value, facts, known); !why.empty()) {
      texts.add(why);
      continue;
    }
    answer.ask.push_back(request_to_leave(*evicted, rank, metadata_of(facts.pod, "uid"), known));
    texts.add(std::format("rank {} {} asked to leave node {} (RankMigration {}); its pod goes once it runs elsewhere",
                          rank.value, review.dry_run ? "would be" : "is", evicted->node,
                          answer.ask.back().metadata.name));
  }
  answer.message = texts.text();
  return answer;
}

json to_review(const EvictionReview& review, const EvictionAnswer& answer) {
  json response = {{"uid", review.uid}, {"allowed", answer.allowed}};
  if (!answer.allowed)
    response["status"] = {
        {"status", "Failure"}, {"code", 429}, {"reason", "TooManyRequests"}, {"message", answer.message}};
  return {{"apiVersion", "admission.k8s.io/v1"}, {"kind", "AdmissionReview"}, {"response", std::move(response)}};
}

}  // namespace bsp::reconcile
