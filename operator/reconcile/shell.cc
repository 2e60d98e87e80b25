#include "operator/reconcile/shell.h"

#include <algorithm>
#include <set>

#include "base/core/log.h"
#include "operator/reconcile/shell_job.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;

Shell::Shell(kube::Client& client, ShellOptions options)
    : client_(client),
      options_(std::move(options)),
      cache_(client, options_.name_space, {kBspJob, kRankMigration, kPod, kNode}, [this] { wake(); }),
      thread_([this] { run(); }) {}

Shell::~Shell() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void Shell::wake() {
  {
    std::lock_guard lock(mutex_);
    dirty_ = true;
  }
  woken_.notify_all();
}

void Shell::run() {
  auto next = std::chrono::steady_clock::now();
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      woken_.wait_until(lock, next, [this] { return dirty_ || stop_; });
      if (stop_) break;
      dirty_ = false;
    }
    next = std::chrono::steady_clock::now() + 1s;
    if (!cache_.filled()) continue;
    std::set<std::string> there;
    for (const kube::Object& object : cache_.list(kBspJob)) {
      const std::string uid = object.at("metadata").value("uid", "");
      there.insert(uid);
      auto& job = jobs_[uid];
      if (!job) job = std::make_unique<JobShell>(client_, cache_, options_, [this] { wake(); });
      next = std::min(next, std::chrono::steady_clock::now() + job->reconcile(object.at("metadata").at("name")));
    }
    std::erase_if(jobs_, [&](const auto& entry) { return !there.contains(entry.first); });
  }
  jobs_.clear();
}

}  // namespace bsp::reconcile
