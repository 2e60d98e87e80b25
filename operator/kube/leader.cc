#include "operator/kube/leader.h"

#include <time.h>

#include <algorithm>
#include <format>

#include "base/core/log.h"
#include "operator/kube/api.h"
#include "operator/kube/fields.h"

namespace bsp::kube {
namespace {

const Kind kLease{"coordination.k8s.io/v1", "Lease"};

Duration duration_in(const Object& spec) {
  const Object& seconds = part_at(spec, "leaseDurationSeconds");
  return std::chrono::seconds(
      seconds.is_number_integer() ? std::clamp<std::int64_t>(seconds.get<std::int64_t>(), 0, 3600) : 0);
}

std::int64_t transitions_in(const Object& spec) {
  const Object& count = part_at(spec, "leaseTransitions");
  return count.is_number_integer() ? count.get<std::int64_t>() : 0;
}

}  // namespace

Duration boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::optional<Object> Candidate::next(const Object* lease, Duration now, Time wall) {
  Object written = lease ? *lease
                         : Object{{"apiVersion", kLease.api_version},
                                  {"kind", kLease.kind},
                                  {"metadata", {{"name", options_.name}, {"namespace", options_.name_space}}}};
  Object& spec = written["spec"];
  if (!spec.is_object()) spec = Object::object();
  holder_ = text_at(spec, "holderIdentity");
  if (!holder_.empty() && holder_ != options_.identity) {
    // The holder's own clock is not asked: only when we saw it alive counts. Another version of the object is a
    // sign of life too, whoever wrote it.
    const std::string sign = holder_ + text_at(spec, "renewTime") + metadata_text(written, "resourceVersion");
    if (sign != seen_) {
      seen_ = sign;
      seen_at_ = now;
    }
    if (now < seen_at_ + std::max<Duration>(options_.duration, duration_in(spec))) return std::nullopt;
  }
  if (holder_ != options_.identity) {
    spec["acquireTime"] = to_rfc3339(wall);
    spec["leaseTransitions"] = transitions_in(spec) + (lease ? 1 : 0);
  }
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = std::chrono::ceil<std::chrono::seconds>(options_.duration).count();
  spec["renewTime"] = to_rfc3339(wall);
  return written;
}

std::optional<Object> Candidate::release(const Object& lease, Time wall) {
  if (text_at(part_at(lease, "spec"), "holderIdentity") != options_.identity) return std::nullopt;
  Object written = lease;
  written["spec"]["holderIdentity"] = "";
  written["spec"]["leaseDurationSeconds"] = 1;
  written["spec"]["renewTime"] = to_rfc3339(wall);
  return written;
}

Result<std::unique_ptr<LeaderElection>> LeaderElection::create(Client& client, LeaderOptions options,
                                                               std::function<void(bool)> on_change) {
  if (options.name.empty() || options.name_space.empty() || options.identity.empty())
    return fail(ErrorCode::kInvalid, "leader election: name, namespace and identity must be given");
  if (options.period >= options.give_up || options.give_up >= options.duration)
    return fail(ErrorCode::kInvalid,
                std::format("leader election: renewing every {} and giving up after {} must be shorter, in this order, "
                            "than the lease's {}",
                            options.period, options.give_up, options.duration));
  return std::unique_ptr<LeaderElection>(new LeaderElection(client, std::move(options), std::move(on_change)));
}

LeaderElection::LeaderElection(Client& client, LeaderOptions options, std::function<void(bool)> on_change)
    : client_(client),
      options_(std::move(options)),
      on_change_(std::move(on_change)),
      candidate_(options_),
      competing_([this] { compete(); }),
      telling_([this] { tell(); }) {}

LeaderElection::~LeaderElection() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  telling_.join();
  competing_.join();
  // Not before on_change(false) has returned: the next leader may start at once.
  let_go();
}

bool LeaderElection::leads() {
  const std::lock_guard lock(mutex_);
  return !stop_ && candidate_.leads(boot_time());
}

std::string LeaderElection::holder() {
  const std::lock_guard lock(mutex_);
  return candidate_.holder();
}

void LeaderElection::compete() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    lock.unlock();
    one_round();
    lock.lock();
    // Several candidates do not come at the same time for long.
    const auto pause = candidate_.leads(boot_time()) ? options_.period : jittered(options_.period);
    changed_.wait_for(lock, pause, [&] { return stop_; });
  }
}

void LeaderElection::one_round() {
  const Key key{kLease, options_.name_space, options_.name};
  const Duration began = boot_time();
  auto current = client_.get(key);
  const bool none = !current && current.error().code == ErrorCode::kNotFound;
  if (!current && !none) return log_warning("the leader's lease can't be read", {{"error", current.error().message}});
  std::optional<Object> next;
  {
    const std::lock_guard lock(mutex_);
    // What was lost is first told: nobody leads a second time while the first is still being wound up.
    if (winding_up_ || (told_ && !candidate_.leads(boot_time()))) return;
    next = candidate_.next(none ? nullptr : &*current, boot_time(), SystemClock{}.now());
  }
  if (!next) return;
  const auto written = none ? client_.create(*next) : client_.update(*next);
  if (!written) {
    if (written.error().code != ErrorCode::kConflict)  // somebody was faster: the next look tells who
      log_warning("the leader's lease can't be written", {{"error", written.error().message}});
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    candidate_.written(began);
  }
  changed_.notify_all();
}

void LeaderElection::tell() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool leads = !stop_ && candidate_.leads(boot_time());
    if (leads != told_) {
      told_ = leads;
      winding_up_ = !leads;
      if (!leads) candidate_.resign();
      lock.unlock();
      log_info(leads ? "this operator leads" : "this operator no longer leads", {{"identity", options_.identity}});
      on_change_(leads);
      lock.lock();
      winding_up_ = false;
      continue;
    }
    if (stop_) return;
    if (!leads) {
      changed_.wait(lock);
      continue;
    }
    // wait_for() counts on a clock that stands still while the machine sleeps; leads() does not.
    changed_.wait_for(lock, std::max<Duration>(*candidate_.until() - boot_time(), std::chrono::milliseconds(1)));
  }
}

void LeaderElection::let_go() {
  const auto current = client_.get({kLease, options_.name_space, options_.name});
  if (!current) return;
  if (const auto released = candidate_.release(*current, SystemClock{}.now()))
    if (const auto written = client_.update(*released); !written)
      log_warning("the lease could not be let go of", {{"error", written.error().message}});
}

}  // namespace bsp::kube
