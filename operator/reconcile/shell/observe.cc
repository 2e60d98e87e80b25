// Observing: what cache and sidecars know of a job, as values for the kernels, and the requests for superstep reports.
#include <algorithm>
#include <format>
#include <utility>

#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/kernel/silence.h"
#include "operator/reconcile/shell/job_shell.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

// What is wrong with the nodes of this job's ranks, for the message about a lost rank.
void note_nodes(const SeenNodes& nodes, const crds::BspJobStatus& status, Observed& o) {
  std::set<std::string> used;
  for (const crds::RankPlace& place : status.ranks)
    if (!place.node.empty()) used.insert(place.node);
  for (const std::string& name : used) {
    const SeenNode* const node = nodes.find(name);
    if (node && !node->leaving.empty()) o.leaving[name] = node->leaving;
    if (!node)
      o.node_troubles[name] = "is gone";
    else if (node->state != NodeState::kAnswers)
      o.node_troubles[name] = "is not ready";
  }
}

}  // namespace

Observed JobShell::observe(crds::BspJob job) {
  Observed o = read_cluster(std::move(job));
  clocks_.fill(o);
  const bool runs = o.job.status.phase == crds::JobPhase::kRunning || o.job.status.phase == crds::JobPhase::kMigrating;
  o.everywhere = sidecar_thread_.note_hearing(job_ref_.uid, runs ? hearing_of(o) : Hearing{});
  return o;
}

Observed JobShell::read_cluster(crds::BspJob job) {
  Observed o;
  o.now = SystemClock{}.now();
  o.steady = std::chrono::steady_clock::now();
  const auto nodes = nodes_.seen_by(job.spec.sets.label, job.spec.pod_template, [&] { return cache_.list(kNode); });
  job.spec.sets.label = nodes->label;
  if (job.spec.sidecar.resources.is_null()) job.spec.sidecar.resources = options_.sidecar_resources;
  seen_ = reservations_.read(o.now);
  o.nodes = nodes_for(job, *nodes);
  if (job.status.phase == crds::JobPhase::kPending && options_.pods.scheduled) o.queue = queue_of(job, *nodes);
  o.caps = options_.caps;
  o.elsewhere = moves_elsewhere(seen_, job_ref_.key());
  o.capacity_may_come = options_.pods.scheduled;
  o.images_unreadable = !options_.image_defaults;
  pods_.observe(o);
  std::map<std::string, std::string> reachable;
  const std::string mine = job_ref_.key();
  for (const kube::Object& pod : cache_.find(kPod, kByJob, mine)) {
    if (!job_ref_.owns(pod)) continue;  // of an earlier job of this name
    PodFacts facts = pod_facts(pod);
    const std::string name = kube::metadata_text(pod, "name");
    const bool over = crds::is_finished(job.status.phase) && has_ended(pod);
    if (!facts.address.empty() && !over) reachable[name] = facts.address;
    o.pods.emplace(name, std::move(facts));
  }
  judge_lost_pods(*nodes, job.status, o);
  // A pod that is being deleted may take long to end, so its link stays, but what it says no longer counts. A lost pod must
  // not hear the operator.
  std::erase_if(reachable, [&](const auto& entry) { return o.pods.at(entry.first).lost; });
  note_nodes(*nodes, job.status, o);
  for (const kube::Object& object : cache_.find(kRankMigration, kByJob, mine))
    if (const std::string owner = owner_of(object).uid;
        owner.empty() || owner == job_ref_.uid)  // made by hand, or by us
      if (auto migration = crds::rank_migration_from_json(object)) o.migrations.push_back(std::move(*migration));
  sidecars_->track(reachable);
  sidecars_->begin_wave(job.status.wave);
  o.sidecars = sidecars_->facts();
  std::erase_if(o.sidecars, [&](const auto& entry) {
    const auto pod = o.pods.find(entry.first);
    return pod == o.pods.end() || pod->second.deleting;
  });
  o.round_trip_seconds = sidecars_->round_trip_seconds();

  const bool runs = job.status.phase == crds::JobPhase::kRunning || job.status.phase == crds::JobPhase::kMigrating;
  if (!runs || !job.status.epoch) {
    if (!crds::is_finished(job.status.phase)) advisor_.forget();
    superstep_ended_ = progress_ = {};
    newest_ = 0;
    o.job = std::move(job);
    return o;
  }
  advisor_.begin(job);
  for (const wire::RankReport& report : sidecars_->take_reports()) {
    if (advisor_.add(report) && report.rank < job.status.ranks.size())
      sidecars_->note_completed(job.status.ranks[report.rank].pod, report.completed);
  }
  for (const auto& [pod, sidecar] : o.sidecars)
    if (sidecar.completed > newest_) {
      newest_ = sidecar.completed;
      progress_ = o.steady;
    }
  o.progress = progress_;
  std::uint64_t completed = ~0ull;
  for (const crds::RankPlace& place : job.status.ranks)
    if (const auto it = o.sidecars.find(place.pod); it != o.sidecars.end())
      completed = std::min(completed, it->second.completed);
  if (superstep_ended_ == SteadyTime{} || completed != completed_ || job.status.phase != crds::JobPhase::kRunning) {
    completed_ = completed;
    superstep_ended_ = o.steady;
  }
  o.superstep_ended = superstep_ended_;
  o.superstep_seconds = advisor_.superstep_seconds();
  o.job = std::move(job);
  return o;
}

void JobShell::judge_lost_pods(const SeenNodes& nodes, const crds::BspJobStatus& status, Observed& o) {
  lost_.judge(
      o.pods,
      [&](const std::string& name) {
        const SeenNode* const node = nodes.find(name);
        return node ? node->state : NodeState::kDead;
      },
      status.epoch ? &*status.epoch : nullptr, std::chrono::steady_clock::now());
}

