// The pod that removes the checkpoint sets of a job that is being deleted (kernel/checkpoints/reclaim.h), made off the worker.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/core/backoff.h"
#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/shell/job/job_parts.h"
#include "operator/reconcile/shell/orphans.h"

namespace bsp::reconcile {

// A checkpoint set that the status of another job names, since that job goes on from it until it has stored its own.
struct UsedSet {
  std::string by;  // that job
  std::uint64_t set = 0, base = 0;
};
// Of the job with that uid, as far as `jobs` name any.
std::vector<UsedSet> sets_used(const std::vector<kube::Object>& jobs, const std::string& uid);
// The same verb, which keeps those, too.
migrate::Action with_used(const migrate::Action& keep_sets, const std::vector<UsedSet>& used);

class SetRemover {
 public:
  explicit SetRemover(const JobParts& parts)
      : client_(parts.shell.client),
        cache_(parts.shell.cache),
        authority_(parts.shell.authority),
        options_(parts.shell.options),
        job_ref_(parts.job),
        calls_(parts.calls) {}

  // What is known of that pod, and who still needs the sets.
  void add_to(Observed& o) const;
  // keepSets of a job that runs, so that what others go on from stays, and now and then what jobs have left that are gone goes.
  [[nodiscard]] migrate::Action complete(const migrate::Action& keep_sets, const crds::BspJob& job) const;
  // Again after a while if it was refused.
  void create(const Observed& o);
  // One that its node has ended, so that another can be made.
  void remove(const Observed& o);

 private:
  struct State {  // the call writes it, and may outlive the job
    std::mutex mutex;
    std::optional<Error> refused;
    SteadyTime again{};
    Backoff tries{std::chrono::seconds(1), std::chrono::seconds(15)};
    SteadyTime looks_at{};  // for orphans
  };
  [[nodiscard]] kube::Key pod() const;
  [[nodiscard]] std::vector<UsedSet> used(const crds::BspJob& job) const;
  [[nodiscard]] Result<std::string> owner_of_sets() const;
  [[nodiscard]] OrphanSearch search(const crds::BspJob& job) const;
  static Result<void> make(kube::Client& client, kube::Cache& cache, const JobRef& job, const kube::Object& pod);

  kube::Client& client_;
  kube::Cache& cache_;
  Authority& authority_;
  const ShellOptions& options_;
  const JobRef job_ref_;
  const std::shared_ptr<JobCalls> calls_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace bsp::reconcile
