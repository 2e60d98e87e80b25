// What the shell keeps of one job between two reconciles; all of it can be derived again from the objects.
//
//   prepare ─> observe (follower.h) ─> advise (Advisor) ─> reconcile_job ─> Step ─> apply (applier.h)
//                 └──────────────── until nothing is to be stored ─────────────────┘
#pragma once

#include <functional>
#include <string>

#include "operator/reconcile/kernel/rescheduling/advisor.h"
#include "operator/reconcile/shell/job/applier.h"
#include "operator/reconcile/shell/job/follower.h"
#include "operator/reconcile/shell/job/preparation.h"
#include "operator/reconcile/shell/job/stall.h"
#include "operator/reconcile/shell/job/stored_job.h"

namespace bsp::reconcile {

class JobShell {
 public:
  // `changed`: the job is to be reconciled again. From any thread.
  JobShell(const ShellParts& parts, const JobRef& job, std::function<void()> changed);

  // Does what is due, and returns after how long to do so again at the latest. Catches whatever is thrown meanwhile.
  Duration reconcile();
  [[nodiscard]] const std::string& uid() const { return parts_.job.uid; }

 private:
  Duration reconcile_until_stored();
  Duration let_go();
  Duration stall(const Error& error);
  [[nodiscard]] Duration until_next(const Observed& o, const Work& work) const;

  const JobParts parts_;
  PodKeeper pods_;
  PodGroupKeeper pod_group_;
  StatusWriter status_;
  const JobRemoval removal_;
  SetRemover remover_;
  StoredJob stored_;
  Advisor advisor_;
  Preparation preparation_;
  Follower follower_;
  Applier applier_;
  Stall stall_;
};

}  // namespace bsp::reconcile
