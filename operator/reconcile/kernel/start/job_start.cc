// Pending and Starting: ranks get places, pods are created, and when all are ready the first epoch opens.
#include <algorithm>
#include <format>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/json/fields.h"
#include "operator/decide/model/mapping.h"
#include "operator/reconcile/kernel/checkpoints/adoption.h"
#include "operator/reconcile/kernel/checkpoints/checkpoints.h"
#include "operator/reconcile/kernel/job_kernel.h"
#include "operator/reconcile/kernel/rebuild.h"
#include "operator/reconcile/kernel/rescheduling/scheduler_state.h"
#include "operator/reconcile/kernel/start/gang.h"
#include "operator/reconcile/kernel/start/placement.h"
#include "operator/reconcile/kernel/start/start_platform.h"
#include "operator/reconcile/kernel/status.h"

namespace bsp::reconcile {

using crds::JobPhase;

namespace {

std::vector<observe::NodeFacts> with(const std::vector<observe::NodeFacts>& others,
                                     std::vector<observe::NodeFacts> nodes) {
  nodes.insert(nodes.end(), others.begin(), others.end());
  return nodes;
}
}  // namespace

void JobKernel::pending() {
  if (held()) return suspend();
  if (pods_left()) {  // of an earlier attempt, or of one whose status is gone
    if (!is_blank(o.job.status) || !rebuild()) delete_all_pods();
    return;
  }
  if (past_deadline()) return fail_by_deadline();
  if (waits_for_pods()) return;
  if (o.images_unreadable)
    if (const auto whole = check_without_image(o.job.spec); !whole)
      return enter(JobPhase::kFailed, "TemplateIncomplete", whole.error().message);
  const Adoption adoption = adopt_set(o, status());
  if (adoption.waits) return wait_for_capacity(kWaitingForSource, adoption.trouble);
  if (!adoption.trouble.empty()) return enter(JobPhase::kFailed, kNoSetToRestore, adoption.trouble);
  const auto sets = observe::set_names(o.job.spec.sets, o.nodes);
  const bool by_scheduler = starts_by_scheduler(o);
  std::vector<observe::NodeFacts> to_come;
  for (const std::string& name : sets) {
    if (std::ranges::contains(o.nodes, name, &observe::NodeFacts::set)) continue;
    if (!by_scheduler) return no_such_set(name);
    to_come.push_back({.name = "", .set = name, .cordoned = true});  // a node without a free slot so far
  }
  const bool shares_pods = most_seats(o.job.spec) > 1;
  const std::uint32_t generation = status().ranks.empty() ? 0 : status().ranks.front().generation;
  if (by_scheduler && !shares_pods && !has_pod_group(generation, o.job.spec.ranks)) return;
  const decide::Platform platform = platform_at_start(o, nodes_at_start(with(to_come, o.nodes)));
  auto mapping = decide::initial_mapping(o.job.spec.initial_mapping, o.job.spec.ranks, platform);
  if (!mapping && by_scheduler) mapping = map_beyond_room(with(to_come, nodes_without_jobs(o)));
  bool passes = false;
  if (mapping && !by_scheduler && !o.queue.passable.empty()) {
    if (auto beside = map_to(o.queue.passable)) mapping = std::move(beside), passes = true;
  }
  if (o.capacity_may_come) {
    if (const std::string why = by_scheduler || passes ? "" : waits_for_slots(sets, mapping.has_value()); !why.empty())
      return wait_for_capacity(kWaitingForSlots, why);
    if (!mapping)
      return wait_for_capacity(kNoRoom, o.queue.lacking.empty()
                                            ? mapping.error().message
                                            : std::format("{}; {}", mapping.error().message, o.queue.lacking));
  }
  if (!mapping) return enter(JobPhase::kFailed, kNoRoom, mapping.error().message);
  const crds::RankPlaces ranks_before = status().ranks;
  const std::string label_before = status().set_label;
  place_all(*mapping, platform);
  if (by_scheduler && shares_pods && !has_pod_group(status().ranks.front().generation - 1, pods_of(status().ranks))) {
    status().ranks = ranks_before;
    status().set_label = label_before;
    return;
  }
  for (const observe::NodeFacts& first : to_come)
    if (std::ranges::contains(status().ranks, first.set, &crds::RankPlace::set))
      notices.events.push_back({"Warning", kNoSuchSet, has_no_node(first.set) + "; pods wait for the first one"});
  // Slots that the scheduler may give to none of these pods for hours must not be kept from other jobs.
  if (!by_scheduler)
    for (const crds::RankPlace& place : status().ranks)
      change.reserve.push_back({place.pod, place.rank.value, place.set, place.node});
  if (is_on(status(), kWaitingForSlots))
    turn_condition(o, status(), kWaitingForSlots, false, "SlotsReserved", "the slots of all ranks are reserved");
  if (status().start_time == Time{}) status().start_time = o.now;
  status().epoch.reset();
  status().wave_state = nullptr;
  status().rescheduler = for_next_attempt(status().rescheduler);
  if (makes_sets(o.job) && !status().checkpoint) status().checkpoint.emplace();
  choose_set(status());
  const crds::StoredSet* const set = set_of_start(status());
  status().superstep = set ? set->superstep : Superstep{};
  // An attempt begins with the operator's present image, unless its processes come from a set: they need the one in which they were dumped.
  if (!set) status().runtime_image.clear();
  if (status().epochs_used == 0) status().epochs_used = 1;  // 0 means "never opened" to a sidecar
  enter(JobPhase::kStarting, "Mapped", mapped());
}

bool JobKernel::rebuild() {
  const Rebuilt rebuilt = rebuild_status(o);
  if (const auto* status = std::get_if<crds::BspJobStatus>(&rebuilt)) {
    change.status = *status;
    change.status.phase = JobPhase::kPending;
    // The next decisions are worse for a while, and whoever compares forecasts has to know why.
    enter(
        status->phase, kStatusRebuilt,
        std::format(
            "the status had been removed; it is what the pods say now. What no pod says went with it: calibration and "
            "the state of decisions, which are measured again{}",
            o.job.spec.checkpoint.storage ? ", and which checkpoint sets there are" : ""));
    if (status->phase == JobPhase::kSucceeded) succeed();
    return true;
  }
  if (const auto* without = std::get_if<RebuildWithout>(&rebuilt)) {
    work.delete_pods = without->pods;
    return true;
  }
  const auto* later = std::get_if<RebuildLater>(&rebuilt);
  if (later && o.blank_for < kRebuildLimit) return true;
  if (status().reason == kStatusLost) return false;
  status().reason = kStatusLost;
  status().epochs_used = epochs_seen(o);
  status().message =
      std::format("the status was removed and can't be rebuilt from the pods ({}): the job starts from its beginning",
                  later ? later->why : std::get<CannotRebuild>(rebuilt).why);
  notices.events.push_back({"Warning", kStatusLost, status().message});
  stores = true;
  return true;
}

void JobKernel::place_all(const std::vector<ProcessorId>& mapping, const decide::Platform& platform) {
  status().set_label = o.job.spec.sets.label;
  // The processes of a set run with the runtime that they were dumped in, which may know one rank a pod.
  const bool may_resume = status().checkpoint && !status().checkpoint->sets.empty();
  const bool unset = o.job.spec.ranks_per_pod.is_unset();
  status().shares_pods = unset && crds::may_share_pods(o.job.spec) && (!may_resume || status().shares_pods);
  status().ranks.resize(mapping.size());
  for (std::uint32_t r = 0; r < mapping.size(); ++r) {
    crds::RankPlace& place = status().ranks[r];
    const decide::Processor& processor = platform.processor(mapping[r]);
    const std::uint32_t generation = place.generation;
    place = {};
    place.rank = {r};
    place.set = platform.sets[processor.set.value].name;
    place.node = processor.name;
    place.generation = generation;
  }
  seat_all();
}

// Ranks on one node share pods, each of which is named after its first rank. A pod's generation is none that any of its ranks
// has had.
void JobKernel::seat_all() {
  const std::uint32_t most = most_seats(o.job.spec, status());
  const bool fills = fills_nodes(o.job.spec, status());
  std::map<std::pair<std::string_view, std::string_view>, std::vector<std::uint32_t>> filling;  // pods, by Set and node
  const auto seat = [&](const std::vector<std::uint32_t>& ranks) {
    std::uint32_t generation = 0;
    for (const std::uint32_t r : ranks) generation = std::max(generation, status().ranks[r].generation);
    for (std::uint32_t local = 0; local < ranks.size(); ++local) {
      crds::RankPlace& place = status().ranks[ranks[local]];
      place.pod = pod_name(o.job.metadata.name, ranks.front(), generation);
      place.local = local;
      place.generation = generation + 1;
    }
  };
  for (const crds::RankPlace& place : status().ranks) {
    std::vector<std::uint32_t>& ranks = filling[{place.set, place.node}];
    // Where a pool's first node is still to come, nobody knows what it has slots for.
    if (ranks.size() >= most || (fills && place.node.empty() && !ranks.empty())) seat(std::exchange(ranks, {}));
    ranks.push_back(place.rank.value);
  }
  for (const auto& [at, ranks] : filling) seat(ranks);
}

std::string JobKernel::mapped() {
  const std::uint32_t ranks = o.job.spec.ranks;
  const std::string by_speed = order_by_speed(o.job.spec, status().ranks);
  return std::format("{} {} mapped {}{}", ranks, ranks == 1 ? "rank is" : "ranks are",
                     crds::to_string(o.job.spec.initial_mapping),
                     by_speed.empty() ? "" : ", the fastest Set first: " + by_speed);
}

void JobKernel::starting() {
  if (const auto failure = find_failure(o, job_limits)) {
    if (container_ends(*failure)) return;
    return fail_attempt(*failure);
  }
  if (past_deadline()) return fail_by_deadline();
  if (held()) return suspend();
  if (went_back()) return;
  work.starting = true;
  group = group_of_start();
  NotReady not_ready;
  wire::EpochPlan plan;
  plan.sets = observe::set_names(o.job.spec.sets, o.nodes);
  for (const crds::RankPlace& place : status().ranks) {
    const PodFacts* pod = o.pod(place.seat());
    if (!pod) {
      if (!create_pod(place, not_ready)) return;
      continue;
    }
    check_pod(place, *pod, not_ready);
    add_member(plan, place, *pod);
  }
  keep_pod_group();
  if (!not_ready.all.empty()) return wait_for(not_ready);
  if (is_on(status(), kPodsRefused)) turn_condition(o, status(), kPodsRefused, false, "Created", "the pods are there");
  if (!status().epoch && !resumed()) return;
  if (is_on(status(), kStartDelayed))
    turn_condition(o, status(), kStartDelayed, false, "Started", "every container is started");
  if (!status().epoch) {
    plan.epoch = status().epochs_used++;
    plan.pmix_namespace = std::format("{}-e{}", o.job.metadata.uid, plan.epoch);
    set_cpu_level(plan);
    status().epoch = std::move(plan);
    if (const crds::StoredSet* set = set_of_start(status())) give_up_newer(set->id, status());
    status().runtime_image = runtime_image_of(o);
    stores = true;
    return;
  }
  if (!open_epoch()) return;
  if (const crds::StoredSet* set = set_of_start(status()))
    notices.events.push_back({"Normal", kResumedFrom,
                              std::format("the ranks go on from set {}, which was made after superstep {} at {}",
                                          set->id, set->superstep.value, to_rfc3339(set->time))});
  enter(JobPhase::kRunning, "Running", "every rank runs");
}

// Programs wait for it, since nothing is known of the ranks' CPUs before their sidecars run there.
void JobKernel::set_cpu_level(wire::EpochPlan& plan) {
  if (o.job.spec.cpu != crds::CpuLevel::kCommon) return;
  const observe::CpuFacts::Common common = cpu_facts(o).common(plan.sets);
  if (!common.features.known())
    return notices.events.push_back(
        {"Warning", "CPULevelUnknown",
         "spec.cpu: Common has no effect, as no sidecar says which features its CPU has: its "
         "runtime image is older than the operator"});
  plan.cpu_level = common.features.bits();
  std::string text =
      std::format("the ranks start with what the CPUs of the job's Sets have in common: {}", common.features.level());
  if (!common.unknown_sets.empty()) {
    FirstFew sets;
    for (const std::string& set : common.unknown_sets) sets.add(set);
    text += std::format(
        "; nothing is known of the CPUs in {}, where no pod of this namespace has run, so they are not counted: "
        "spec.initialMapping: RoundRobin starts a rank in each Set",
        sets.text());
  }
  notices.events.push_back({common.unknown_sets.empty() ? "Normal" : "Warning", "CPULevel", text});
}

namespace {
// A scheduler that knows of the pod has said something by then.
constexpr std::chrono::seconds kSchedulerAnswers{15};
}  // namespace

void JobKernel::NotReady::add(const crds::RankPlace& place, std::string_view lack, bool of_others) {
  all.add(std::format("{} of rank {} {}", name_of(place.seat()), place.rank.value, lack));
  for_others |= of_others;
}

std::vector<std::uint32_t> JobKernel::ranks_beside(const crds::RankPlace& first) const {
  std::vector<std::uint32_t> ranks;
  if (most_seats(o.job) == 1) return ranks;
  for (const crds::RankPlace& place : o.job.status.ranks)  // seats were filled in the order of ranks
    if (place.local != 0 && place.pod == first.pod) ranks.push_back(place.rank.value);
  return ranks;
}

bool JobKernel::create_pod(const crds::RankPlace& place, NotReady& not_ready) {
  if (place.local != 0) return true;  // with the rank that it is named after
  if (!o.being_made.contains(place.pod)) {
    PodRequest& request = work.create_pods.emplace_back(PodRequest{.rank = place.rank.value,
                                                                   .generation = place.generation - 1,
                                                                   .attempt = status().attempt,
                                                                   .set = place.set,
                                                                   .node = place.node,
                                                                   .pod_group = group,
                                                                   .beside = ranks_beside(place),
                                                                   .runtime_image = runtime_image_of(o)});
    keep_off_unfit_nodes(request);
  }
  not_ready.missing = true;
  const auto why = o.not_created.find(place.pod);
  if (why == o.not_created.end()) {
    not_ready.add(place, "does not exist");
    return true;
  }
  if (why->second.code == ErrorCode::kInvalid) {
    fail_attempt(
        {place.rank.value,
         {},
         "InvalidPod",
         std::format("spec.template: the pod of rank {} is refused: {}", place.rank.value, why->second.message),
         true});
    return false;
  }
  not_ready.add(place, "can't be created: " + why->second.message, true);
  if (why->second.code == ErrorCode::kRefused && not_ready.refused.empty())
    not_ready.refused = std::format("pod {} can't be created: {}", place.pod, why->second.message);
  return true;
}

void JobKernel::check_pod(const crds::RankPlace& place, const PodFacts& pod, NotReady& not_ready) const {
  // The pod's first rank says what the pod as a whole lacks.
  if (place.local != 0 && (pod.address.empty() || !pod.start_delay.empty())) return;
  if (!pod.unscheduled.empty() && pod.address.empty()) {
    not_ready.add(place, "finds no node: " + pod.unscheduled, true);
    if (lacks_claim(pod.unscheduled) && not_ready.refused.empty())
      not_ready.refused = std::format("pod {} finds no node: {}", place.pod, pod.unscheduled);
    return;
  }
  if (!pod.start_delay.empty()) {
    not_ready.add(place, "isn't started: " + pod.start_delay, true);
    if (!not_ready.delay.empty()) return;
    not_ready.delay = std::format("pod {}: {}", place.pod, pod.start_delay);
    not_ready.by_image = pod.delayed_by_image;
    return;
  }
  if (pod.node.empty() && pod.address.empty() && o.starting_for > kSchedulerAnswers) {
    const std::string scheduler = text_at(part_at(o.job.spec.pod_template, "spec"), "schedulerName");
    not_ready.add(place,
                  std::format("has no node, and scheduler {} says nothing of it{}",
                              scheduler.empty() ? "default-scheduler" : scheduler,
                              scheduler.empty() ? "" : " (spec.template.spec.schedulerName)"),
                  true);
    return;
  }
  if (exited_well(place)) return;  // a short program, not seen to run
  const wire::RankStatus* s = o.said(place.seat());
  if (pod.address.empty())
    not_ready.add(place, "has no address");
  else if (!s)
    not_ready.add(place, "has a sidecar that never answered");
  else if (!s->init_connected)
    not_ready.add(place, s->blocked_reason.empty() ? "has no bsp-init" : s->blocked_reason);
}

void JobKernel::wait_for(const NotReady& not_ready) {
  if (gives_slots_back(not_ready)) return;
  const bool was = is_on(status(), kStartDelayed);
  if (was || !not_ready.delay.empty())
    turn_condition(o, status(), kStartDelayed, !not_ready.delay.empty(), "ContainerWaits", not_ready.delay);
  if (!was && !not_ready.delay.empty()) {
    notices.events.push_back({"Warning", kStartDelayed, not_ready.delay});
    stores = true;
  }
  const bool too_long = o.start_counts_for > job_limits.start;
  // Once there is an epoch, find_failure() sees losses.
  if (!status().epoch && too_long && !not_ready.delay.empty())
    // It has had its full time, so another attempt would time out too.
    fail_attempt({{},
                  {},
                  not_ready.by_image ? "ImageNotFound" : "CannotStart",
                  std::format("{}, for {:.0f} s", not_ready.delay, to_seconds(job_limits.start)),
                  // With a set the job has run, elsewhere.
                  set_of_start(status()) == nullptr});
  else if (!status().epoch && too_long)
    fail_attempt({{},
                  {},
                  "StartTimeout",
                  std::format("not every rank's pod was ready after {:.0f} s: {}", to_seconds(job_limits.start),
                              not_ready.all.text()),
                  false});
  else
    status().message = not_ready.for_others ? not_ready.all.text() : mapped();
}

// Prepares and opens the committed epoch where it is not open yet; true once it is open everywhere.
bool JobKernel::open_epoch() {
  const wire::EpochPlan& epoch = *status().epoch;
  const bool all_prepared = std::ranges::all_of(epoch.members, [&](const wire::Member& m) {
    const wire::RankStatus* s = o.said(seat_of(m));
    return s && (s->prepared_epoch >= epoch.epoch || s->epoch >= epoch.epoch);
  });
  bool open = true;
  migrate::Action::Plan plan;
  const wire::Token token = newest_token(status(), std::nullopt);
  const auto act = [&](migrate::Action action) {
    action.token = token;
    work.actions.push_back(std::move(action));
  };
  std::set<std::string_view> asked;
  for (const wire::Member& m : epoch.members) {
    const wire::RankStatus* s = o.said(seat_of(m));
    if (s && s->epoch >= epoch.epoch && s->phase != wire::RankPhase::kOpening) continue;
    if (exited_well(status().ranks[m.rank])) continue;
    open = false;
    if (!s) continue;
    if (s->prepared_epoch < epoch.epoch) {
      if (!asked.insert(m.pod).second) continue;  // a sidecar prepares the epoch for all seats of its pod
      if (!plan) plan = std::make_shared<const wire::EpochPlan>(epoch);
      act(migrate::Action::prepare_epoch(seat_of(m), plan));
    } else if (all_prepared) {
      act(migrate::Action::open_epoch(seat_of(m), epoch.epoch));
    }
  }
  return open;
}

}  // namespace bsp::reconcile
