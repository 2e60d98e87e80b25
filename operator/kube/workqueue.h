// Keys of objects to look at, each at most once at a time: the queue between watches and workers.
//
// A key that is added while it waits is one entry; one added while a worker has it comes again when the worker is
// done(). A failure comes back later and later (per key: 5 ms, doubled up to 5 min), and all failures together no
// faster than a bucket of 100 that refills by 10 a second.
//
// Fair between tenants, because a call may hang for as long as a tenant's admission webhook likes: tenants take turns, and of
// one tenant only so many keys are with workers at once. Urgent keys go before all others, and are counted apart from them:
//
//     urgent     a: k3       b: k7 k9      ─┐  get(kUrgent)   workers for these alone
//     ordinary   a: k1 k2    c: k4         ─┴─ get()          everything, the urgent first
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
  std::function<std::string(const std::string& key)> tenant_of = {};  // null: one for all
  // Keys of one tenant that workers have at once, of each lane.
  unsigned of_a_tenant = std::numeric_limits<unsigned>::max();
};

enum class Lane { kUrgent, kOrdinary };

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
  explicit Workqueue(WorkqueueOptions options = {}) : options_(std::move(options)), limiter_(options_) {}

  void add(const std::string& key);
  // Not before that; an earlier time that is noted already stays.
  void add_after(const std::string& key, std::chrono::nanoseconds delay);
  // After a failure.
  void add_rate_limited(const std::string& key);
  // From now on, and where it waits already.
  void set_lane(const std::string& key, Lane lane);
  // It worked: the next failure is the first one again.
  void forget(const std::string& key);

  // The next key, of this lane or a more urgent one; nothing after shut_down(), or at the deadline. done() must follow.
  std::optional<std::string> get(Lane least = Lane::kOrdinary, std::chrono::steady_clock::time_point deadline =
                                                                   std::chrono::steady_clock::time_point::max());
  void done(const std::string& key);
  // Wakes everybody; what is queued is dropped.
  void shut_down();

  [[nodiscard]] std::size_t size();  // ready now
  [[nodiscard]] unsigned failures(const std::string& key);

 private:
  using Time = std::chrono::steady_clock::time_point;
  // The keys of a lane that wait for a worker.
  struct Waiting {
    std::map<std::string, std::deque<std::string>> of_tenant;
    std::deque<std::string> turns;                 // tenants with any, whose turn is next first
    std::map<std::string, unsigned> with_workers;  // keys, by tenant
  };
  void add_locked(const std::string& key);
  void ripen(Time now);
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
  std::set<std::string> dirty_;          // ready, or to come again when done
  std::map<std::string, Lane> in_work_;  // and of which lane each was taken
  std::map<std::string, Time> later_;
  std::set<std::pair<Time, std::string>> by_time_;  // the same, the next one first
  bool stop_ = false;
};

}  // namespace bsp::kube
