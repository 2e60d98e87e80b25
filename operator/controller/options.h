// The command lines of `bsp-operator controller`, `submit` and `before-uninstall`.
#pragma once

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "operator/exchange/protocol.h"
#include "operator/kube/leader.h"
#include "operator/reconcile/capacity/reservations.h"
#include "operator/reconcile/kernel/start/placement.h"

namespace bsp::controller {

// How operators of one namespace each avoid reserving the same slots
// (operator/reconcile/capacity/stores/exchange_store.h).
struct ExchangeOptions {
  std::optional<exchange::Mechanism> mechanism;  // nullopt: an object holds the reservations
  std::map<std::string, std::string> members;    // HOST:PORT by namespace, including this operator's
  std::string listen = "[::]:7700";
  std::string tls_directory;  // ca.pem, cert.pem (its CN: the namespace), key.pem
  std::chrono::milliseconds lost_after = std::chrono::seconds(30);
};

struct Options {
  std::string kubeconfig;  // "": as kubectl finds it, or else the pod's service account
  std::string context;
  std::string name_space;  // of the jobs; "": all
  bool leader_elect = false;
  kube::LeaderOptions lease;    // namespace "": that of the configuration
  std::string metrics_address;  // "": none, because metrics name every tenant's jobs
  std::string health_address = "[::]:8081";
  std::string evictions_address;  // "": evictions are not answered here
  unsigned workers = 4;
  std::string record_directory;  // a file of rescheduling calls per job; "": none
  reconcile::PodOptions pods{.scheduled = true, .user_namespace = true};
  reconcile::MoveCaps caps;
  std::map<std::string, double> instance_prices;  // of a node, an hour, by instance type
  bool kueue = false;
  ExchangeOptions exchange;
  std::map<std::string, std::string> isolate_jobs;  // labels of the operator's pods; empty: no NetworkPolicies
  nlohmann::json sidecar_resources;                 // of the containers that the operator adds to pods
  unsigned start_timeout_seconds = 300;             // for all pods of a job to start, before the job is restarted
  unsigned target_timeout_seconds = 60;             // for a target pod to start, before the migration is given up
};

// kInvalid names the option, the remedy and the usage.
Result<Options> parse_options(std::span<const std::string> words);

struct SubmitOptions {
  std::string kubeconfig, context;
  std::string file;                // a BSPJob
  std::string name_space;          // "": the manifest's, or else the configuration's
  bool wait = false;               // until the job has ended
  bool remove = false;             // then delete the job
  unsigned timeout_seconds = 600;  // of waiting
};
Result<SubmitOptions> parse_submit_options(std::span<const std::string> words);

struct BeforeUninstallOptions {
  std::string kubeconfig, context;
  std::vector<std::string> name_spaces;  // whose jobs the operator may run; empty: all
  std::string holder;                    // ShellOptions::holder; "": every job there is the operator's
  bool remove = false;                   // delete the jobs and wait until they are gone
  unsigned timeout_seconds = 240;        // of that
};
Result<BeforeUninstallOptions> parse_before_uninstall_options(std::span<const std::string> words);

}  // namespace bsp::controller
