#include "operator/reconcile/shell/holds.h"

#include <format>
#include <utility>

#include "base/core/log.h"
#include "base/json/bounded.h"
#include "crds/names.h"
#include "operator/kinds.h"
#include "operator/kube/fields.h"

namespace bsp::reconcile {

namespace {
constexpr std::size_t kHolderBytes = 200;  // whoever may edit the namespace may write the Lease

// An answer that isn't another one a little later: no right, a quota, a namespace that is going, whose jobs must be able to go.
bool is_refusal(const Error& error) {
  return error.code == ErrorCode::kRefused || error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalid ||
         error.code == ErrorCode::kNoSpace;
}
}  // namespace

NamespaceHolds::NamespaceHolds(kube::Client& client, std::string identity, std::function<Duration()> now)
    : client_(client), identity_(std::move(identity)), now_(std::move(now)), events_(client) {}

std::string NamespaceHolds::lease_name() { return std::format("jobs.{}", names::kGroup); }

void NamespaceHolds::tell(const kube::Object& job, const std::string& other) {
  crds::BspJob named;
  named.metadata.name = kube::metadata_text(job, "name");
  named.metadata.name_space = kube::metadata_text(job, "namespace");
  named.metadata.uid = kube::metadata_text(job, "uid");
  const std::lock_guard lock(telling_);
  const Duration now = now_();
  Told& told = told_[named.metadata.name_space + "/" + named.metadata.name];
  if (told.uid == named.metadata.uid && told.other == other && now < told.at + kTellsAgain) return;
  told = {.uid = named.metadata.uid, .other = other, .at = now};
  events_.record(named,
                 {"Warning", "ManagedByAnother",
                  std::format("operator {} manages the jobs of namespace {} (Lease {}), so operator {} leaves them "
                              "alone: give each release namespaces of its own (watchNamespace, jobs.namespaces), or "
                              "remove one",
                              other, named.metadata.name_space, lease_name(), identity_)},
                 SystemClock{}.now());
}

void NamespaceHolds::job_is_gone(const std::string& job_key, bool was_last) {
  {
    const std::lock_guard lock(telling_);
    told_.erase(job_key);
  }
  if (!was_last || identity_.empty()) return;
  const std::string name_space = job_key.substr(0, job_key.find('/'));
  std::shared_ptr<OfSpace> space;
  {
    const std::lock_guard lock(mutex_);
    const auto it = spaces_.find(name_space);
    if (it == spaces_.end()) return;
    space = std::move(it->second);
    spaces_.erase(it);
  }
  const std::lock_guard lock(space->mutex);
  if (!space->candidate.leads(now_())) return;
  const kube::Key key{kube::kLease, name_space, lease_name()};
  // Nobody misses it, so it isn't tried again: the next one finds a Lease that is over.
  const auto lease = client_.get(key);
  if (!lease || text_at(part_at(*lease, "spec"), "holderIdentity") != identity_) return;
  if (const auto removed = client_.remove(key, kube::metadata_text(*lease, "uid")); !removed)
    log_debug("left a namespace's Lease", {{"namespace", name_space}, {"error", removed.error().message}});
}

std::shared_ptr<NamespaceHolds::OfSpace> NamespaceHolds::space_of(const std::string& name_space) {
  const std::lock_guard lock(mutex_);
  auto& place = spaces_[name_space];
  if (!place)
    place = std::make_shared<OfSpace>(kube::LeaderOptions{.name_space = name_space,
                                                          .name = lease_name(),
                                                          .identity = identity_,
                                                          .duration = kDuration,
                                                          .give_up = kGiveUp,
                                                          .period = kPeriod});
  return place;
}

NamespaceHolds::Holder NamespaceHolds::ask(const std::string& name_space) {
  if (identity_.empty()) return {};
  const auto space = space_of(name_space);
  const std::lock_guard lock(space->mutex);
  if (const Duration now = now_(); now >= space->asks_at)
    space->asks_at = now + (compete(*space, name_space) ? Duration(kPeriod) : Duration(kAsksAgain));
  if (space->unguarded || space->candidate.leads(now_())) return {};
  std::string holder = space->candidate.holder();
  if (holder == identity_) holder.clear();
  cut_text(holder, kHolderBytes);
  return {.ours = false, .other = std::move(holder)};
}

bool NamespaceHolds::failed(OfSpace& space, const std::string& name_space, const Error& error) {
  if (std::exchange(space.trouble, error.message) != error.message)
    log_warning("cannot show who manages a namespace's jobs",
                {{"namespace", name_space}, {"lease", lease_name()}, {"error", error.message}});
  return is_refusal(error);
}

bool NamespaceHolds::compete(OfSpace& space, const std::string& name_space) {
  const Duration began = now_();
  const auto lease = client_.get({kube::kLease, name_space, lease_name()});
  const bool none = !lease && lease.error().code == ErrorCode::kNotFound;
  if (!lease && !none) {
    space.unguarded |= is_refusal(lease.error());
    return failed(space, name_space, lease.error());
  }
  const auto next = space.candidate.next(none ? nullptr : &*lease, now_(), SystemClock{}.now());
  if (next) {
    const auto written = none ? client_.create(*next) : client_.update(*next);
    if (!written && written.error().code == ErrorCode::kConflict) return false;  // the next read shows who was faster
    if (!written) {
      // As read, nobody else has it.
      space.unguarded |= is_refusal(written.error()) || written.error().code == ErrorCode::kFailed;
      return failed(space, name_space, written.error());
    }
    space.candidate.written(began);
  } else {
    space.candidate.resign();  // somebody has named another one, before ours was over
  }
  space.unguarded = false;
  space.trouble.clear();
  return true;
}

}  // namespace bsp::reconcile
