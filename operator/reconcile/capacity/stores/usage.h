// What pods take on the nodes.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "operator/kinds.h"
#include "operator/reconcile/capacity/resources.h"

namespace bsp::reconcile {

// What the pods that have a node and have not ended ask for there, and whose they are. Thread-safe.
class NodeUsage {
 public:
  void change(const kube::Object* before, const kube::Object* now);
  // Of all pods but this job's.
  [[nodiscard]] Resources of_others(const std::string& node, const std::string& job) const;
  // Where a node has slots for ranks: those that they hold beyond one for each pod.
  [[nodiscard]] std::int64_t further_seats_of_others(const std::string& node, const std::string& job) const;
  [[nodiscard]] Resources of_all(const std::string& node) const;
  // Of pods that are no BSPJob's.
  [[nodiscard]] Resources of_no_job(const std::string& node) const;
  // Keys of the jobs with a pod there.
  [[nodiscard]] std::vector<std::string> jobs_on(const std::string& node) const;
  // A pod of a job that is counted.
  [[nodiscard]] bool is_placed(const std::string& name_space, const std::string& pod) const;

 private:
  struct OnNode {
    Resources all;
    std::map<std::string, Resources> of_job;            // by job_key
    std::map<std::string, std::int64_t> further_seats;  // the same: app containers beyond the first of each pod
  };
  mutable std::mutex mutex_;
  std::map<std::string, OnNode> nodes_;
  std::set<std::string> placed_;  // pods of jobs: "<namespace>/<name>"
};

}  // namespace bsp::reconcile