std::vector<observe::NodeFacts> JobShell::nodes_for(const crds::BspJob& job, const SeenNodes& all) const {
  const std::string mine = job_ref_.key();
  const Resources rank = requests_of_rank(job.spec.pod_template, job.spec.sidecar.resources);
  const auto reserved = reserved_by_others(seen_, mine, [&](const std::string& name_space, const std::string& pod) {
    return usage_.is_placed(name_space, pod);
  });
  std::vector<observe::NodeFacts> nodes;
  for (const SeenNode& node : all.nodes) {
    observe::NodeFacts facts = node.facts;
    if (facts.set.empty()) continue;
    // Whatever else runs on a node takes capacity there.
    Resources others = usage_.of_others(facts.name, mine);
    if (const auto here = reserved.find(facts.name); here != reserved.end()) others += here->second;
    if (options_.pods.scheduled) {
      Resources free = node.allocatable;
      free -= others;
      const std::uint32_t slots = slots_of(free, rank);
      facts.slots = std::max(slots, 1u);  // 0 would mean that there is no limit
      facts.cordoned = slots == 0 || !node.takes_pods;
      if (node.allocatable.memory > 0) facts.memory = free.memory;
    } else {
      facts.taken = static_cast<std::uint32_t>(others.pods);
    }
    nodes.push_back(std::move(facts));
  }
  return nodes;
}

StartQueue JobShell::queue_of(const crds::BspJob& job, const SeenNodes& all) const {
  StartQueue queue{.ahead = waiting_jobs_.ahead_of(waiting_job(job_ref_.key(), job)), .holders = {}, .all = {}};
  const Resources rank = requests_of_rank(job.spec.pod_template, job.spec.sidecar.resources);
  const auto wanted = [&](const std::string& set) {
    return !set.empty() && (job.spec.sets.names.empty() || std::ranges::contains(job.spec.sets.names, set));
  };
  std::set<std::string> holders;
  for (const SeenNode& node : all.nodes) {
    if (!wanted(node.facts.set)) continue;
    for (std::string& key : usage_.jobs_on(node.facts.name)) holders.insert(std::move(key));
    if (!node.takes_pods) continue;
    Resources free = node.allocatable;
    free -= usage_.of_no_job(node.facts.name);
    queue.all[node.facts.set] += slots_of(free, rank);
  }
  for (const auto& [key, reservation] : seen_.of_job)
    if (std::ranges::any_of(reservation.slots, [&](const ReservedSlot& slot) { return wanted(slot.set); }))
      holders.insert(key);
  holders.erase(job_ref_.key());
  queue.holders.assign(holders.begin(), holders.end());
  return queue;
}

// Other sidecars may hear one that does not answer the operator (silence.h).
void JobShell::ask_who_hears(const Observed& o) {
  constexpr std::size_t kAsked = 3;
  if (!o.job.status.epoch) return;
  std::vector<std::string> silent;
  std::vector<const wire::Member*> others;
  for (const wire::Member& member : o.job.status.epoch->members) {
    const auto it = o.sidecars.find(member.pod);
    if (it == o.sidecars.end()) continue;
    if (it->second.unreachable_since != SteadyTime{})
      silent.push_back(member.pod);
    else if (it->second.status && others.size() < kAsked)
      others.push_back(&member);
  }
  if (silent.empty()) return;
  for (const wire::Member* member : others)
    sidecars_->ask_who_hears(member->pod, std::format("rank {}", member->rank), silent);
}

// Reports come through the Set Managers.
void JobShell::gather(const Observed& o) {
  const auto now = std::chrono::steady_clock::now();
  if (!advisor_.active() || !o.job.status.epoch || now < next_report_) return;
  if (o.job.status.phase != crds::JobPhase::kRunning && o.job.status.phase != crds::JobPhase::kMigrating) return;
  // Once a superstep if they are long; several short ones at once, since each report costs a reconcile. The ring holds 256.
  const double pace = o.superstep_seconds > 0 ? o.superstep_seconds : 0.1;
  const double least = std::clamp(100 * pace, 0.05, 0.25);
  next_report_ = now + std::chrono::duration_cast<std::chrono::milliseconds>(
                           std::chrono::duration<double>(std::clamp(pace, least, 0.5)));
  if (stands_still(o)) return;  // no superstep ends meanwhile, and the move needs the pods' share of a core
  const auto managers = set_managers(o);
  std::map<std::uint32_t, Sidecars::SetRequest> requests;  // by Set
  for (const wire::Member& member : o.job.status.epoch->members) {
    const auto manager = managers.find(member.set);
    if (manager == managers.end()) continue;
    Sidecars::SetRequest& request = requests[member.set];
    if (request.manager.empty()) request = {manager->second, json::array()};
    request.members.push_back({{"rank", member.rank},
                               {"address", member.address},
                               {"pod", member.pod},
                               {"since", advisor_.since(member.rank)}});
  }
  for (const auto& [set, request] : requests) sidecars_->ask_reports(request);
}

void JobShell::note_advice(const Observed& o, const Advice& advice) {
  for (const std::string& line : advice.text) log_debug(line);
  for (const std::string& line : advice.records) options_.record(job_ref_.at.name_space, job_ref_.at.name, line);
  for (const RealisedGain& gain : advice.gains)
    for (const crds::RankMigration& m : o.migrations)
      if (m.metadata.name == gain.migration) {
        crds::RankMigration with_gain = m;
        with_gain.status.realised_gain_seconds = gain.seconds;
        migrations_.add(with_gain);
      }
}

}  // namespace bsp::reconcile
