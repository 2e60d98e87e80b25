// What `bsp-operator controller` and `submit` may be told on the command line.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "base/core/error.h"
#include "operator/exchange/protocol.h"
#include "operator/kube/leader.h"
#include "operator/reconcile/capacity/reservations.h"
#include "operator/reconcile/kernel/placement.h"

namespace bsp::controller {

// How operators that each look after a namespace keep from promising the same room
// (operator/reconcile/capacity/stores/exchange_store.h).
struct ExchangeOptions {
  std::optional<exchange::Mechanism> mechanism;  // nullopt: an object holds what is booked
  std::map<std::string, std::string> members;    // HOST:PORT by namespace, this operator's own among them
  std::string listen = "0.0.0.0:7700";
  std::string tls_directory;  // ca.pem, cert.pem (its CN: the namespace), key.pem
  std::chrono::milliseconds lost_after = std::chrono::seconds(30);
};

struct Options {
  std::string kubeconfig;  // "": as kubectl finds it, else the pod's service account
  std::string context;
  std::string name_space;  // of the jobs; "": all
  bool leader_elect = false;
  kube::LeaderOptions lease;    // its namespace: "" for the one that the configuration names
  std::string metrics_address;  // "": none. They name every tenant's jobs, so nobody gets them unasked
  std::string health_address = "0.0.0.0:8081";
  unsigned workers = 4;
  std::string record_directory;  // of the rescheduling calls, a file for each job; "": none are kept
  reconcile::PodOptions pods{.scheduled = true, .user_namespace = true};
  reconcile::MoveCaps caps;
  ExchangeOptions exchange;
  std::map<std::string, std::string> isolate_jobs;  // labels of the operator's pods; none: no NetworkPolicies
  unsigned start_timeout_seconds = 300;             // until a job whose pods are not all up is started anew
  unsigned target_timeout_seconds = 60;  // until a target pod that finds no node, or does not come up, is given up
};

// kInvalid with what is wrong, the nearest option and the usage.
Result<Options> parse_options(std::span<const std::string> words);

struct SubmitOptions {
  std::string kubeconfig, context;
  std::string file;                // a BSPJob
  std::string name_space;          // "": the manifest's, else the configuration's
  bool wait = false;               // until it has ended
  bool remove = false;             // then delete it
  unsigned timeout_seconds = 600;  // of waiting
};
Result<SubmitOptions> parse_submit_options(std::span<const std::string> words);

}  // namespace bsp::controller
