#include "operator/kube/leader.h"

#include <algorithm>
#include <format>

#include "base/core/log.h"
#include "operator/kube/api.h"
#include "operator/kube/fields.h"

namespace bsp::kube {

Result<std::unique_ptr<LeaderElection>> LeaderElection::create(Client& client, LeaderOptions options,
                                                               std::function<Result<void>(bool)> on_change) {
  if (options.name.empty() || options.name_space.empty() || options.identity.empty())
    return fail(ErrorCode::kInvalid, "leader election: name, namespace and identity are required");
  if (options.period >= options.give_up || options.give_up >= options.duration)
    return fail(ErrorCode::kInvalid,
                std::format("leader election: the period ({}) must be shorter than give_up ({}), and that shorter "
                            "than the lease's duration ({})",
                            options.period, options.give_up, options.duration));
  return std::unique_ptr<LeaderElection>(new LeaderElection(client, std::move(options), std::move(on_change)));
}

LeaderElection::LeaderElection(Client& client, LeaderOptions options, std::function<Result<void>(bool)> on_change)
    : client_(client),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      candidate_(options_),
      competing_([this] { compete(); }),
      notifying_([this] { notify(); }) {}

LeaderElection::~LeaderElection() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  notifying_.join();
  competing_.join();
  // Only after on_change(false) has returned, because the next leader may start at once.
  release();
}

bool LeaderElection::leads() {
  const std::lock_guard lock(mutex_);
  return !stop_ && candidate_.leads(boot_time());
}

std::string LeaderElection::holder() {
  const std::lock_guard lock(mutex_);
  const std::string& holder = candidate_.holder();
  return holder == options_.identity && !candidate_.leads(boot_time()) ? "" : holder;
}

void LeaderElection::compete() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    try_to_lead();
    lock.lock();
    // Jitter keeps the candidates from competing in lockstep.
    const auto pause = candidate_.leads(boot_time()) ? options_.period : jittered(options_.period);
    changed_.wait_for(lock, pause, [&] { return stop_ || gives_back_; });
    gives_back_ = false;
  }
}

void LeaderElection::try_to_lead() {
  bool rests_now = false;
  {
    const std::lock_guard lock(mutex_);
    rests_now = rests();
    if (rests_now && (stopping_ || notified_)) return;  // on_change_(false) must have returned
  }
  if (rests_now) return release();  // again until it succeeds; then it shows who leads
  const Key key{kLease, options_.name_space, options_.name};
  const Duration began = boot_time();
  auto current = client_.get(key);
  const bool none = !current && current.error().code == ErrorCode::kNotFound;
  if (!current && !none) return log_warning("failed to read lease", {{"error", current.error().message}});
  std::optional<Object> next;
  {
    const std::lock_guard lock(mutex_);
    // After losing the lease, don't lead again until on_change(false) has returned.
    if (stopping_ || (notified_ && !candidate_.leads(boot_time()))) return;
    next = candidate_.next(none ? nullptr : &*current, boot_time(), SystemClock{}.now());
  }
  if (!next) return;
  const auto written = none ? client_.create(*next) : client_.update(*next);
  if (!written) {
    if (written.error().code != ErrorCode::kConflict)  // another candidate was faster: the next read shows which
      log_warning("failed to write lease", {{"error", written.error().message}});
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    if (rests()) return;  // it was given up meanwhile; the next call releases it
    candidate_.written(began);
  }
  changed_.notify_all();
}

void LeaderElection::notify() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool leads = !stop_ && candidate_.leads(boot_time());
    if (leads != notified_) {
      notified_ = leads;
      stopping_ = !leads;
      if (!leads) candidate_.resign();
      lock.unlock();
      log_info(leads ? "became leader" : "lost leadership", {{"identity", options_.identity}});
      const auto changed = on_change_(leads);
      lock.lock();
      stopping_ = false;
      if (!leads && rests()) {
        gives_back_ = true;
        changed_.notify_all();
      }
      if (leads && !changed) {
        log_error("failed to start as leader, so another candidate may lead",
                  {{"error", changed.error().message}, {"rest", std::format("{}", options_.rest)}});
        candidate_.resign();
        rest_until_ = boot_time() + options_.rest;
      }
      continue;
    }
    if (stop_) return;
    if (!leads) {
      changed_.wait(lock);
      continue;
    }
    // wait_for()'s clock stops while the machine sleeps, so check leads() again afterwards.
    changed_.wait_for(lock, std::max<Duration>(*candidate_.until() - boot_time(), std::chrono::milliseconds(1)));
  }
}

void LeaderElection::release() {
  const auto current = client_.get({kLease, options_.name_space, options_.name});
  if (!current) return;
  std::optional<Object> released;
  {
    const std::lock_guard lock(mutex_);
    released = candidate_.release(*current, SystemClock{}.now());
  }
  if (released)
    if (const auto written = client_.update(*released); !written)
      log_warning("failed to release lease", {{"error", written.error().message}});
}

}  // namespace bsp::kube
