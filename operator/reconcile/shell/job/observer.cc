#include "operator/reconcile/shell/job/observer.h"

#include <algorithm>
#include <utility>

#include "operator/kube/fields.h"
#include "operator/reconcile/kernel/checkpoints/reclaim.h"
#include "operator/reconcile/kernel/waves.h"
#include "operator/reconcile/shell/job/workloads.h"

namespace bsp::reconcile {
namespace {

// What is wrong with the nodes of this job's ranks, for the message about a lost rank.
void note_nodes(const SeenNodes& nodes, const std::set<std::string>& gone, const crds::BspJobStatus& status,
                Observed& o) {
  std::set<std::string> used;
  for (const crds::RankPlace& place : status.ranks)
    if (!place.node.empty()) used.insert(place.node);
  for (const std::string& name : used) {
    const SeenNode* const node = nodes.find(name);
    if (node && !node->leaving.empty()) o.leaving[name] = node->leaving;
    if (gone.contains(name))
      o.leaving[name] = o.node_troubles[name] = "was deleted";
    else if (!node)
      o.node_troubles[name] = "is not known";
    else if (node->state != NodeState::kAnswers)
      o.node_troubles[name] = "is not ready";
  }
}

// What each node's ranks have got beyond the template's CPU: no slot has it.
std::map<std::string, std::int64_t> raised_on(const std::map<std::string, PodFacts>& pods, const crds::BspJob& job) {
  std::map<std::string, std::int64_t> raised;
  const nlohmann::json* app = crds::app_container(job.spec);
  const std::int64_t usual = app ? cpu_requested(part_at(*app, "resources")) : 0;
  if (usual == 0) return raised;  // a LimitRange may have chosen it
  for (const auto& [name, pod] : pods)
    for (const AppFacts& one : pod.apps)
      if (one.cpu_request > usual) raised[pod.node] += one.cpu_request - usual;
  return raised;
}

Resources rank_requests(const crds::BspJob& job) {
  return requests_of_rank(job.spec.pod_template, job.spec.sidecar.resources);
}

}  // namespace

JobObserver::JobObserver(const ShellParts& parts, const JobRef& job)
    : cache_(parts.cache),
      nodes_(parts.nodes),
      usage_(parts.usage),
      reservations_(parts.reservations),
      waiting_jobs_(parts.waiting_jobs),
      options_(parts.options),
      job_ref_(job) {}

Cluster JobObserver::read(crds::BspJob job, std::set<std::string> being_made) const {
  Cluster cluster;
  cluster.now = SystemClock{}.now();
  cluster.steady = std::chrono::steady_clock::now();
  cluster.nodes =
      nodes_.seen_by(job.spec.sets.label, kept_label(job), job.spec.pod_template, [&] { return cache_.list(kNode); });
  job.spec.sets.label = cluster.nodes->label;
  if (job.spec.sidecar.resources.is_null()) job.spec.sidecar.resources = options_.sidecar_resources;
  cluster.job = std::move(job);
  cluster.reservations = reservations_.read(cluster.now);
  cluster.being_made = std::move(being_made);
  read_pods(cluster);
  read_migrations(cluster);
  return cluster;
}

std::map<Seat, std::string> JobObserver::reachable() const {
  Cluster cluster;
  read_pods(cluster);
  return std::move(cluster.reachable);
}

void JobObserver::read_pods(Cluster& cluster) const {
  for (const kube::Object& pod : cache_.find(kPod, kByJob, job_ref_.key())) {
    if (!job_ref_.owns(pod)) continue;  // of an earlier job of this name
    const std::string name = kube::metadata_text(pod, "name");
    if (name == remover_name({job_ref_.at.name, job_ref_.uid})) continue;  // no rank's
    PodFacts facts = pod_facts(pod);
    const bool over = crds::is_finished(cluster.job.status.phase) && has_ended(pod);
    if (!facts.address.empty() && !over)
      for (std::uint32_t local = 0; local < facts.apps.size(); ++local)
        cluster.reachable[{name, local}] = facts.address;
    cluster.pods.emplace(name, std::move(facts));
  }
}

// Those made by hand and our own.
void JobObserver::read_migrations(Cluster& cluster) const {
  for (const kube::Object& object : cache_.find(kRankMigration, kByJob, job_ref_.key()))
    if (const std::string owner = owner_of(object).uid; owner.empty() || owner == job_ref_.uid)
      if (auto migration = crds::rank_migration_from_json(object))
        (is_older_than(*migration, cluster.job) ? cluster.older_migrations : cluster.migrations)
            .push_back(std::move(*migration));
}

Observed JobObserver::observe(Cluster cluster, const Sidecars& sidecars) const {
  Observed o;
  o.now = cluster.now;
  o.steady = cluster.steady;
  o.nodes = nodes_of(cluster);
  o.free_cpu = free_cpu(cluster);
  if (options_.kueue) o.queued = queued_job(cache_, job_ref_, cluster.job);
  const bool starts =
      cluster.job.status.phase == crds::JobPhase::kPending || (o.queued && o.queued->workload.is_null());
  if (starts && options_.pods.scheduled) o.queue = queue_of(cluster);
  o.caps = options_.caps;
  o.elsewhere = moves_elsewhere(cluster.reservations, job_ref_.key());
  o.capacity_may_come = options_.pods.scheduled;
  o.images_unreadable = !options_.image_defaults;
  note_nodes(*cluster.nodes, cluster.gone_nodes, cluster.job.status, o);
  o.being_made = std::move(cluster.being_made);
  o.pods = std::move(cluster.pods);
  o.migrations = std::move(cluster.migrations);
  o.older_migrations = std::move(cluster.older_migrations);
  o.sidecars = sidecars.facts();
  // A pod that is being deleted may take long to end, so its link stays, but what it says no longer counts.
  std::erase_if(o.sidecars, [&](const auto& entry) {
    const PodFacts* pod = o.pod(entry.first);
    return !pod || pod->deleting;
  });
  o.round_trip_seconds = sidecars.round_trip_seconds();
  o.reservations = std::move(cluster.reservations);
  o.job = std::move(cluster.job);
  return o;
}

std::vector<observe::NodeFacts> JobObserver::nodes_of(const Cluster& cluster) const {
  const std::string mine = job_ref_.key();
  const Resources rank = rank_requests(cluster.job);
  const std::uint32_t seats = crds::most_seats(cluster.job);
  const std::int64_t cpu_used = cpu_used_by_rank(cluster.job.spec.pod_template);
  const auto reserved = reserved_by_others(
      cluster.reservations, mine,
      [&](const std::string& name_space, const std::string& pod) { return usage_.is_placed(name_space, pod); });
  const auto raised = raised_on(cluster.pods, cluster.job);
  std::vector<observe::NodeFacts> nodes;
  // The ranks on one that was deleted run on there until they have left it.
  std::map<std::string, observe::NodeFacts> gone;
  for (const crds::RankPlace& place : cluster.job.status.ranks) {
    if (!cluster.gone_nodes.contains(place.node)) continue;
    observe::NodeFacts& facts =
        gone.try_emplace(place.node,
                         observe::NodeFacts{.name = place.node, .set = place.set, .slots = 0, .cordoned = true})
            .first->second;
    ++facts.slots;
  }
  for (auto& [name, facts] : gone) nodes.push_back(std::move(facts));
  for (const SeenNode& node : cluster.nodes->nodes) {
    observe::NodeFacts facts = node.facts;
    if (facts.set.empty()) continue;
    if (const auto known = options_.instance_prices.find(facts.instance_type);
        facts.price == 0 && known != options_.instance_prices.end())
      facts.price = known->second;
    // Whatever else runs on a node takes capacity there.
    Resources others = usage_.of_others(facts.name, mine);
    if (const auto here = reserved.find(facts.name); here != reserved.end()) others += here->second;
    if (const auto more = raised.find(facts.name); more != raised.end()) others.cpu += more->second;
    if (options_.pods.scheduled) {
      Resources free = node.allocatable;
      free -= others;
      const std::uint32_t slots = slots_of(free, rank, seats);
      facts.slots = std::max(slots, 1u);  // 0 would mean that there is no limit
      facts.at_full_speed = std::max(1.0, static_cast<double>(free.cpu) / static_cast<double>(cpu_used));
      facts.cordoned = slots == 0 || !node.takes_pods;
      if (node.allocatable.memory > 0) facts.memory = free.memory;
      facts.price /= std::max(slots_of(node.allocatable, rank, seats), 1u);
    } else {
      facts.slots = static_cast<std::uint32_t>(std::clamp<std::int64_t>(node.allocatable.pods, 1, 1 << 20));
      facts.price /= facts.slots;
      facts.taken = static_cast<std::uint32_t>(others.pods + usage_.further_seats_of_others(facts.name, mine));
    }
    nodes.push_back(std::move(facts));
  }
  if (!gone.empty()) std::ranges::sort(nodes, {}, &observe::NodeFacts::name);
  return nodes;
}

// Of the nodes of ranks that may get more.
std::map<std::string, std::int64_t> JobObserver::free_cpu(const Cluster& cluster) const {
  std::map<std::string, std::int64_t> free;
  if (cluster.job.spec.rescheduling.resize == crds::Resize::kOff) return free;
  const auto reserved = reserved_by_others(
      cluster.reservations, job_ref_.key(),
      [&](const std::string& name_space, const std::string& pod) { return usage_.is_placed(name_space, pod); });
  for (const crds::RankPlace& place : cluster.job.status.ranks) {
    const SeenNode* node = cluster.nodes->find(place.node);
    if (!node || !node->takes_pods) continue;
    std::int64_t left = node->allocatable.cpu;
    if (options_.pods.scheduled) {
      left -= usage_.of_all(place.node).cpu;
      if (const auto here = reserved.find(place.node); here != reserved.end()) left -= here->second.cpu;
    } else {  // each slot has its own share, whatever the others leave
      const auto pod = cluster.pods.find(place.pod);
      left = left / std::max<std::int64_t>(node->allocatable.pods, 1) -
             (pod == cluster.pods.end() ? 0 : pod->second.app(place.local).cpu_limit);
    }
    std::int64_t& least = free.try_emplace(place.node, left).first->second;
    least = std::min(least, left);
  }
  return free;
}

StartQueue JobObserver::queue_of(const Cluster& cluster) const {
  const crds::BspJob& job = cluster.job;
  StartQueue queue{
      .ahead = waiting_jobs_.ahead_of(waiting_job(job_ref_.key(), job)), .holders = {}, .all = {}, .on_node = {}};
  std::vector<Resources> empty;  // such nodes
  const Resources rank = rank_requests(job);
  const auto wanted = [&](const std::string& set) {
    return !set.empty() && (job.spec.sets.names.empty() || std::ranges::contains(job.spec.sets.names, set));
  };
  std::set<std::string> holders;
  for (const SeenNode& node : cluster.nodes->nodes) {
    if (!wanted(node.facts.set)) continue;
    for (std::string& key : usage_.jobs_on(node.facts.name)) holders.insert(std::move(key));
    if (!node.takes_pods) continue;
    empty.push_back(node.allocatable);
    Resources free = node.allocatable;
    free -= usage_.of_no_job(node.facts.name);
    const std::uint32_t slots = slots_of(free, rank, crds::most_seats(job));
    queue.all[node.facts.set] += slots;
    queue.on_node[node.facts.name] = slots;
  }
  for (const auto& [key, reservation] : cluster.reservations.of_job)
    if (std::ranges::any_of(reservation.slots, [&](const ReservedSlot& slot) { return wanted(slot.set); }))
      holders.insert(key);
  if (!queue.ahead.empty()) {
    std::vector<std::string> sets;
    for (const auto& [set, slots] : queue.all) sets.push_back(set);
    queue.passable = waiting_jobs_.wanted_by_none_ahead(waiting_job(job_ref_.key(), job), sets);
  }
  queue.lacking = lacking(rank, empty);
  holders.erase(job_ref_.key());
  queue.holders.assign(holders.begin(), holders.end());
  return queue;
}

}  // namespace bsp::reconcile
