// Leader election among several operators, with a coordination.k8s.io/v1 Lease.
//
//     us        renew ok ──────────────── give_up ──┐ leads() is false, on_change(false)
//     others    see it ─────────────────────────────┼──── duration ──┐ may take the lease
//
// We count from before we send the request that renews the lease, others from after they see its effect, and
// give_up < duration. So we stop before they start, whatever happens to messages, clock offsets or a stopped process;
// only the clocks' rates must be right. leads() reads the clock, so it is right even in a process that was stopped and
// continued. The clock keeps running while the machine sleeps (CLOCK_BOOTTIME).
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/core/clock.h"
#include "operator/kube/client.h"

namespace bsp::kube {

inline const Kind kLease{"coordination.k8s.io/v1", "Lease"};

struct LeaderOptions {
  std::string name_space;
  std::string name;
  std::string identity;  // of this process; a restarted one is another candidate
  std::chrono::milliseconds duration = std::chrono::seconds(15);
  std::chrono::milliseconds give_up = std::chrono::seconds(10);
  std::chrono::milliseconds period = std::chrono::seconds(2);  // between renewals, or reads of the lease
  // How long a candidate that could not start as leader leaves the lease to the others.
  std::chrono::milliseconds rest = std::chrono::seconds(15);
};

// Time since boot, including suspend.
Duration boot_time();

// One candidate's decisions, as a pure function of the leases and times passed in.
class Candidate {
 public:
  explicit Candidate(LeaderOptions options) : options_(std::move(options)) {}

  // The lease to write, or nullopt while another candidate leads. `lease`: as read (null: it doesn't exist); `now`:
  // boot_time(); `wall` goes into the lease for people to read.
  std::optional<Object> next(const Object* lease, Duration now, Time wall);
  // The write that started at `began` has succeeded.
  void written(Duration began) { until_ = began + options_.give_up; }
  // The lease without a holder, so that the others needn't wait; nullopt if it isn't ours. Notes its holder.
  std::optional<Object> release(const Object& lease, Time wall);
  void resign() { until_.reset(); }

  [[nodiscard]] bool leads(Duration now) const { return until_ && now < *until_; }
  [[nodiscard]] std::optional<Duration> until() const { return until_; }
  // The holder when we last read the lease.
  [[nodiscard]] const std::string& holder() const { return holder_; }

 private:
  const LeaderOptions options_;
  std::optional<Duration> until_;
  std::string holder_, seen_;  // seen_ changes whenever the holder renews
  Duration seen_at_{};
};

class LeaderElection {
 public:
  // A separate thread calls `on_change`, never concurrently: with true when we become leader, with false as soon as we
  // no longer are. If it can't start as leader, it returns why and is called with false; then the lease is released, and
  // we compete again after `rest`, so that another candidate may lead meanwhile. The client should serve this purpose
  // alone, with calls that end well before give_up (ApiOptions{.call = 4 s, .attempt = 2 s}): then a silent server costs
  // one attempt, not the leadership.
  // kInvalid unless period < give_up < duration.
  static Result<std::unique_ptr<LeaderElection>> create(Client& client, LeaderOptions options,
                                                        std::function<Result<void>(bool)> on_change);
  // Stops leading (waits for on_change(false) to return), then releases the lease.
  ~LeaderElection();

  [[nodiscard]] bool leads();
  // "": nobody, or we, who don't lead: not yet, or no longer.
  [[nodiscard]] std::string holder();

 private:
  LeaderElection(Client& client, LeaderOptions options, std::function<Result<void>(bool)> on_change);
  void compete();
  void notify();
  void try_to_lead();
  void release();
  [[nodiscard]] bool rests() const { return boot_time() < rest_until_; }  // with the lock held

  Client& client_;
  const LeaderOptions options_;
  const std::function<Result<void>(bool)> on_change_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Candidate candidate_;
  bool notified_ = false;  // the value that on_change_ was last called with
  bool stopping_ = false;  // on_change_(false) has not returned
  bool stop_ = false;
  Duration rest_until_{};    // boot_time(); until then we don't compete
  bool gives_back_ = false;  // the lease, as soon as on_change_(false) has returned
  std::thread competing_, notifying_;
};

}  // namespace bsp::kube
