#include "operator/kube/workqueue.h"

#include <algorithm>

#include "base/core/backoff.h"

namespace bsp::kube {

using std::chrono::nanoseconds;

nanoseconds RateLimiter::delay(const std::string& key, Time now) {
  const double own =
      std::chrono::duration<double>(Backoff(options_.first_delay, options_.last_delay).after(failures_[key]++)).count();
  if (refilled_) {
    const double seconds = std::chrono::duration<double>(now - *refilled_).count();
    tokens_ = std::min(options_.burst, tokens_ + seconds * options_.failures_per_second);
  }
  refilled_ = now;
  tokens_ -= 1;
  const double shared = tokens_ >= 0 ? 0 : -tokens_ / options_.failures_per_second;
  return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(std::max(own, shared)));
}

unsigned RateLimiter::failures(const std::string& key) const {
  const auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second;
}

void Workqueue::add(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    add_locked(key);
  }
  changed_.notify_all();
}

void Workqueue::add_locked(const std::string& key) {
  if (stop_ || !dirty_.insert(key).second) return;
  if (!in_work_.contains(key)) make_ready(key);
}

void Workqueue::make_ready(const std::string& key) {
  Waiting& waiting = waiting_in(lane_of(key));
  const std::string tenant = tenant_of(key);
  auto& keys = waiting.of_tenant[tenant];
  if (keys.empty()) waiting.turns.push_back(tenant);
  keys.push_back(key);
  ++ready_;
}

void Workqueue::set_lane(const std::string& key, Lane lane) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || lane_of(key) == lane) return;
    Waiting& waiting = waiting_in(lane_of(key));
    lane == Lane::kUrgent ? void(urgent_.insert(key)) : void(urgent_.erase(key));
    const auto keys = waiting.of_tenant.find(tenant_of(key));
    if (keys == waiting.of_tenant.end() || std::erase(keys->second, key) == 0) return;
    if (keys->second.empty()) {
      std::erase(waiting.turns, keys->first);
      waiting.of_tenant.erase(keys);
    }
    --ready_;
    make_ready(key);
  }
  changed_.notify_all();
}

// Takes the next key of the first tenant in turn that is below its limit.
std::optional<std::string> Workqueue::take(Lane lane) {
  Waiting& waiting = waiting_in(lane);
  for (auto turn = waiting.turns.begin(); turn != waiting.turns.end(); ++turn) {
    const std::string tenant = *turn;
    unsigned& with_workers = waiting.with_workers[tenant];  // if 0, incremented below
    if (with_workers >= options_.max_per_tenant) continue;
    waiting.turns.erase(turn);
    const auto keys = waiting.of_tenant.find(tenant);
    std::string key = std::move(keys->second.front());
    keys->second.pop_front();
    if (keys->second.empty())
      waiting.of_tenant.erase(keys);
    else
      waiting.turns.push_back(tenant);
    ++with_workers;
    --ready_;
    dirty_.erase(key);
    in_work_.emplace(key, lane);
    return key;
  }
  return std::nullopt;
}

void Workqueue::add_after(const std::string& key, nanoseconds delay) {
  if (delay <= nanoseconds(0)) return add(key);
  {
    const std::lock_guard lock(mutex_);
    if (stop_) return;
    const Time time = std::chrono::steady_clock::now() + delay;
    const auto [it, is_new] = later_.try_emplace(key, time);
    if (!is_new) {
      if (it->second <= time) return;
      by_time_.erase({it->second, key});
      it->second = time;
    }
    by_time_.emplace(time, key);
  }
  changed_.notify_all();
}

void Workqueue::add_rate_limited(const std::string& key) {
  nanoseconds delay;
  {
    const std::lock_guard lock(mutex_);
    delay = limiter_.delay(key, std::chrono::steady_clock::now());
  }
  add_after(key, delay);
}

void Workqueue::forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  limiter_.forget(key);
}

void Workqueue::add_due(Time now) {
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const std::string key = by_time_.begin()->second;
    by_time_.erase(by_time_.begin());
    later_.erase(key);
    add_locked(key);
  }
}

std::optional<std::string> Workqueue::get(Lane least, Time deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stop_) return std::nullopt;
    const Time now = std::chrono::steady_clock::now();
    add_due(now);
    if (auto key = take(Lane::kUrgent)) return key;
    if (least == Lane::kOrdinary)
      if (auto key = take(Lane::kOrdinary)) return key;
    if (now >= deadline) return std::nullopt;
    const Time next = by_time_.empty() ? deadline : std::min(deadline, by_time_.begin()->first);
    // Some libraries overflow in wait_until(max).
    if (next == Time::max())
      changed_.wait(lock);
    else
      changed_.wait_until(lock, next);
  }
}

void Workqueue::done(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto taken = in_work_.find(key); taken != in_work_.end()) {
      auto& with_workers = waiting_in(taken->second).with_workers;
      if (const auto tenant = with_workers.find(tenant_of(key)); --tenant->second == 0) with_workers.erase(tenant);
      in_work_.erase(taken);
    }
    if (dirty_.contains(key) && !stop_) make_ready(key);
  }
  changed_.notify_all();
}

void Workqueue::shut_down() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (Waiting& waiting : waiting_) {
      waiting.of_tenant.clear();
      waiting.turns.clear();
    }
    ready_ = 0;
    dirty_.clear();
    later_.clear();
    by_time_.clear();
  }
  changed_.notify_all();
}

std::size_t Workqueue::size() {
  const std::lock_guard lock(mutex_);
  return ready_;
}

unsigned Workqueue::failures(const std::string& key) {
  const std::lock_guard lock(mutex_);
  return limiter_.failures(key);
}

}  // namespace bsp::kube
