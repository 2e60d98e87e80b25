// The operator's one loop that does input and output: watches objects, asks the kernels, carries out.
//
//   watch ─> Cache ─┐                      ┌─> status stored (before anything that follows from it)
//                   ├─> Observed ─> kernel ┼─> pods, Secrets, RankMigrations, events
//   sidecars' links ┘   (per job)          └─> verbs to sidecars
//
// It runs for any kube::Client. All that must survive it is in the objects, so it may be killed anywhere.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "operator/kube/client.h"
#include "operator/reconcile/shell_cache.h"
#include "operator/reconcile/job.h"

namespace bsp::reconcile {

class JobShell;

struct ShellOptions {
  std::string name_space = "default";
  std::string network;  // path of the network namespace from which pods are reached; "": our own
  // What an image runs if the template names no command; kNotFound with the remedy.
  std::function<Result<ImageDefaults>(const std::string& image)> image_defaults;
  // The last lines that the app container of a pod wrote; "" if there are none.
  std::function<std::string(const std::string& pod)> log_tail;
  migrate::Limits limits = {};
  JobLimits job_limits = {};
};

class Shell {
 public:
  Shell(kube::Client& client, ShellOptions options);
  ~Shell();  // ends the loop; pods go on
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

 private:
  void run();
  void wake();

  kube::Client& client_;
  ShellOptions options_;
  std::mutex mutex_;  // of the two below
  std::condition_variable woken_;
  bool dirty_ = false;
  bool stop_ = false;
  std::map<std::string, std::unique_ptr<JobShell>> jobs_;  // by uid; the loop's thread only
  Cache cache_;
  std::thread thread_;
};

}  // namespace bsp::reconcile
