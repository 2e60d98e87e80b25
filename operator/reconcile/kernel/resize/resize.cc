#include "operator/reconcile/kernel/resize/resize.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/core/counted.h"
#include "base/json/fields.h"
#include "crds/stored_status.h"
#include "operator/reconcile/capacity/resources.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;
using crds::RankResize;
using crds::ResizePhase;

namespace {

// A rank is behind the others if it takes so much longer; less may be noise.
constexpr double kBehind = 1.1, kLeastGain = 0.05;
// Of a rank's time.
constexpr double kMuchThrottled = 0.05;
// From when on so much is done, it isn't asked for again. Resized: until the share of the time for which it is throttled tells of the
// new limit alone.
constexpr Duration kFelt = wire::kThrottleWindow + 5s, kDeferredFor = 5min, kInfeasibleFor = 1h, kNoneFor = 30min;
// A node resizes a container in a fraction of a second, or says why not.
constexpr Duration kNodeTakes = 10s;

Duration hold_after(ResizePhase phase) {
  switch (phase) {
    case ResizePhase::kAsked:
      return Duration::max();
    case ResizePhase::kResized:
      return kFelt;
    case ResizePhase::kDeferred:
      return kDeferredFor;
    case ResizePhase::kInfeasible:
      return kInfeasibleFor;
    case ResizePhase::kRefused:
      return kNoneFor;
  }
  std::unreachable();
}

bool holds(const RankResize& resize, Time now) { return now - resize.time < hold_after(resize.phase); }

// Null: the rank has left that pod, or the pod goes.
const AppFacts* container_to_resize(const RankResize& resize, const Observed& o) {
  const auto& ranks = o.job.status.ranks;
  if (resize.rank.value >= ranks.size() || ranks[resize.rank.value].pod != resize.pod) return nullptr;
  const PodFacts* pod = o.pod(ranks[resize.rank.value].seat());
  const AppFacts* app = o.app(ranks[resize.rank.value].seat());
  return pod && !pod->deleting && app->running ? app : nullptr;
}

// The node has not resized it, and its pod still asks for that.
bool is_to_be_undone(const RankResize& resize, const AppFacts& app) {
  const bool failed = resize.phase == ResizePhase::kDeferred || resize.phase == ResizePhase::kInfeasible;
  return failed && app.cpu_limit == static_cast<std::int64_t>(resize.to_milli);
}

// --- Planning -----------------------------------------------------------------------------------------

struct Throttled {
  const crds::RankPlace* place;
  double seconds;
  double throttled;
  std::int64_t limit;
};

std::optional<Throttled> can_be_resized(const Observed& o, const crds::RankPlace& place, double seconds) {
  const SidecarFacts* sidecar = o.sidecar(place.seat());
  const PodFacts* pod = o.pod(place.seat());
  const AppFacts* app = o.app(place.seat());
  const bool can = pod && app->running && !app->keeps_cpu && app->cpu_limit > 0 && !pod->deleting &&
                   pod->resizing == Resizing::kNo && app->cpu_given == app->cpu_limit &&
                   o.free_cpu.contains(place.node);
  if (!can || !sidecar || !is_much_throttled(sidecar->throttled)) return std::nullopt;
  const bool rests = std::ranges::any_of(o.job.status.resizes, [&](const RankResize& r) {
    return r.rank == place.rank && r.node == place.node && holds(r, o.now);
  });
  if (rests) return std::nullopt;
  return Throttled{&place, seconds, sidecar->throttled, app->cpu_limit};
}

// What the others need for a superstep: no more helps a rank. Those that are behind and can be resized don't count.
double pace_of(std::span<const double> seconds, std::vector<Throttled>& behind) {
  std::vector<double> sorted(seconds.begin(), seconds.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>((sorted.size() - 1) / 2);
  std::ranges::nth_element(sorted, middle);
  const double median = *middle;
  std::erase_if(behind, [&](const Throttled& c) { return c.seconds <= median * kBehind; });
  std::vector<double> others(seconds.begin(), seconds.end());
  for (const Throttled& c : behind) others[c.place->rank.value] = 0;
  const double pace = std::max(median, std::ranges::max(others));
  std::erase_if(behind, [&](const Throttled& c) { return c.seconds <= pace * kBehind; });
  return pace;
}

// The limit that brings it there, or at which none would hold it back.
std::int64_t wanted_limit(const Throttled& c, double pace) {
  const auto limit = static_cast<double>(c.limit);
  const double unlimited = limit / std::max(1 - c.throttled, 0.01);
  const double wanted = std::min({limit * c.seconds / pace, unlimited, static_cast<double>(kMostAsked)});
  return static_cast<std::int64_t>(std::ceil(wanted - 1e-9));
}

// --- Settling -----------------------------------------------------------------------------------------

// Since Kubernetes 1.36 the API server itself says that a node has not so much at all. It forbids that as it does what a quota denies, but
// no other rank is concerned.
bool is_beyond_node(const Error& refused) {
  return refused.message.contains("node didn't have enough allocatable resources");
}

struct ResizeEnd {
  ResizePhase phase;
  std::string message = {};
};

std::optional<ResizeEnd> end_of_resize(const RankResize& resize, const AppFacts& app, const Observed& o) {
  if (o.being_resized.contains(resize.pod)) return std::nullopt;
  const bool late = o.resizing_for >= kNodeTakes;
  const auto from = static_cast<std::int64_t>(resize.from_milli), to = static_cast<std::int64_t>(resize.to_milli);
  if (const auto refused = o.not_resized.find(resize.pod); refused != o.not_resized.end() && app.cpu_limit == from)
    // A quota's refusal may pass, but nobody waits for that.
    if (late || !refused->second.retryable || refused->second.code == ErrorCode::kRefused)
      return ResizeEnd{is_beyond_node(refused->second) ? ResizePhase::kInfeasible : ResizePhase::kRefused,
                       refused->second.message};
  if (app.cpu_limit != from && app.cpu_limit != to)
    return ResizeEnd{ResizePhase::kRefused,
                     std::format("somebody else has changed it to {}", crds::cpu_text(app.cpu_limit))};
  const PodFacts& pod = o.pods.at(resize.pod);
  if (app.cpu_limit == to) {
    if (pod.resizing == Resizing::kInfeasible) return ResizeEnd{ResizePhase::kInfeasible, pod.resize_message};
    if (pod.resizing == Resizing::kDeferred) return ResizeEnd{ResizePhase::kDeferred, pod.resize_message};
    if (pod.resizing == Resizing::kNo && app.cpu_given == to) return ResizeEnd{ResizePhase::kResized};
  }
  if (!late) return std::nullopt;
  return ResizeEnd{ResizePhase::kDeferred, std::format("the node has not done it for {} s{}{}", to_seconds(kNodeTakes),
                                                       pod.resize_message.empty() ? "" : ": ", pod.resize_message)};
}

// By whoever thinks to know better, such as a VerticalPodAutoscaler: nobody quarrels with it, and the rank may move.
std::optional<ResizeEnd> taken_away(const RankResize& resize, const AppFacts& app) {
  if (app.cpu_limit >= static_cast<std::int64_t>(resize.to_milli)) return std::nullopt;
  return ResizeEnd{ResizePhase::kRefused,
                   std::format("somebody else has changed it to {}", crds::cpu_text(app.cpu_limit))};
}

Event event_of_resize(const RankResize& r) {
  const std::string from = crds::cpu_text(r.from_milli), to = crds::cpu_text(r.to_milli);
  const std::string stays = std::format("rank {} keeps its CPU limit of {} on {}, and does not get {}: {}",
                                        r.rank.value, from, r.node, to, r.message);
  switch (r.phase) {
    case ResizePhase::kAsked:
      break;
    case ResizePhase::kResized:
      return {"Normal", "Resized",
              std::format("rank {} has a CPU limit of {} instead of {} on {}, without a pause", r.rank.value, to, from,
                          r.node)};
    case ResizePhase::kDeferred:
      return {"Warning", "ResizeDeferred", stays};
    case ResizePhase::kInfeasible:
      return {"Warning", "ResizeInfeasible", stays};
    case ResizePhase::kRefused:
      return {"Warning", "ResizeRefused", stays};
  }
  std::unreachable();
}

// An entry is of use as long as something follows from it; one of a rank that has more CPU says so.
bool is_over(const RankResize& resize, const Observed& o) {
  const AppFacts* app = container_to_resize(resize, o);
  if (resize.phase == ResizePhase::kAsked || resize.phase == ResizePhase::kResized) return !app;
  return !holds(resize, o.now) && !(app && is_to_be_undone(resize, *app));
}

}  // namespace

std::vector<crds::ResizeEntry> plan_resizes(const Observed& o, std::span<const double> compute_seconds,
                                            const std::set<std::uint32_t>& moves) {
  const crds::BspJobStatus& status = o.job.status;
  if (o.job.spec.rescheduling.resize == crds::Resize::kOff || compute_seconds.size() != status.ranks.size()) return {};
  if (compute_seconds.empty() || resize_under_way(o)) return {};
  const bool refused = std::ranges::any_of(
      status.resizes, [&](const RankResize& r) { return r.phase == ResizePhase::kRefused && holds(r, o.now); });
  if (refused) return {};
  std::vector<Throttled> behind;
  for (std::size_t i = 0; i < compute_seconds.size(); ++i)
    if (auto one = can_be_resized(o, status.ranks[i], compute_seconds[i])) behind.push_back(*one);
  const double pace = pace_of(compute_seconds, behind);
  if (!(pace > 0)) return {};
  std::ranges::stable_sort(behind, std::greater{}, &Throttled::seconds);
  std::map<std::string, std::int64_t> free = o.free_cpu;
  std::vector<crds::ResizeEntry> planned;
  std::vector<double> after(compute_seconds.begin(), compute_seconds.end());
  for (const Throttled& c : behind) {
    if (planned.size() == crds::kMostResizes) break;
    const std::int64_t wanted = wanted_limit(c, pace);
    std::int64_t& left = free.at(c.place->node);
    const std::int64_t to = std::min(wanted, c.limit + std::max<std::int64_t>(left, 0));
    if (static_cast<double>(to) < static_cast<double>(c.limit) * kBehind) continue;
    if (to < wanted && moves.contains(c.place->rank.value)) continue;
    left -= to - c.limit;
    after[c.place->rank.value] *= static_cast<double>(c.limit) / static_cast<double>(to);
    planned.push_back({.rank = c.place->rank,
                       .node = c.place->node,
                       .from_milli = static_cast<std::uint64_t>(c.limit),
                       .to_milli = static_cast<std::uint64_t>(to)});
  }
  if (planned.empty()) return {};
  const double slowest = std::ranges::max(compute_seconds), slowest_after = std::ranges::max(after);
  // Another rank may be as slow, and can't be helped.
  if (slowest_after > slowest * (1 - std::max(o.job.spec.rescheduling.min_gain, kLeastGain))) return {};
  for (crds::ResizeEntry& entry : planned) entry.superstep_before = slowest, entry.superstep_after = slowest_after;
  return planned;
}

void show_resizes(std::vector<crds::ResizeEntry> resizes, crds::ReschedulingMode mode, Decided& call) {
  const bool is_done = mode == crds::ReschedulingMode::kMigrate;
  crds::Decision& decision = call.decision;
  const crds::ResizeEntry& first = resizes.front();
  decision.moves.clear();
  decision.planned_moves = 0;
  decision.outcome = is_done ? crds::kResizing : "Advised";
  decision.message =
      std::format("call after superstep {}: {} more CPU in place, without a pause; superstep predicted {} → {}",
                  decision.superstep.value, counted(resizes.size(), "rank") + (resizes.size() == 1 ? " gets" : " get"),
                  crds::duration_text(first.superstep_before), crds::duration_text(first.superstep_after));
  for (const crds::ResizeEntry& entry : resizes) call.text.push_back(crds::resize_text(entry));
  decision.resizes = resizes;
  call.moves.clear();
  call.predicted_gain_seconds = 0;
  if (is_done) call.resizes = std::move(resizes);
}

void ask_for(const std::vector<crds::ResizeEntry>& planned, Time now, crds::BspJobStatus& status) {
  auto& all = status.resizes;
  for (const crds::ResizeEntry& entry : planned) {
    std::erase_if(all, [&](const RankResize& r) { return r.rank == entry.rank; });
    if (all.size() >= crds::kMostResizes) {
      const auto oldest = std::ranges::find_if(all, [](const RankResize& r) { return r.phase != ResizePhase::kAsked; });
      if (oldest == all.end()) return;
      all.erase(oldest);
    }
    all.push_back({.rank = entry.rank,
                   .pod = status.ranks[entry.rank.value].pod,
                   .node = entry.node,
                   .from_milli = entry.from_milli,
                   .to_milli = entry.to_milli,
                   .phase = ResizePhase::kAsked,
                   .time = now,
                   .message = {}});
  }
}

bool settle_resizes(const Observed& o, crds::BspJobStatus& status, std::vector<Event>& events) {
  bool changed = std::erase_if(status.resizes, [&](const RankResize& r) { return is_over(r, o); }) > 0;
  std::string told;  // one quota refuses many ranks alike
  for (RankResize& resize : status.resizes) {
    if (resize.phase != ResizePhase::kAsked && resize.phase != ResizePhase::kResized) continue;
    const AppFacts& app = *container_to_resize(resize, o);
    auto end = resize.phase == ResizePhase::kAsked ? end_of_resize(resize, app, o) : taken_away(resize, app);
    if (!end) continue;
    changed = true;
    resize.phase = end->phase;
    resize.message = std::move(end->message);
    resize.time = o.now;
    if (resize.phase == ResizePhase::kResized) ++status.migrations.resized;
    if (resize.phase == ResizePhase::kRefused && resize.message == std::exchange(told, resize.message)) continue;
    events.push_back(event_of_resize(resize));
  }
  return changed;
}

std::vector<PodResize> resizes_to_make(const Observed& o) {
  std::map<std::string, PodResize> by_pod;
  for (const RankResize& resize : o.job.status.resizes) {
    const AppFacts* app = container_to_resize(resize, o);
    if (!app) continue;
    const auto from = static_cast<std::int64_t>(resize.from_milli), to = static_cast<std::int64_t>(resize.to_milli);
    const bool asks = resize.phase == ResizePhase::kAsked && app->cpu_limit == from;
    if (!asks && !is_to_be_undone(resize, *app)) continue;
    const std::int64_t limit = asks ? to : from;
    // The request by as much, so that the pod's QoS class stays.
    const std::int64_t request = std::max<std::int64_t>(app->cpu_request + limit - app->cpu_limit, 0);
    PodResize& pod = by_pod[resize.pod];
    pod.pod = resize.pod;
    pod.seats.push_back({o.job.status.ranks[resize.rank.value].local, limit, request});
  }
  std::vector<PodResize> all;
  for (auto& [name, pod] : by_pod) all.push_back(std::move(pod));
  return all;
}

const RankResize* resize_under_way(const Observed& o) {
  for (const RankResize& resize : o.job.status.resizes) {
    const AppFacts* app = container_to_resize(resize, o);
    if (!app) continue;
    if (resize.phase == ResizePhase::kAsked || o.being_resized.contains(resize.pod)) return &resize;
    if (is_to_be_undone(resize, *app) && !o.not_resized.contains(resize.pod) && o.resizing_for < kNodeTakes)
      return &resize;
  }
  return nullptr;
}

std::int64_t cpu_limit_of(const Observed& o, const crds::RankPlace& place) {
  if (const AppFacts* app = o.app(place.seat()); app && app->cpu_limit > 0) return app->cpu_limit;
  const nlohmann::json* app = crds::app_container(o.job.spec);
  return app ? cpu_in(part_at(*app, "resources"), "limits") : 0;
}

double raised_by(const Observed& o, const crds::RankPlace& place) {
  const nlohmann::json* app = crds::app_container(o.job.spec);
  const std::int64_t usual = app ? cpu_in(part_at(*app, "resources"), "limits") : 0;
  const AppFacts* here = o.app(place.seat());
  if (usual <= 0 || !here || here->cpu_limit <= usual) return 1;
  return static_cast<double>(here->cpu_limit) / static_cast<double>(usual);
}

bool is_much_throttled(double share) { return share > kMuchThrottled; }

std::vector<std::uint8_t> held_back_by_limit(const Observed& o) {
  std::vector<std::uint8_t> held_back(o.job.status.ranks.size());
  std::unordered_map<std::string_view, double> speed;  // by node; few jobs need it
  for (std::size_t i = 0; i < held_back.size(); ++i) {
    const crds::RankPlace& place = o.job.status.ranks[i];
    const SidecarFacts* sidecar = o.sidecar(place.seat());
    if (!sidecar || !is_much_throttled(sidecar->throttled)) continue;
    const std::int64_t limit = cpu_limit_of(o, place);
    if (limit <= 0) continue;
    if (speed.empty())
      for (const observe::NodeFacts& node : o.nodes) speed.emplace(node.name, node.speed);
    const auto node = speed.find(place.node);
    held_back[i] = static_cast<double>(limit) < 1000 * (node == speed.end() ? 1 : node->second);
  }
  return held_back;
}

}  // namespace bsp::reconcile
