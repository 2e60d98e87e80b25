#include "operator/reconcile/capacity/stores/usage.h"

#include "crds/seat.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/capacity/stores/owner.h"

namespace bsp::reconcile {

using kube::Object;

void NodeUsage::change(const Object* before, const Object* now) {
  const std::lock_guard lock(mutex_);
  auto add = [&](const Object& pod, bool more) {
    const std::string node = text_at(part_at(pod, "spec"), "nodeName");
    if (node.empty() || has_ended(pod)) return;
    OnNode& here = nodes_[node];
    const Resources asked = requests_of(part_at(pod, "spec"));
    const std::string job = job_key_of(kPod, pod);
    Resources& of_job = here.of_job[job];
    for (Resources* sum : {&here.all, &of_job}) more ? * sum += asked : * sum -= asked;
    if (of_job == Resources{}) here.of_job.erase(job);
    std::int64_t further = 0;
    for (const nlohmann::json& container : part_at(part_at(pod, "spec"), "containers"))
      further += local_of(text_at(container, "name")).value_or(0) != 0;
    if (further != 0 && (here.further_seats[job] += more ? further : -further) == 0) here.further_seats.erase(job);
    if (here.of_job.empty()) nodes_.erase(node);
    if (job.empty()) return;
    const std::string key = job_key(kube::metadata_text(pod, "namespace"), kube::metadata_text(pod, "name"));
    if (more)
      placed_.insert(key);
    else
      placed_.erase(key);
  };
  if (before) add(*before, false);
  if (now) add(*now, true);
}

Resources NodeUsage::of_others(const std::string& node, const std::string& job) const {
  const std::lock_guard lock(mutex_);
  const auto here = nodes_.find(node);
  if (here == nodes_.end()) return {};
  Resources others = here->second.all;
  if (const auto own = here->second.of_job.find(job); own != here->second.of_job.end()) others -= own->second;
  return others;
}

std::int64_t NodeUsage::further_seats_of_others(const std::string& node, const std::string& job) const {
  const std::lock_guard lock(mutex_);
  const auto here = nodes_.find(node);
  std::int64_t seats = 0;
  if (here != nodes_.end())
    for (const auto& [other, further] : here->second.further_seats)
      if (other != job) seats += further;
  return seats;
}

Resources NodeUsage::of_all(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  const auto here = nodes_.find(node);
  return here == nodes_.end() ? Resources{} : here->second.all;
}

Resources NodeUsage::of_no_job(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  const auto here = nodes_.find(node);
  if (here == nodes_.end()) return {};
  const auto none = here->second.of_job.find("");
  return none == here->second.of_job.end() ? Resources{} : none->second;
}

std::vector<std::string> NodeUsage::jobs_on(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> jobs;
  if (const auto here = nodes_.find(node); here != nodes_.end())
    for (const auto& [job, asked] : here->second.of_job)
      if (!job.empty()) jobs.push_back(job);
  return jobs;
}

bool NodeUsage::is_placed(const std::string& name_space, const std::string& pod) const {
  const std::lock_guard lock(mutex_);
  return placed_.contains(job_key(name_space, pod));
}

}  // namespace bsp::reconcile
