// What all jobs of a shell share.
#pragma once

#include "operator/kube/cache.h"
#include "operator/reconcile/capacity/stores/store.h"
#include "operator/reconcile/capacity/stores/usage.h"
#include "operator/reconcile/shell/authority.h"
#include "operator/reconcile/shell/call_pool.h"
#include "operator/reconcile/shell/links/links.h"
#include "operator/reconcile/shell/node_benchmarks.h"
#include "operator/reconcile/shell/nodes.h"
#include "operator/reconcile/shell/shell_options.h"
#include "operator/reconcile/shell/waiting_jobs.h"

namespace bsp::reconcile {

struct ShellParts {
  kube::Client& client;
  kube::Cache& cache;
  NodeViews& nodes;
  NodeBenchmarks& benchmarks;
  const NodeUsage& usage;
  ReservationStore& reservations;
  const WaitingJobs& waiting_jobs;
  Authority& authority;
  SidecarThread& sidecar_thread;
  CallPool& call_pool;
  const ShellOptions& options;
};

}  // namespace bsp::reconcile
