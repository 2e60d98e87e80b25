// The queue between watches and workers: keys of objects to reconcile, each processed by one worker at a time.
//
// Adding a key that waits changes nothing; a key added while a worker has it is queued again when the worker is done().
// Failed keys are retried with exponential backoff (per key: 5 ms, doubled up to 5 min), and all of them together at
// the rate of a token bucket: a burst of 100, then 10 per second.
//
// The queue is fair between tenants, because a call may hang for as long as a tenant's admission webhook likes: tenants
// take turns, and each has a limit of keys that workers hold at once. Urgent keys come first, with their own limit:
//
//     urgent     a: k3       b: k7 k9      ─┐  get(kUrgent)   for workers that take only these
//     ordinary   a: k1 k2    c: k4         ─┴─ get()          everything, urgent keys first
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace bsp::kube {

struct WorkqueueOptions {
  std::chrono::milliseconds first_delay{5};
  std::chrono::milliseconds last_delay{std::chrono::minutes(5)};
  double failures_per_second = 10;
  double burst = 100;
  std::function<std::string(const std::string& key)> tenant_of = {};  // null: all keys share one tenant
  // How many keys of a tenant workers may hold at once, per lane.
  unsigned max_per_tenant = std::numeric_limits<unsigned>::max();
};

enum class Lane { kUrgent, kOrdinary };

// How long a failed key waits. A pure function of the calls and the times passed in.
class RateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit RateLimiter(const WorkqueueOptions& options) : options_(options), tokens_(options.burst) {}
  // Counts another failure of the key; returns the delay from `now`.
  std::chrono::nanoseconds delay(const std::string& key, Time now);
  void forget(const std::string& key) { failures_.erase(key); }
  [[nodiscard]] unsigned failures(const std::string& key) const;

 private:
  const WorkqueueOptions options_;
  std::map<std::string, unsigned> failures_;
  double tokens_;  // negative: earlier failures have reserved them
  std::optional<Time> refilled_;
};

// Thread-safe.
class Workqueue {
 public:
  explicit Workqueue(WorkqueueOptions options = {}) : options_(std::move(options)), limiter_(options_) {}

  void add(const std::string& key);
  // Adds the key after `delay`, unless it is due earlier anyway.
  void add_after(const std::string& key, std::chrono::nanoseconds delay);
  // Retries the key after a failure.
  void add_rate_limited(const std::string& key);
  // Also moves the key if it is waiting.
  void set_lane(const std::string& key, Lane lane);
  // Resets the key's backoff after a success.
  void forget(const std::string& key);

  // The next key of this lane or a more urgent one; pass it to done(). nullopt after shut_down() or at the deadline.
  std::optional<std::string> get(Lane least = Lane::kOrdinary, std::chrono::steady_clock::time_point deadline =
                                                                   std::chrono::steady_clock::time_point::max());
  void done(const std::string& key);
  // Wakes all workers and drops what is queued.
  void shut_down();

  [[nodiscard]] std::size_t size();  // ready now
  [[nodiscard]] unsigned failures(const std::string& key);

 private:
  using Time = std::chrono::steady_clock::time_point;
  // The keys of a lane that wait for a worker.
  struct Waiting {
    std::map<std::string, std::deque<std::string>> of_tenant;
    std::deque<std::string> turns;                 // tenants with waiting keys, in the order of their turns
    std::map<std::string, unsigned> with_workers;  // number of keys that workers hold, by tenant
  };
  void add_locked(const std::string& key);
  void add_due(Time now);
  void make_ready(const std::string& key);
  std::optional<std::string> take(Lane lane);
  [[nodiscard]] std::string tenant_of(const std::string& key) const {
    return options_.tenant_of ? options_.tenant_of(key) : std::string();
  }
  [[nodiscard]] Lane lane_of(const std::string& key) const {
    return urgent_.contains(key) ? Lane::kUrgent : Lane::kOrdinary;
  }
  Waiting& waiting_in(Lane lane) { return waiting_[static_cast<std::size_t>(lane)]; }

  const WorkqueueOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  RateLimiter limiter_;
  std::array<Waiting, 2> waiting_;  // by lane
  std::size_t ready_ = 0;           // in both
  std::set<std::string> urgent_;
  std::set<std::string> dirty_;          // ready, or to be queued again when done
  std::map<std::string, Lane> in_work_;  // with the lane that each was taken from
  std::map<std::string, Time> later_;
  std::set<std::pair<Time, std::string>> by_time_;  // the same, earliest first
  bool stop_ = false;
};

}  // namespace bsp::kube
