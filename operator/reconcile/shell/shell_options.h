// What the user of a Shell says of it: a cluster's operator, or one on one machine.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "operator/reconcile/capacity/reservations.h"
#include "operator/reconcile/capacity/stores/exchange_place.h"
#include "operator/reconcile/kernel/job.h"
#include "operator/reconcile/kernel/network_policy.h"
#include "operator/reconcile/kernel/start/placement.h"

namespace bsp::reconcile {

struct ShellOptions {
  std::string name_space = "default";  // "": all
  std::string network;                 // path of the network namespace from which pods are reached; "": our own
  PodOptions pods = {};
  nlohmann::json sidecar_resources = {};  // of jobs without spec.sidecar.resources; null: none
  bool collects_garbage = false;          // the cluster removes what belonged to a deleted job, by its owner
  // Jobs of one namespace reconciled at once; those with a wave under way count apart. Of all namespaces, kNamespaces times
  // as many.
  unsigned workers = 1;
  std::chrono::milliseconds progress{250};  // least time between two writes of a status that only shows progress
  std::chrono::milliseconds calls{0};       // least time between two reports of calls that move no rank
  // What an image runs if the template names no command; kNotFound with the remedy. Null: images can't be read, so
  // every template has to name its command. Both are called from all workers.
  std::function<Result<ImageDefaults>(const std::string& image)> image_defaults = {};
  // The last lines that the container of a seat wrote; "" if there are none.
  std::function<std::string(const std::string& name_space, const Seat& seat)> log_tail = {};
  // Takes every rescheduling call as a line of operator/record, those of one job in order. Null: not recorded. Called from
  // all workers.
  std::function<void(const std::string& name_space, const std::string& job, const std::string& line)> record = {};
  migrate::Limits limits = {};
  JobLimits job_limits = {};
  // The object that holds the reservations of all waves. Operators whose jobs share nodes must name the same one.
  std::string reservations_name_space = {};  // "": name_space
  std::string reservations_name = "bsp-operator-reservations";
  // The Secret from which the jobs' certificates come, in the same namespace. Of two operators each has its own.
  std::string authority_name = "bsp-operator-authority";
  // The release that manages the jobs (holds.h), which another one in the same namespaces sees; "": there can be no other.
  std::string holder = {};
  ExchangePlace exchange = {};  // instead of that object, where several operators each manage a namespace
  MoveCaps caps = {};
  std::map<std::string, double> instance_prices =
      {};              // of a node, an hour, by its instance type; where its annotation says none
  bool kueue = false;  // it admits the jobs with the label of a LocalQueue (kernel/start/kueue.h)
  std::optional<OperatorPods> isolate_from_all_but = {};  // nullopt: jobs get no NetworkPolicy
};

}  // namespace bsp::reconcile
