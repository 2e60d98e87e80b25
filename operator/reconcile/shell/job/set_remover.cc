#include "operator/reconcile/shell/job/set_remover.h"

#include <algorithm>
#include <format>
#include <set>

#include "base/core/log.h"
#include "crds/requests.h"
#include "crds/stored_status.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/kernel/checkpoints/reclaim.h"

namespace bsp::reconcile {
namespace {

// A status is a user's to write: more than that it isn't believed.
constexpr std::size_t kMostUsed = 1000;

}  // namespace

std::vector<UsedSet> sets_used(const std::vector<kube::Object>& jobs, const std::string& uid) {
  std::vector<UsedSet> used;
  for (const kube::Object& other : jobs) {
    if (kube::metadata_text(other, "uid") == uid) continue;
    const auto status = crds::whole_status(part_at(other, "status"));
    if (!status) continue;
    for (const kube::Object& set : part_at(part_at(*status, "checkpoint"), "sets"))
      if (text_at(set, "ofJob") == uid && used.size() < kMostUsed)
        used.push_back({kube::metadata_text(other, "name"), count_at<std::uint64_t>(set, "id"),
                        count_at<std::uint64_t>(set, "base")});
  }
  return used;
}

migrate::Action with_used(const migrate::Action& keep_sets, const std::vector<UsedSet>& used) {
  if (used.empty()) return keep_sets;
  auto request = wire::read_request<wire::KeepSetsRequest>(*keep_sets.fields);
  if (!request) return keep_sets;
  for (const UsedSet& one : used) {
    // A base that another set builds on is named as one, and this one is needed for itself.
    std::erase(request->bases, one.set);
    if (!std::ranges::contains(request->keep, one.set)) request->keep.push_back(one.set);
  }
  for (const UsedSet& one : used) {
    if (one.base == 0 || std::ranges::contains(request->keep, one.base)) continue;
    request->keep.push_back(one.base);
    request->bases.push_back(one.base);
  }
  migrate::Action action = migrate::Action::keep_sets(keep_sets.seat, *request);
  action.token = keep_sets.token;
  return action;
}

kube::Key SetRemover::pod() const { return job_ref_.own(kPod, remover_name({job_ref_.at.name, job_ref_.uid})); }

void SetRemover::add_to(Observed& o) const {
  o.can_remove_sets = options_.pods.scheduled;
  if (!o.can_remove_sets || !o.job.spec.checkpoint.storage) return;
  if (const auto there = cache_.get(pod()); there && job_ref_.owns(*there)) o.remover = remover_facts(*there);
  {
    const std::lock_guard lock(state_->mutex);
    o.remover_refused = state_->refused;
  }
  if (o.remover.made) return;
  if (const auto by = used(o.job); !by.empty()) o.sets_used_by = by.front().by;
}

// By what the statuses name, so every job of the namespace and of those that it allows is read; but only until the pod is made, and once
// for each set. What jobs of other namespaces say holds nobody up.
std::vector<UsedSet> SetRemover::used(const crds::BspJob& job) const {
  const std::string& own = job_ref_.at.name_space;
  std::vector<UsedSet> used = sets_used(cache_.list(kBspJob, own), job_ref_.uid);
  const std::set<std::string> others(job.spec.checkpoint.allowed_namespaces.begin(),
                                     job.spec.checkpoint.allowed_namespaces.end());
  for (const std::string& place : others) {
    if (place == own) continue;
    for (UsedSet& one : sets_used(cache_.list(kBspJob, place), job_ref_.uid)) {
      one.by = place + "/" + one.by;
      used.push_back(std::move(one));
    }
  }
  return used;
}

Result<std::string> SetRemover::owner_of_sets() const {
  BSP_TRY(const std::string seed, authority_.seed());
  BSP_TRY(const std::string cluster, authority_.cluster());
  return reconcile::owner_of_sets(seed, cluster, job_ref_.at.name_space);
}

// Every status is read for it, so once in an hour is enough.
OrphanSearch SetRemover::search(const crds::BspJob& job) const {
  if (!options_.pods.scheduled || !job.status.checkpoint || !job.status.checkpoint->marked) return {};
  {
    const std::lock_guard lock(state_->mutex);
    const auto now = std::chrono::steady_clock::now();
    if (now < state_->looks_at) return {};
    state_->looks_at = now + kLooksForOrphans;
  }
  auto owner = owner_of_sets();
  if (!owner) {
    log_warning("the checkpoint sets can't be marked, and what jobs have left stays",
                {{"job", job_ref_.key()}, {"error", owner.error().message}});
    return {};
  }
  OrphanSearch search{.owner = std::move(*owner),
                      .retain = job.spec.checkpoint.reclaim_policy == crds::ReclaimPolicy::kRetain};
  if (!search.retain) search.stay = jobs_that_stay(cache_.list(kBspJob), job_ref_.at.name_space);
  return search;
}

migrate::Action SetRemover::complete(const migrate::Action& keep_sets, const crds::BspJob& job) const {
  return with_search(with_used(keep_sets, used(job)), search(job));
}

void SetRemover::create(const Observed& o) {
  {
    const std::lock_guard lock(state_->mutex);
    if (std::chrono::steady_clock::now() < state_->again) return;
  }
  calls_->once(
      "create the pod that removes checkpoint sets",
      [&client = client_, &cache = cache_, job = job_ref_, state = state_, pod = make_remover(o.job, options_.pods)] {
        const Result<void> made = make(client, cache, job, pod);
        const std::lock_guard lock(state->mutex);
        if (made) {
          state->refused.reset();
          state->tries.reset();
          state->again = {};
          return;
        }
        if (!state->refused || state->refused->message != made.error().message)
          log_warning("failed to create the pod that removes a deleted job's checkpoint sets",
                      {{"job", job.key()}, {"error", made.error().message}});
        state->refused = made.error();
        state->again = std::chrono::steady_clock::now() + state->tries.next();
      });
}

Result<void> SetRemover::make(kube::Client& client, kube::Cache& cache, const JobRef& job, const kube::Object& pod) {
  auto created = client.create(pod);
  if (!created && created.error().code == ErrorCode::kConflict) {
    // Made before, by an operator that has ended since or by a call whose answer was lost.
    const std::string name = kube::metadata_text(pod, "name");
    created = client.get(job.own(kPod, name));
    if (created && !job.owns(*created))
      return fail(ErrorCode::kUnavailable, std::format("pod {} exists and is not this job's; delete it", name), true);
  }
  if (!created) return std::unexpected(created.error());
  cache.put(*created);
  return {};
}

void SetRemover::remove(const Observed& o) {
  calls_->once("delete the pod that removes checkpoint sets", [&client = client_, &cache = cache_, at = pod(),
                                                               uid = o.remover.uid] {
    const auto removed = client.remove(at, uid);
    if (!removed && removed.error().code != ErrorCode::kConflict && removed.error().code != ErrorCode::kNotFound)
      log_warning("failed to delete a pod", {{"pod", at.name}, {"error", removed.error().message}});
    if (auto left = client.get(at))
      cache.put(*left);
    else if (left.error().code == ErrorCode::kNotFound)
      cache.drop(at);
  });
}

}  // namespace bsp::reconcile
