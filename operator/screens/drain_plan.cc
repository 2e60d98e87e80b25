#include "operator/screens/drain_plan.h"

#include <algorithm>
#include <format>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/core/counted.h"
#include "base/json/fields.h"
#include "crds/nearest.h"
#include "crds/rank_groups.h"
#include "crds/seat.h"
#include "operator/reconcile/capacity/resources.h"
#include "operator/screens/printable.h"

namespace bsp::screens {
namespace {

using nlohmann::json;
using reconcile::Resources;

const json& labels_of(const json& object) { return part_at(part_at(object, "metadata"), "labels"); }
std::string name_of(const json& object) { return text_at(part_at(object, "metadata"), "name"); }

class Plan {
 public:
  Plan(std::string node, const ClusterObjects& objects, Size size)
      : leaving_(std::move(node)), objects_(objects), size_(size) {
    for (const json& one : objects.nodes) free_[name_of(one)] = reconcile::allocatable_of(one);
    for (const json& pod : objects.pods) {
      const json& spec = part_at(pod, "spec");
      if (const auto found = free_.find(text_at(spec, "nodeName")); found != free_.end())
        found->second -= reconcile::requests_of(spec);
    }
  }

  std::vector<std::string> draw() {
    const auto node = std::ranges::find(objects_.nodes, leaving_, name_of);
    const std::string state = reconcile::leaving(*node, nlohmann::json::object());
    std::vector<std::string> lines;
    for (const crds::BspJob& job : objects_.jobs) draw_job(job, lines);
    std::string summary = std::format("node {}{}{}: ", leaving_, state.empty() ? "" : " ", state);
    if (ranks_ == 0)
      summary += "no rank of a BSPJob runs there, so a drain moves none";
    else
      summary += std::format("a drain moves {} of {} away{}", moves_, counted(ranks_, "rank"),
                             moves_ == ranks_ ? "" : "; the others' jobs restart after drainTimeoutSeconds");
    std::vector<std::string> out;
    for (const std::vector<std::string>& some : {std::vector{summary}, lines})
      for (const std::string& line : some)
        for (std::string& one : wrapped(printable(line), size_.columns)) out.push_back(std::move(one));
    return out;
  }

 private:
  void draw_job(const crds::BspJob& job, std::vector<std::string>& lines) {
    std::vector<const crds::RankPlace*> here;
    for (const auto& place : job.status.ranks)
      if (place.node == leaving_) here.push_back(&place);
    if (here.empty() || crds::is_finished(job.status.phase)) return;
    ranks_ += here.size();
    lines.emplace_back();
    lines.push_back(headline(job));
    std::map<std::string, std::vector<Seat>> seats = free_seats(job);
    const std::string label = reconcile::set_label(job.spec.sets.label, reconcile::kept_label(job), objects_.nodes);
    std::vector<std::pair<std::string, std::vector<std::size_t>>> fates;  // ranks of one fate share a line
    for (const crds::RankPlace* place : here) {
      std::string fate = fate_of(job, *place, label, seats);
      const auto same = std::ranges::find(fates, fate, &decltype(fates)::value_type::first);
      if (same == fates.end())
        fates.push_back({std::move(fate), {place->rank.value}});
      else
        same->second.push_back(place->rank.value);
    }
    for (const auto& [fate, ranks] : fates)
      lines.push_back(std::format("  {} {} {}", ranks.size() == 1 ? "rank" : "ranks", crds::runs_of(ranks), fate));
  }

  [[nodiscard]] static std::string headline(const crds::BspJob& job) {
    return std::format("{}/{}: {}, drainTimeoutSeconds {}", job.metadata.name_space, job.metadata.name,
                       crds::to_string(job.status.phase), job.spec.run_policy.drain_timeout_seconds);
  }

  // By node, those that ranks of the job have left (kernel/seats/free_seats.h). That a container still waits, only its sidecar
  // says; one that has ended doesn't.
  [[nodiscard]] std::map<std::string, std::vector<Seat>> free_seats(const crds::BspJob& job) const {
    std::set<Seat> taken;
    std::set<std::string_view> with_ranks;
    for (const crds::RankPlace& place : job.status.ranks) {
      taken.insert(place.seat());
      with_ranks.insert(place.pod);
    }
    std::map<std::string, std::vector<Seat>> free;
    for (const json& pod : objects_.pods) {
      const json& metadata = part_at(pod, "metadata");
      const std::string name = text_at(metadata, "name"), node = text_at(part_at(pod, "spec"), "nodeName");
      if (!with_ranks.contains(name) || node == leaving_ || !text_at(metadata, "deletionTimestamp").empty() ||
          text_at(metadata, "namespace") != job.metadata.name_space)
        continue;
      for (const json& container : part_at(part_at(pod, "spec"), "containers"))
        if (const auto local = local_of(text_at(container, "name")))
          if (const Seat seat{name, *local}; !taken.contains(seat) && !has_ended(pod, text_at(container, "name")))
            free[node].push_back(seat);
    }
    return free;
  }

