// A job's pods, created and deleted off the worker, with the Secrets that hold their keys.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/core/backoff.h"
#include "base/net/pki.h"
#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/shell/job/job_parts.h"
#include "operator/reconcile/shell/resize_keeper.h"

namespace bsp::reconcile {

// What a job's certificates are signed with.
struct Signer {
  net::PemPair ca;
  Time end{};
  std::string sets = {};  // the seed of the keys of its checkpoint sets; "": unknown
  // Of those of another job, by a grant; and such a grant (source_job.h). Empty with it.
  std::function<Result<std::string>(const std::string& uid, const std::string& grant)> sets_of = {};
  std::function<Result<std::string>(const std::string& uid)> grant = {};
};

// The requests themselves. Thread-safe: several of a job's pods are made at once.
class PodMaker {
 public:
  PodMaker(kube::Client& client, kube::Cache& cache, const ShellOptions& options, const JobRef& job)
      : client_(client), cache_(cache), options_(options), job_(job) {}

  Result<ImageDefaults> image_defaults(const crds::BspJob& job);
  Result<void> create(const crds::BspJob& job, const PodRequest& request, const ImageDefaults& image);
  void remove(const kube::Object& pod);
  // The keys of a pod, and of those that share their Secret with it: every pod that mounts it finds its part there.
  Result<void> write_secret(const crds::BspJob& job, const PodRequest& request, const Signer& signer);
  // Those of these Secrets of which no pod needs a part any more.
  void remove_unused(const std::set<std::string>& secrets);

  void begin(const std::vector<std::string>& pods, const std::string& secret);
  void end(const std::string& pod, Result<void> made);
  // Ask before the pods are read: one whose call has ended is in the cache by then.
  [[nodiscard]] std::set<std::string> being_made() const;
  [[nodiscard]] std::map<std::string, Result<void>> take_results();

 private:
  kube::Client& client_;
  kube::Cache& cache_;
  const ShellOptions& options_;
  const JobRef job_;
  mutable std::mutex mutex_;  // of all below
  std::map<std::string, ImageDefaults> images_;
  std::map<std::string, std::string> being_made_;  // pods, and the Secret of each
  std::map<std::string, Result<void>> results_;    // by pod
};

// What of it is under way and what was refused; the worker's.
class PodKeeper {
 public:
  explicit PodKeeper(const JobParts& parts)
      : cache_(parts.shell.cache),
        job_(parts.job),
        calls_(parts.calls),
        events_(parts.events),
        maker_(std::make_shared<PodMaker>(parts.shell.client, cache_, parts.shell.options, job_)),
        resizes_(parts) {}

  // Ask before the pods are read: one whose call has ended is in the cache by then.
  [[nodiscard]] std::set<std::string> being_made() const { return maker_->being_made(); }
  void take_results();
  // Those that were refused, with the reason.
  void add_refused(Observed& o) const;
  // A pod that is refused is retried after a while, with an event when the reason changes.
  void create(const Observed& o, const std::vector<PodRequest>& requests, const std::shared_ptr<const Signer>& signer);
  void remove(const Observed& o, const std::vector<std::string>& pods);
  void remove(std::vector<kube::Object> pods);
  // Until a pod that was refused is tried again; `most` if none is to be.
  [[nodiscard]] Duration until_next_try(Duration most) const;
  [[nodiscard]] PodMaker& maker() { return *maker_; }
  [[nodiscard]] ResizeKeeper& resizes() { return resizes_; }

 private:
  void note_refused(const std::string& pod, const Error& error, bool quiet);

  kube::Cache& cache_;
  const JobRef job_;
  const std::shared_ptr<JobCalls> calls_;
  const EventQueue events_;
  const std::shared_ptr<PodMaker> maker_;
  ResizeKeeper resizes_;
  struct Refused {
    Error error;
    SteadyTime again{};                                                       // not tried before that
    Backoff tries{std::chrono::milliseconds(500), std::chrono::seconds(15)};  // that failed for this reason
  };
  std::map<std::string, Refused> refused_;  // by pod
};

}  // namespace bsp::reconcile
