#include "operator/reconcile/shell/call_pool.h"

#include <format>
#include <utility>

#include "base/core/guard.h"
#include "base/core/log.h"

namespace bsp::reconcile {
namespace {

constexpr std::size_t kOrderedAtMost = 200;

thread_local const std::string* current_job = nullptr;

}  // namespace

RunsFor::RunsFor(const std::string& job) : logs_(job) { current_job = &job; }
RunsFor::~RunsFor() { current_job = nullptr; }
bool RunsFor::is(const std::string& job) { return current_job && *current_job == job; }

CallPool::CallPool() : CallPool(Run()) {}

CallPool::CallPool(Run run)
    : run_(std::move(run)),
      queue_({.tenant_of = [](const std::string& key) { return key.substr(0, key.find('/')); },
              .max_per_tenant = kOfATenant}) {}

CallPool::~CallPool() {
  {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return calls_.empty() && running_ == 0; });  // one call may begin another
    stop_ = true;
  }
  queue_.shut_down();
  for (Pool& pool : pools_) {
    std::vector<std::thread> threads;
    {
      const std::lock_guard lock(mutex_);
      threads.swap(pool.threads);
    }
    for (std::thread& thread : threads) thread.join();
  }
}

void CallPool::add(const std::string& name_space, kube::Lane lane, std::function<void()> call) {
  if (run_) return run_(std::move(call));
  std::string key;
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    key = std::format("{}/{}", name_space, next_++);
    calls_.emplace(key, std::move(call));
  }
  queue_.set_lane(key, lane);
  queue_.add(key);
  const std::lock_guard lock(mutex_);
  if (!stop_) start_if_short(lane);
}

// Some threads take urgent calls only, so that those never wait for all the others.
void CallPool::start_if_short(kube::Lane lane) {
  Pool& urgent = pools_[static_cast<std::size_t>(kube::Lane::kUrgent)];
  Pool& any = pools_[static_cast<std::size_t>(kube::Lane::kOrdinary)];
  const std::size_t idle = any.idle + (lane == kube::Lane::kUrgent ? urgent.idle : 0);
  if (idle >= queue_.size()) return;
  if (any.threads.size() < kThreads)
    any.threads.emplace_back([this] { work(kube::Lane::kOrdinary); });
  else if (lane == kube::Lane::kUrgent && urgent.threads.size() < kUrgentThreads)
    urgent.threads.emplace_back([this] { work(kube::Lane::kUrgent); });
}

void CallPool::work(kube::Lane lane) {
  Pool& pool = pools_[static_cast<std::size_t>(lane)];
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      ++pool.idle;
    }
    const auto key = queue_.get(lane);
    std::function<void()> call;
    {
      const std::lock_guard lock(mutex_);
      --pool.idle;
      if (!key) return;
      const auto it = calls_.find(*key);
      call = std::move(it->second);
      calls_.erase(it);
      ++running_;
    }
    call();
    call = nullptr;  // with all that it holds
    {
      const std::lock_guard lock(mutex_);
      if (--running_ == 0) ended_.notify_all();
    }
    queue_.set_lane(*key, kube::Lane::kOrdinary);  // it is forgotten
    queue_.done(*key);
  }
}

void JobCalls::set_lane(kube::Lane lane) {
  const std::lock_guard lock(mutex_);
  lane_ = lane;
}

bool JobCalls::once(const std::string& name, std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (!under_way_.insert(name).second) return false;
  }
  begin([self = shared_from_this(), name, call = std::move(call)] {
    self->run(call);
    bool wakes = false;
    {
      const std::lock_guard lock(self->mutex_);
      self->under_way_.erase(name);
      wakes = self->under_way_.empty();
    }
    if (wakes) self->changed_();
  });
  return true;
}

void JobCalls::in_order(std::function<void()> call) {
  {
    const std::lock_guard lock(mutex_);
    if (ordered_.size() >= kOrderedAtMost)
      return log_warning("too many calls of a job wait, and the newest is dropped", {{"job", job_}});
    ordered_.push_back(std::move(call));
    if (std::exchange(in_order_, true)) return;
  }
  begin([self = shared_from_this()] { self->run_in_order(); });
}

bool JobCalls::under_way(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return under_way_.contains(name);
}

bool JobCalls::any_under_way() {
  const std::lock_guard lock(mutex_);
  return !under_way_.empty();
}

// One at a time, so that another tenant's call may come in between.
void JobCalls::run_in_order() {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex_);
    call = std::move(ordered_.front());
    ordered_.pop_front();
  }
  run(call);
  {
    const std::lock_guard lock(mutex_);
    if (ordered_.empty()) {
      in_order_ = false;
      return;
    }
  }
  begin([self = shared_from_this()] { self->run_in_order(); });
}

std::optional<Error> JobCalls::take_error() {
  const std::lock_guard lock(mutex_);
  return std::exchange(error_, std::nullopt);
}

void JobCalls::begin(std::function<void()> call) {
  kube::Lane lane;
  {
    const std::lock_guard lock(mutex_);
    lane = lane_;
  }
  call_pool_.add(name_space_, lane, std::move(call));
}

void JobCalls::run(const std::function<void()>& call) {
  const RunsFor here(job_);
  const auto done = guarded(call);
  if (done) return;
  {
    const std::lock_guard lock(mutex_);
    error_ = done.error();
  }
  changed_();
}

}  // namespace bsp::reconcile
