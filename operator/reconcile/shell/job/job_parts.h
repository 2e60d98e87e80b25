// What the parts of one job's shell share.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "operator/reconcile/shell/call_pool.h"
#include "operator/reconcile/shell/job/event_queue.h"
#include "operator/reconcile/shell/job/job_ref.h"
#include "operator/reconcile/shell/job/shell_parts.h"

namespace bsp::reconcile {

struct JobParts {
  // `reconcile_again` may be called from any thread.
  JobParts(const ShellParts& of_all_jobs, JobRef ref, std::function<void()> reconcile_again)
      : shell(of_all_jobs),
        job(std::move(ref)),
        changed(std::move(reconcile_again)),
        calls(std::make_shared<JobCalls>(shell.call_pool, job.at.name_space, job.key(), changed)),
        events(shell.client, job, calls) {}

  const ShellParts shell;
  const JobRef job;
  const std::function<void()> changed;
  const std::shared_ptr<JobCalls> calls;
  const EventQueue events;
};

}  // namespace bsp::reconcile
