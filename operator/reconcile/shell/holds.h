// Which operator manages a namespace's jobs. A Lease in each namespace that has jobs names it, so that a second release whose namespaces
// overlap is noticed while both run: each would take the other's pods for silent, and restart what the other has begun.
//
//   the Lease is ours, or nobody has renewed it for kDuration    we manage the namespace's jobs
//   another operator renews it                                   we stand still for them
//   it can't be written: no right, a quota, a namespace that     as if it were ours, since nothing can show whose it is
//   is going
//   the API server hasn't answered for kGiveUp                   we stand still, since another may hold it by now
//
// Replicas of one release hold it in common, and only the one that leads asks (kube/leader.h). It goes with the namespace's last job. A
// release that is removed from its jobs leaves it, and another one takes it over when it is over.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/core/clock.h"
#include "operator/kube/client.h"
#include "operator/kube/leader.h"
#include "operator/reconcile/shell/job/events.h"

namespace bsp::reconcile {

// Thread-safe.
class NamespaceHolds {
 public:
  static std::string lease_name();
  // Longer than a release is without a leader when its replicas restart. We count from before we renew it, others from when they see
  // that, and kGiveUp < kDuration: so we stop before they begin.
  static constexpr std::chrono::seconds kDuration{120}, kGiveUp{90}, kPeriod{30};
  static constexpr std::chrono::seconds kAsksAgain{5};    // after an error
  static constexpr std::chrono::minutes kTellsAgain{60};  // as long as API servers keep events

  struct Holder {
    bool ours = true;
    std::string other;  // "": not known yet
  };

  // `identity`: of the release; "": there can be no other, as on one machine. `now`: boot_time().
  NamespaceHolds(kube::Client& client, std::string identity, std::function<Duration()> now = kube::boot_time);

  // Call it before anything is done for a job of the namespace: it reads and renews the Lease where that is due, at once.
  Holder ask(const std::string& name_space);
  // By an event of the job, again once the API server has forgotten it.
  void tell(const kube::Object& job, const std::string& other);
  // The job is gone, and `was_last` of its namespace: then the Lease goes too, if it is ours.
  void job_is_gone(const std::string& job_key, bool was_last);

 private:
  struct OfSpace {
    explicit OfSpace(kube::LeaderOptions options) : candidate(std::move(options)) {}
    std::mutex mutex;  // of all below
    kube::Candidate candidate;
    Duration asks_at{};
    bool unguarded = false;
    std::string trouble;  // what was logged last
  };
  struct Told {
    std::string uid, other;
    Duration at{};
  };
  std::shared_ptr<OfSpace> space_of(const std::string& name_space);
  // False: it is to be asked again soon.
  bool compete(OfSpace& space, const std::string& name_space);
  static bool failed(OfSpace& space, const std::string& name_space, const Error& error);

  kube::Client& client_;
  const std::string identity_;
  const std::function<Duration()> now_;
  std::mutex mutex_;  // of the map
  std::map<std::string, std::shared_ptr<OfSpace>> spaces_;
  std::mutex telling_;  // of the two below
  EventRecorder events_;
  std::map<std::string, Told> told_;  // by job_key
};

}  // namespace bsp::reconcile
