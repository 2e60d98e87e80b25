#include "operator/reconcile/shell/eviction_responder.h"

#include <optional>
#include <utility>
#include <vector>

#include "base/core/log.h"
#include "operator/kinds.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/start/gang.h"
#include "operator/reconcile/shell/eviction.h"

namespace bsp::reconcile {

namespace {

void keep_first(Result<void>& first, Result<void> next) {
  if (first && !next) first = std::move(next);
}

std::string asked_by(const kube::Object& migration) {
  return text_at(part_at(part_at(migration, "metadata"), "labels"), kLabelEviction);
}

}  // namespace

Result<void> EvictionResponder::round(Time now) {
  const auto evictions = client_.list(kEviction, name_space_);
  if (!evictions) {
    // Most clusters have none; one that was switched off has no Evictions either.
    const bool has_none = is_unserved(evictions.error()) || evictions.error().code == ErrorCode::kNotFound;
    // A server that doesn't answer has what it had: pods made meanwhile name the operator.
    if (has_none || evictions.error().code == ErrorCode::kRefused) serves_ = false;
    if (has_none) return {};
    return std::unexpected(evictions.error());
  }
  serves_ = true;
  remember(*evictions);
  Result<void> done;
  std::set<std::string> there;
  for (const kube::Object& eviction : *evictions) {
    there.insert(kube::metadata_text(eviction, "uid"));
    keep_first(done, answer(eviction, now));
  }
  std::erase_if(withdrawn_, [&](const std::string& uid) { return !there.contains(uid); });
  keep_first(done, withdraw_vanished(there));
  return done;
}

void EvictionResponder::remember(const std::vector<kube::Object>& evictions) {
  std::map<std::string, Active> active;
  for (const kube::Object& eviction : evictions) {
    if (responder_state(eviction) != ResponderState::kActive) continue;
    EvictionReview review = review_of(eviction);
    const kube::Key key{kEviction, review.name_space, kube::metadata_text(eviction, "name")};
    const std::string pod_uid = review.pod_uid;
    active.insert_or_assign(pod_uid, Active{key, std::move(review)});
  }
  const std::lock_guard lock(mutex_);
  active_ = std::move(active);
}

void EvictionResponder::complete_before_removal(kube::Client& client, const kube::Key& pod, const std::string& pod_uid,
                                                Time now) {
  std::optional<Active> found;
  {
    const std::lock_guard lock(mutex_);
    if (const auto entry = active_.find(pod_uid); entry != active_.end()) found = entry->second;
  }
  if (!found || found->review.name_space != pod.name_space || found->review.pod != pod.name) return;
  const auto written = kube::modify_status(client, found->eviction, [&](kube::Object& there) {
    return kube::metadata_text(there, "uid") == found->review.uid &&
           respond(there, true, "the operator deletes the pod", now);
  });
  if (!written && written.error().code != ErrorCode::kNotFound)
    log_info("an eviction could not be completed before its pod is deleted",
             {{"pod", pod.name_space + "/" + pod.name}, {"error", written.error().message}});
}

Result<void> EvictionResponder::answer(const kube::Object& eviction, Time now) {
  const EvictionReview review = review_of(eviction);
  switch (responder_state(eviction)) {
    case ResponderState::kNone:
    case ResponderState::kOver:
      return {};
    case ResponderState::kCanceled:
      if (withdrawn_.contains(review.uid)) return {};
      BSP_CHECK_OK(withdraw(review.name_space, review.uid));
      asked_.erase(review.uid);
      withdrawn_.insert(review.uid);
      return {};
    case ResponderState::kActive:
      break;
  }
  BSP_TRY(const EvictionFacts facts, facts_of(client_, review));
  const EvictionAnswer answer = answer_eviction(review, facts);
  const bool done = is_done(review, facts);
  const std::string message = message_of(answer, done);
  if (!done && !answer.ask.empty()) {
    asked_.insert(review.uid);  // first: the call may succeed although its answer is lost
    BSP_CHECK_OK(ask_to_leave(client_, review, answer, {{kLabelEviction, review.uid}}));
  }
  const kube::Key key{kEviction, review.name_space, kube::metadata_text(eviction, "name")};
  // A copy is asked first, so that most rounds write nothing and read it once.
  kube::Object copy = eviction;
  if (!respond(copy, done, message, now)) return {};
  const auto written = kube::modify_status(client_, key, [&](kube::Object& there) {
    return kube::metadata_text(there, "uid") == review.uid && respond(there, done, message, now);
  });
  if (!written && written.error().code != ErrorCode::kNotFound) return std::unexpected(written.error());
  if (done)
    log_info("an eviction is over for the operator", {{"pod", review.name_space + "/" + review.pod}, {"why", message}});
  return {};
}

// A wave whose RankMigration is deleted before its commit goes back.
Result<void> EvictionResponder::withdraw(const std::string& name_space, const std::string& eviction_uid) {
  BSP_TRY(const auto migrations, client_.list(kRankMigration, name_space, {{kLabelEviction, eviction_uid}}));
  for (const kube::Object& object : migrations) {
    const auto migration = crds::rank_migration_from_json(object);
    if (kube::is_being_deleted(object) || (migration && crds::is_finished(migration->status.phase))) continue;
    const kube::Key key{kRankMigration, kube::metadata_text(object, "namespace"), kube::metadata_text(object, "name")};
    const auto removed = client_.remove(key, kube::metadata_text(object, "uid"));
    if (!removed && removed.error().code != ErrorCode::kNotFound && removed.error().code != ErrorCode::kConflict)
      return std::unexpected(removed.error());
    log_info("an eviction was withdrawn, so its rank stays", {{"migration", key.name}});
  }
  return {};
}

// An Eviction is removed once all its requests are, and that withdraws it too.
Result<void> EvictionResponder::withdraw_vanished(const std::set<std::string>& there) {
  if (!knows_asked_) {
    BSP_TRY(const auto migrations, client_.list(kRankMigration, name_space_));
    for (const kube::Object& object : migrations)
      if (const std::string uid = asked_by(object); !uid.empty()) asked_.insert(uid);
    knows_asked_ = true;
  }
  for (auto uid = asked_.begin(); uid != asked_.end();) {
    if (there.contains(*uid)) {
      ++uid;
      continue;
    }
    BSP_CHECK_OK(withdraw(name_space_, *uid));
    uid = asked_.erase(uid);
  }
  return {};
}

Result<kube::Object> RespondingClient::create(const kube::Object& object) {
  const bool is_ranks = text_at(object, "kind") == kPod.kind &&
                        !text_at(part_at(part_at(object, "metadata"), "labels"), names::kLabelRank).empty();
  if (!is_ranks || !serves_()) return to_.create(object);
  kube::Object pod = object;
  name_responder(pod);
  auto created = to_.create(pod);
  // While API servers are upgraded, an older one may answer, and refuse a field that it doesn't know.
  if (!created && created.error().message.contains("evictionResponders")) return to_.create(object);
  return created;
}

Result<void> RespondingClient::remove(const kube::Key& key, const std::string& uid) {
  if (key.kind == kPod && serves_()) before_removal_(to_, key, uid);
  return to_.remove(key, uid);
}

}  // namespace bsp::reconcile
