#include "operator/reconcile/kernel/start/start_queue.h"

#include <algorithm>
#include <format>
#include <tuple>

#include "base/core/first_few.h"

namespace bsp::reconcile {

WaitingJob waiting_job(const std::string& key, const crds::BspJob& job) {
  return {key, job.spec.run_policy.priority, job.metadata.creation_timestamp, job.spec.sets};
}

bool starts_before(const WaitingJob& one, const WaitingJob& other) {
  // The priorities change sides because the highest comes first, and the least of all has no negative.
  return std::tie(other.priority, one.created, one.key) < std::tie(one.priority, other.created, other.key);
}

bool share_a_set(const crds::SetsSpec& one, const crds::SetsSpec& other) {
  // Sets of two labels may have nodes in common.
  if (one.label != other.label || one.names.empty() || other.names.empty()) return true;
  return std::ranges::any_of(one.names,
                             [&](const std::string& name) { return std::ranges::contains(other.names, name); });
}

std::string ahead_of(const WaitingJob& mine, const std::map<std::string, WaitingJob>& waiting) {
  const WaitingJob* first = nullptr;
  for (const auto& [key, job] : waiting)
    if (key != mine.key && starts_before(job, mine) && share_a_set(job.sets, mine.sets) &&
        (!first || starts_before(job, *first)))
      first = &job;
  return first ? first->key : "";
}

std::vector<std::string> wanted_by_none_ahead(const WaitingJob& mine, const std::map<std::string, WaitingJob>& waiting,
                                              const std::vector<std::string>& sets) {
  std::vector<std::string> left;
  for (const std::string& set : sets) {
    const crds::SetsSpec one{.label = mine.sets.label, .names = {set}};
    const auto wants = [&](const auto& entry) {
      return entry.first != mine.key && starts_before(entry.second, mine) && share_a_set(entry.second.sets, one);
    };
    if (std::ranges::none_of(waiting, wants)) left.push_back(set);
  }
  return left;
}

std::string held_by(const std::vector<std::string>& holders, const std::string& name_space) {
  FirstFew named;
  std::size_t others = 0;
  for (const std::string& key : holders) {
    if (key.starts_with(name_space + "/"))
      named.add(key.substr(name_space.size() + 1));
    else
      ++others;
  }
  std::string text = named.empty() ? "" : "held by " + named.text();
  if (others != 0)
    text += std::format("{}{} job{} of other namespaces", text.empty() ? "held by " : " and ", others,
                        others == 1 ? "" : "s");
  return text;
}

}  // namespace bsp::reconcile
