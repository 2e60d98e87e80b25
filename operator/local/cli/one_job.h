// A small cluster on this machine with one job in it, from nothing to nothing: what `local run` and `check` share.
//
// The calling process watches the job, restarts the operator's process (serve.h) if it dies, and cleans up at the end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/core/fd.h"
#include "crds/bspjob.h"
#include "crds/rankmigration.h"
#include "operator/local/cli/serve.h"
#include "operator/local/pools.h"
#include "operator/local/process.h"
#include "operator/local/store.h"

namespace bsp::local {

class OneJob {
 public:
  // `say` gets what the user should read meanwhile, a line at a time.
  OneJob(ServeOptions options, std::function<void(const std::string&)> say)
      : options_(std::move(options)), say_(std::move(say)) {}

  // Checks everything that can be checked before anything is started, then creates store, nodes and job. Errors name the job's
  // field.
  // A job with a status goes on from there; `seed`: of the keys of its checkpoint sets ("": a new one).
  // `secrets`: what the job's pods mount, besides what the operator makes: the keys of each Secret with their values.
  using Secrets = std::map<std::string, std::map<std::string, std::string>>;
  Result<void> prepare(crds::BspJob job, const std::vector<Pool>& pools, const std::string& seed = "",
                       const Secrets& secrets = {});
  // Blocks the signals that interrupt(), and starts the operator.
  Result<void> start();

  enum class Turn {
    kGoesOn,
    kFinished,     // the job has ended
    kGone,         // it was deleted
    kCannotServe,  // the operator can't start or can't reconcile the job; the user has been told why
    kInterrupted,  // by signal()
  };
  // Waits a moment for changes and takes them in.
  Result<Turn> next();
  // Waits for what the operator writes about migrations a moment after the job has ended.
  Result<void> settle();
  // Waits for the last lines of a rank of a job that has succeeded.
  Result<void> await_output(std::uint32_t rank);
  // Ends everything and removes it.
  Result<void> remove();

  [[nodiscard]] const crds::BspJob& job() const { return job_; }
  [[nodiscard]] std::vector<crds::RankMigration> migrations() const;
  [[nodiscard]] Store& store() const { return *store_; }
  [[nodiscard]] int signal() const { return signal_; }

 private:
  Result<void> check_job(const std::vector<Pool>& pools) const;
  Result<void> start_operator();
  Result<bool> keep_operator();
  bool is_stalled();
  void take(const kube::WatchEvent& event);

  ServeOptions options_;
  std::function<void(const std::string&)> say_;
  crds::BspJob job_;
  std::unique_ptr<Store> store_;
  ChildProcess child_;
  Fd signals_;
  std::map<std::string, crds::RankMigration> migrations_;
  std::string cursor_;
  std::string stalled_;  // the last message said
  int ends_ = 0;         // exits of the operator's process since the job or a migration changed
  int signal_ = 0;
  bool gone_ = false;
};

// Removes a store and everything that belongs to it: containers, network namespaces, mounts, files. Succeeds if there is
// nothing. No operator may be running on it.
Result<void> remove_cluster(const std::string& root, const std::string& name_space);

}  // namespace bsp::local