  [[nodiscard]] static bool has_ended(const json& pod, const std::string& container) {
    const json& statuses = part_at(part_at(pod, "status"), "containerStatuses");
    return std::ranges::any_of(statuses, [&](const json& one) {
      return text_at(one, "name") == container && !part_at(part_at(one, "state"), "terminated").is_null();
    });
  }

  // Takes the seat or slot that it finds, so that the next rank doesn't get it too. As in a wave, a free seat on any node of a
  // Set comes before a slot.
  std::string fate_of(const crds::BspJob& job, const crds::RankPlace& place, const std::string& label,
                      std::map<std::string, std::vector<Seat>>& seats) {
    if (job.status.phase != crds::JobPhase::kRunning && job.status.phase != crds::JobPhase::kMigrating)
      return std::format("({}) can't move while the job is {}", place.set, crds::to_string(job.status.phase));
    if (!place.blocked_reason.empty()) return std::format("({}) can't move now: {}", place.set, reason_of(place));
    const Resources needed = reconcile::requests_of_rank(job.spec.pod_template, job.spec.sidecar.resources);
    for (const bool elsewhere : {false, true})
      for (const bool into_seat : {true, false})
        for (const json& node : objects_.nodes) {
          const std::string set = text_at(labels_of(node), label);
          if (set.empty() || (set != place.set) != elsewhere || !takes(job, node, set)) continue;
          const std::string taken = into_seat ? take_seat(seats[name_of(node)]) : take_slot(node, needed);
          if (taken.empty()) continue;
          ++moves_;
          return std::format("({}) can go to {} ({}{}){}", place.set, name_of(node), set,
                             elsewhere ? ", another Set" : "", into_seat ? ", into a free seat of " + taken : "");
        }
    return std::format("({}) can go nowhere: {}", place.set, why_nowhere(job, label));
  }

  // The sentence around it says the same.
  static std::string reason_of(const crds::RankPlace& place) {
    constexpr std::string_view kSaid = "not migratable now: ";
    const std::string& reason = place.blocked_reason;
    return reason.starts_with(kSaid) ? reason.substr(kSaid.size()) : reason;
  }

  // The pod or node; "" if there is none.
  static std::string take_seat(std::vector<Seat>& seats) {
    if (seats.empty()) return "";
    const std::string taken = seats.front().pod;
    seats.erase(seats.begin());
    return taken;
  }
  std::string take_slot(const json& node, const Resources& needed) {
    Resources& free = free_.at(name_of(node));
    if (reconcile::slots_of(free, needed) == 0) return "";
    free -= with_a_core(needed);
    return name_of(node);
  }

  // A rank that asks for no CPU counts as a core.
  static Resources with_a_core(Resources needed) {
    if (needed.cpu == 0) needed.cpu = 1000;
    return needed;
  }

  [[nodiscard]] bool takes(const crds::BspJob& job, const json& node, const std::string& set) const {
    const auto& names = job.spec.sets.names;
    return name_of(node) != leaving_ && (names.empty() || std::ranges::contains(names, set)) &&
           reconcile::takes_pods_of(node, job.spec.pod_template);
  }

  [[nodiscard]] std::string why_nowhere(const crds::BspJob& job, const std::string& label) const {
    std::map<std::string, std::size_t> full, closed;  // nodes by Set
    for (const json& node : objects_.nodes) {
      const std::string set = text_at(labels_of(node), label);
      const auto& names = job.spec.sets.names;
      if (set.empty() || name_of(node) == leaving_ || (!names.empty() && !std::ranges::contains(names, set))) continue;
      ++(takes(job, node, set) ? full : closed)[set];
    }
    std::string text;
    for (const auto& [nodes, what] :
         {std::pair{&full, "full"}, {&closed, "not ready, cordoned, tainted or not selected"}})
      for (const auto& [set, count] : *nodes)
        text += std::format("{}{} {} of {} {} {}", text.empty() ? "" : ", ", count, count == 1 ? "node" : "nodes", set,
                            count == 1 ? "is" : "are", what);
    return text.empty() ? "no other node belongs to the job's Sets" : text;
  }

  std::string leaving_;
  const ClusterObjects& objects_;
  Size size_;
  std::map<std::string, Resources> free_;  // by node
  std::size_t ranks_ = 0, moves_ = 0;
};

}  // namespace

Result<std::vector<std::string>> drain_plan(const std::string& node, const ClusterObjects& objects, Size size) {
  std::vector<std::string> names;
  for (const json& one : objects.nodes) names.push_back(name_of(one));
  if (!std::ranges::contains(names, node))
    return fail(ErrorCode::kInvalid,
                std::format("there is no node {}{}", node, crds::suggestion(node, {names.begin(), names.end()})));
  return Plan(node, objects, size).draw();
}

}  // namespace bsp::screens
