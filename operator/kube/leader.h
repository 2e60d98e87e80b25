// One leader among several operators, by a coordination.k8s.io/v1 Lease.
//
//     us        renew ok ──────────────── give_up ──┐ leads() is false, on_change(false)
//     others    see it ─────────────────────────────┼──── duration ──┐ may take the lease
//
// We count from before the request that renewed the lease was sent, others from after they have seen its effect,
// and give_up < duration: whatever becomes of messages, clocks' offsets or a stopped process, we stop before they
// start. Only the rates of clocks are trusted. leads() is a look at the clock, so it is right even in a process
// that was stopped and continues; the clock goes on while the machine sleeps (CLOCK_BOOTTIME).
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

struct LeaderOptions {
  std::string name_space;
  std::string name;
  std::string identity;  // of this very process: a restarted one is another candidate
  std::chrono::milliseconds duration = std::chrono::seconds(15);
  std::chrono::milliseconds give_up = std::chrono::seconds(10);
  std::chrono::milliseconds period = std::chrono::seconds(2);  // between two renewals, or two looks
};

// Since the machine was booted, asleep or not.
Duration boot_time();

// What one candidate knows and writes next: a function of the leases it is shown and of the times given with them.
class Candidate {
 public:
  explicit Candidate(LeaderOptions options) : options_(std::move(options)) {}

  // The lease as it was read (null: there is none). What to write, or nothing while somebody else leads.
  // `now` is boot_time(), `wall` goes into the lease for people to read.
  std::optional<Object> next(const Object* lease, Duration now, Time wall);
  // The write that was begun at `began` has succeeded.
  void written(Duration began) { until_ = began + options_.give_up; }
  // Lets go of the lease, so that nobody has to wait; nothing if it isn't ours.
  std::optional<Object> release(const Object& lease, Time wall);
  void resign() { until_.reset(); }

  [[nodiscard]] bool leads(Duration now) const { return until_ && now < *until_; }
  [[nodiscard]] std::optional<Duration> until() const { return until_; }
  // Who holds the lease as far as we know.
  [[nodiscard]] const std::string& holder() const { return holder_; }

 private:
  const LeaderOptions options_;
  std::optional<Duration> until_;
  std::string holder_, seen_;  // seen_: what changes with each sign of life of the holder
  Duration seen_at_{};
};

class LeaderElection {
 public:
  // `on_change` is called on a thread of its own, never twice at once: with true when we lead, with false as soon
  // as we no longer do. The client should be one for this purpose alone whose calls end well before give_up
  // (ApiOptions{.call = 4 s, .attempt = 2 s}): a silent server then costs a try and not the leadership.
  // kInvalid unless period < give_up < duration.
  static Result<std::unique_ptr<LeaderElection>> create(Client& client, LeaderOptions options,
                                                        std::function<void(bool)> on_change);
  // Stops leading (on_change(false) has returned) and lets go of the lease.
  ~LeaderElection();

  [[nodiscard]] bool leads();
  [[nodiscard]] std::string holder();

 private:
  LeaderElection(Client& client, LeaderOptions options, std::function<void(bool)> on_change);
  void compete();
  void tell();
  void one_round();
  void let_go();

  Client& client_;
  const LeaderOptions options_;
  const std::function<void(bool)> on_change_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Candidate candidate_;
  bool told_ = false;        // the last value on_change_ was called with
  bool winding_up_ = false;  // on_change_(false) has not returned
  bool stop_ = false;
  std::thread competing_, telling_;
};

}  // namespace bsp::kube
