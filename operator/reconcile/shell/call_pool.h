// Calls that may take as long as a tenant's admission webhook likes, off the workers: a job's next reconcile must not wait
// for them, nor may another job's.
//
//   a worker ──once("create Pod x", call)──> threads of their own: tenants in turn, calls of moving jobs first
//      ^──────────── the job is reconciled again when the last of its calls has ended ────────────┘
//
// A call decides nothing and changes nothing that a worker reads, but for the cache; what it leaves for the worker lies behind
// a mutex of its own.
#pragma once

#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/core/error.h"
#include "base/core/log_context.h"
#include "operator/kube/workqueue.h"

namespace bsp::reconcile {

// Whose reconcile or call this thread runs: what a job stores itself is no reason to reconcile it again.
class RunsFor {
 public:
  explicit RunsFor(const std::string& job);  // must outlive this
  ~RunsFor();
  RunsFor(const RunsFor&) = delete;
  RunsFor& operator=(const RunsFor&) = delete;
  [[nodiscard]] static bool is(const std::string& job);

 private:
  const LogsFor logs_;
};

// The threads. They are started as they are needed: a job of a few pods needs a few.
class CallPool {
 public:
  static constexpr unsigned kOfATenant = 32;  // calls under way, of moving jobs and of others apart
  static constexpr std::size_t kThreads = 4 * kOfATenant, kUrgentThreads = kOfATenant;

  CallPool();
  // Without threads: `run` runs each call when it likes, on the thread that calls everything else, and drops those that are left
  // before this goes.
  using Run = std::function<void(std::function<void()> call)>;
  explicit CallPool(Run run);
  // When all calls have ended, those that wait too: so that what a job's last reconcile produced is written. Closing the client first makes
  // them fail at once.
  ~CallPool();
  CallPool(const CallPool&) = delete;
  CallPool& operator=(const CallPool&) = delete;

  void add(const std::string& name_space, kube::Lane lane, std::function<void()> call);

 private:
  void work(kube::Lane lane);
  void start_if_short(kube::Lane lane);

  const Run run_;          // not set: the threads do
  kube::Workqueue queue_;  // of "<namespace>/<number>"
  std::mutex mutex_;       // of all below
  bool stop_ = false;
  std::size_t running_ = 0;
  std::condition_variable ended_;
  std::uint64_t next_ = 0;
  std::map<std::string, std::function<void()>> calls_;
  struct Pool {
    std::vector<std::thread> threads;
    std::size_t idle = 0;
  };
  std::array<Pool, 2> pools_;  // by the least lane that it takes from
};

// The calls of one job. Thread-safe.
class JobCalls : public std::enable_shared_from_this<JobCalls> {
 public:
  // `changed` is called from the pool's threads.
  JobCalls(CallPool& call_pool, std::string name_space, std::string job, std::function<void()> changed)
      : call_pool_(call_pool), name_space_(std::move(name_space)), job_(std::move(job)), changed_(std::move(changed)) {}

  // Of what is begun from now on.
  void set_lane(kube::Lane lane);
  // False: the call of that name is under way.
  bool once(const std::string& name, std::function<void()> call);
  [[nodiscard]] bool under_way(const std::string& name);
  [[nodiscard]] bool any_under_way();  // of those with a name
  // One after the other. What finds too many before it is dropped, and logged.
  void in_order(std::function<void()> call);
  // What a call has thrown, or a check() in it, since this was last asked.
  std::optional<Error> take_error();

 private:
  void begin(std::function<void()> call);
  void run(const std::function<void()>& call);
  void run_in_order();

  CallPool& call_pool_;
  const std::string name_space_, job_;  // job_: "<namespace>/<name>"
  const std::function<void()> changed_;
  std::mutex mutex_;
  kube::Lane lane_ = kube::Lane::kOrdinary;
  std::set<std::string> under_way_;
  std::deque<std::function<void()>> ordered_;
  bool in_order_ = false;  // one of ordered_ is under way
  std::optional<Error> error_;
};

}  // namespace bsp::reconcile
