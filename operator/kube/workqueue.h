// Keys of objects to look at, each at most once at a time: the queue between watches and workers.
//
// A key that is added while it waits is one entry; one added while a worker has it comes again when the worker is
// done(). A failure comes back later and later (per key: 5 ms, doubled up to 5 min), and all failures together no
// faster than a bucket of 100 that refills by 10 a second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
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
};

// How long failures wait; a function of the calls and of the time given with them.
class RateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit RateLimiter(const WorkqueueOptions& options) : options_(options), tokens_(options.burst) {}
  // From `now`, for one more failure of this key.
  std::chrono::nanoseconds delay(const std::string& key, Time now);
  void forget(const std::string& key) { failures_.erase(key); }
  [[nodiscard]] unsigned failures(const std::string& key) const;

 private:
  const WorkqueueOptions options_;
  std::map<std::string, unsigned> failures_;
  double tokens_;  // negative: already promised to earlier failures
  std::optional<Time> refilled_;
};

// Thread-safe.
class Workqueue {
 public:
  explicit Workqueue(const WorkqueueOptions& options = {}) : limiter_(options) {}

  void add(const std::string& key);
  // Not before that; an earlier time that is noted already stays.
  void add_after(const std::string& key, std::chrono::nanoseconds delay);
  // After a failure.
  void add_rate_limited(const std::string& key);
  // It worked: the next failure is the first one again.
  void forget(const std::string& key);

  // The next key; nothing after shut_down(), or at the deadline. done() must follow.
  std::optional<std::string> get(
      std::chrono::steady_clock::time_point deadline = std::chrono::steady_clock::time_point::max());
  void done(const std::string& key);
  // Wakes everybody; what is queued is dropped.
  void shut_down();

  [[nodiscard]] std::size_t size();  // ready now
  [[nodiscard]] unsigned failures(const std::string& key);

 private:
  using Time = std::chrono::steady_clock::time_point;
  void add_locked(const std::string& key);
  void ripen(Time now);

  std::mutex mutex_;
  std::condition_variable changed_;
  RateLimiter limiter_;
  std::deque<std::string> ready_;
  std::set<std::string> dirty_;  // ready, or to come again when done
  std::set<std::string> in_work_;
  std::map<std::string, Time> later_;
  std::set<std::pair<Time, std::string>> by_time_;  // the same, the next one first
  bool stop_ = false;
};

}  // namespace bsp::kube
