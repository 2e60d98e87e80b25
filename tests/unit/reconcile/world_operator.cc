// The operator of the simulated world: what shell/job/job_shell.cc does, without the network.
#include <algorithm>
#include <format>
#include <utility>

#include "base/json/fields.h"
#include "crds/names.h"
#include "operator/reconcile/kernel/conditions.h"
#include "operator/reconcile/kernel/stored.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {

using crds::JobPhase;
using nlohmann::json;

// The object as the node (kubelet, Podman node) shows it.
json World::pod_object(const Pod& pod) const {
  json object = pod.object;
  if (pod.gone_at >= 0) object["metadata"]["deletionTimestamp"] = "2026-11-21T05:00:00Z";
  json app = {{"name", "app"}, {"state", {{"running", json::object()}}}};
  if (!pod.stuck.is_null()) app["state"] = {{"waiting", pod.stuck}};
  if (pod.app_ended_at >= 0 && tick_ >= pod.app_ended_at)
    app["state"] = {{"terminated",
                     {{"exitCode", pod.exit_code},
                      {"reason", pod.exit_code ? "Error" : "Completed"},
                      {"message", pod.exit_code && pod.status.mpi_finalized ? std::string(names::kFinalizedNote)
                                                                            : pod.status.exit_message}}}};
  for (const json& container : part_at(part_at(pod.object, "spec"), "containers"))
    if (const auto id = image_ids.find(text_at(container, "image"));
        id != image_ids.end() && text_at(container, "name") == "app")
      app["imageID"] = id->second;
  json status = {{"phase", "Running"}, {"containerStatuses", json::array({app})}};
  for (std::uint32_t i = 0; i < pod.beside.size(); ++i) {
    const Pod::End& end = pod.ends_beside[i];
    const bool has_ended = end.at >= 0 && tick_ >= end.at;
    json state = {{"running", json::object()}};
    if (!pod.stuck.is_null()) state = {{"waiting", pod.stuck}};
    if (has_ended)
      state = {{"terminated", {{"exitCode", end.code}, {"reason", end.code ? "Error" : "Completed"}, {"message", ""}}}};
    status["containerStatuses"].push_back({{"name", container_of(i + 1)}, {"state", state}});
  }
  json sidecar = {{"name", "sidecar"}};
  if (!pod.again.is_null()) sidecar["state"] = {{"waiting", pod.again}};
  for (const json& container : part_at(part_at(pod.object, "spec"), "initContainers"))
    if (const auto id = image_ids.find(text_at(container, "image")); id != image_ids.end())
      sidecar["imageID"] = id->second;
  status["initContainerStatuses"] = {std::move(sidecar)};
  if (pod.helper) status["containerStatuses"].push_back({{"name", "helper"}, {"state", {{"running", json::object()}}}});
  if (tick_ >= pod.up_at) status["podIP"] = std::format("10.0.{}.{}", pod.rank, pod.name.back() - '0');
  if (pod.node.empty())
    status = {
        {"phase", "Pending"},
        {"conditions", {{{"type", "PodScheduled"}, {"status", "False"}, {"message", "0/4 nodes are available"}}}}};
  if (!pod.evicted.is_null()) {
    status = pod.evicted;
    status["phase"] = "Failed";
  }
  if (!pod.disruption.is_null()) {
    json condition = pod.disruption;
    condition["type"] = "DisruptionTarget";
    condition["status"] = "True";
    status["conditions"].push_back(std::move(condition));
  }
  object["status"] = std::move(status);
  return object;
}

const PodFacts& World::facts_of(Pod& pod) const {
  const bool ended = pod.app_ended_at >= 0 && tick_ >= pod.app_ended_at;
  std::string beside;
  for (const Pod::End& end : pod.ends_beside)
    beside += end.at >= 0 && tick_ >= end.at ? std::format(" {}", end.code) : " runs";
  const std::string as_it_is =
      std::format("{}{}{}{}{}{}{}{}{}{}", pod.gone_at >= 0, tick_ >= pod.up_at, ended, ended ? pod.exit_code : 0,
                  pod.status.mpi_finalized, pod.helper, pod.stuck.dump(), pod.again.dump(), pod.evicted.dump(), beside);
  if (pod.facts_of != as_it_is) pod.facts = pod_facts(pod_object(pod)), pod.facts_of = as_it_is;
  return pod.facts;
}

Observed World::observe() {
  Observed o;
  o.job = job;
  o.now = now;
  o.steady = steady;
  o.nodes = nodes;
  o.superstep_seconds = to_seconds(kTick);
  o.round_trip_seconds = 0.005;
  o.node_troubles = node_troubles;
  for (const crds::RankPlace& place : job.status.ranks)
    if (const auto why = cordons.find(place.node); why != cordons.end()) o.leaving.insert(*why);
  o.caps = caps;
  o.capacity_may_come = capacity_may_come;
  o.queued = queued;
  o.pod_group = pod_group;
  if (SharedNodes* cluster = options_.cluster) {
    seen_ = cluster->reservations.version;
    o.elsewhere = moves_elsewhere(cluster->reservations, key());
    std::map<std::string, std::uint32_t> taken;
    for (const World* other : cluster->worlds)
      if (other != this)
        for (const auto& [name, pod] : other->pods)
          taken[pod.node] += 1 + static_cast<std::uint32_t>(pod.beside.size());
    for (const auto& [node, taken_there] :
         reserved_by_others(cluster->reservations, key(), [&](const auto&, const std::string& pod) {
           return std::ranges::any_of(cluster->worlds, [&](World* other) { return other->find(pod) != nullptr; });
         }))
      taken[node] += static_cast<std::uint32_t>(taken_there.pods);
    for (auto& node : o.nodes) node.taken += taken[node.name];
    o.queue = queue();
  }
  o.can_remove_sets = can_remove_sets;
  if (remover)
    o.remover = {.made = true,
                 .deleting = remover->deleting,
                 .done = remover->done,
                 .failed = remover->failed,
                 .said = remover->said};
  o.remover_refused = remover_refused_;
  o.sets_used_by = sets_used_by;
  for (const auto& [name, m] : migrations) o.migrations.push_back(m);
  // Links exist only to pods that have an address and are not being deleted.
  std::set<Seat> tracked;
  for (auto& [name, pod] : pods) {
    if (pod.vanished_until != 0) continue;
    PodFacts facts = facts_of(pod);
    facts.lost = facts.abandoned = pod.lost && facts.deleting;
    if (!facts.address.empty() && !facts.deleting)
      for (std::uint32_t i = 0; i < facts.apps.size(); ++i) tracked.insert({name, i});
    observed_.insert(facts.uid);
    o.pods.emplace(name, std::move(facts));
  }
  vanished_.add(
      job.status,
      [&](const std::string& name) {
        bool exited = false;
        for (auto it = known_.lower_bound({name, 0}); it != known_.end() && it->first.pod == name; ++it) {
          exited = it->second.status && it->second.status->phase == wire::RankPhase::kExited;
          if (!exited) break;
        }
        return exited || removed_.contains(name);
      },
      steady, o.pods);
  for (auto& [name, facts] : o.pods)
    if (facts.vanished) facts.abandoned = facts.grace_over;  // its node answers
  vanished_.settle(o.pods, steady);
  std::erase_if(known_, [&](const auto& entry) { return !tracked.contains(entry.first); });
  if (known_wave_ != job.status.wave) {
    known_wave_ = job.status.wave;
    for (auto& [seat, facts] : known_) facts.refused.clear(), facts.armed.reset(), facts.done.clear();
  }
  for (const Seat& seat : tracked) {
    const Pod& whole = pods.at(seat.pod);
    const simulated::Pod& pod = *find(seat);
    SidecarFacts& facts = known_[seat];
    bool ended = whole.app_ended_at >= 0 && tick_ >= whole.app_ended_at;  // a native sidecar goes with the apps
    for (const Pod::End& end : whole.ends_beside) ended &= end.at >= 0 && tick_ >= end.at;
    if (tick_ < pod.silent_until || ended) {
      if (facts.unreachable_since == SteadyTime{}) facts.unreachable_since = steady;
      continue;
    }
    facts.vouchers = {};
    migrate::note_status(facts, pod.status, steady);
  }
  for (auto& [seat, facts] : known_)
    newest_ = facts.completed > newest_ ? (progress_ = steady, facts.completed) : newest_;
  o.progress = progress_;
  // Asks the others about those that don't answer.
  for (auto& [seat, facts] : known_) {
    if (facts.unreachable_since == SteadyTime{}) continue;
    for (const auto& [other, theirs] : known_) {
      if (theirs.unreachable_since != SteadyTime{} || !theirs.status) continue;
      const simulated::Pod& pod = *find(seat);
      const bool there = tick_ >= pod.cut_off_until && pod.process != Process::kEnded;
      facts.vouchers.note(there, std::format("rank {}", find(other)->rank), steady);
      break;
    }
  }
  o.sidecars = known_;
  for (const auto& [seat, facts] : known_)
    if (facts.status && facts.status->cpu_features)
      known_cpus_[pods.at(seat.pod).node] = CpuFeatures(facts.status->cpu_features);
  for (observe::NodeFacts& node : o.nodes)
    if (const auto cpu = known_cpus_.find(node.name); cpu != known_cpus_.end()) node.cpu_features = cpu->second;
  o.not_created = refused_;
  if (also_seen) also_seen(o);
  clocks_.fill(o);
  o.everywhere = everywhere.value_or(hearing_of(o));
  return o;
}

// What the other jobs of the cluster hold and wait for.
StartQueue World::queue() const {
  StartQueue queue;
  for (const auto& node : nodes) queue.all[node.set] += node.slots;
  std::map<std::string, WaitingJob> waiting;
  for (const World* other : options_.cluster->worlds) {
    const bool holds = !other->pods.empty() || options_.cluster->reservations.of_job.contains(other->key());
    if (other != this && holds) queue.holders.push_back(other->key());
    if (other->job.status.phase == JobPhase::kPending && other->job.status.reason == kWaitingForSlots)
      waiting.emplace(other->key(), waiting_job(other->key(), other->job));
  }
  queue.ahead = ahead_of(waiting_job(key(), job), waiting);
  if (!queue.ahead.empty())
    for (const auto& [set, slots] : queue.all)
      if (!wanted_by_none_ahead(waiting_job(key(), job), waiting, {set}).empty()) queue.passable.push_back(set);
  return queue;
}

std::string World::node_for(const json& pod) const {
  for (const auto& node : nodes) {
    std::size_t here = part_at(part_at(pod, "spec"), "containers").size() - 1;
    for (const auto& [name, other] : pods)
      if (other.node == node.name) here += 1 + other.beside.size();
    json object = {{"metadata", {{"name", node.name}, {"labels", {{job.spec.sets.label, node.set}}}}}};
    for (const auto& [label, value] : names::kPlatformLabels) object["metadata"]["labels"][std::string(label)] = value;
    if (here < node.slots && takes_pods_of(object, pod)) return node.name;
  }
  return "";
}

void World::operate() {
  for (int round = 0; round < 16; ++round) {
    Observed o = observe();
    const Advice advice{.call = decided, .status = o.job.status};
    const Step step = reconcile_job(o, advice, limits, job_limits);
    const StatusChange* const change = step.change();
    if (!change) {
      do_work(step.work());
      if (!crds::is_finished(job.status.phase)) job.status = step.work().progress;
      return;
    }
    if (!change->reserve.empty() && !reserve(*change)) continue;
    if (!store(change->status)) return;
    if (advice.call) decided.reset();
    if (die_after_stores >= 0 && die_after_stores-- == 0) return restart_operator();
    keep(change->notices);
    if (!change->show_logs_of.pod.empty()) {
      shown_logs_of = change->show_logs_of;
      const Pod* pod = find(shown_logs_of.pod);
      shown_logs_complete = pod && pod->app_ended_at >= 0 && tick_ >= pod->app_ended_at;
    }
  }
  violate("the kernel never rests");
}

bool World::reserve(const StatusChange& change) {
  SharedNodes* cluster = options_.cluster;
  if (!cluster) return true;
  if (cluster->reservations.version != seen_) return false;
  cluster->reservations.of_job[key()] = {.uid = job.metadata.uid,
                                         .wave = change.status.wave,
                                         .each = {1, 1, 1},
                                         .slots = change.reserve,
                                         .until = now + kReservationKept,
                                         .start = change.status.phase == JobPhase::kStarting};
  cluster->reservations.version = std::to_string(std::stoi(cluster->reservations.version) + 1);
  return true;
}

bool World::store(const crds::BspJobStatus& status) {
  if (conflicts > 0) return --conflicts, false;
  crds::BspJob next = job;
  next.status = status;
  json object;
  to_json(object, next);
  largest_object = std::max(largest_object, object.dump().size());
  auto again = crds::bsp_job_from_json(object);
  if (!again) return violate("what was stored can't be read: " + again.error().message), false;
  if (const auto stored = check_stored(*again); !stored && check_stored(job))
    violate("what was stored is refused: " + stored.error().message);
  const auto& epoch = again->status.epoch;
  if (epoch && (!job.status.epoch || job.status.epoch->epoch != epoch->epoch)) {
    note(std::format("commits epoch {}", epoch->epoch));
    const bool same = epoch->epoch == highest_epoch_ && pods_in(*epoch) == removed_members_;
    if (epoch->epoch <= highest_epoch_ && !same) violate(std::format("epoch number {} is used twice", epoch->epoch));
    highest_epoch_ = epoch->epoch;
  }
  if (again->status.phase != job.status.phase)
    note(std::format("{} -> {}: {}", crds::to_string(job.status.phase), crds::to_string(again->status.phase),
                     again->status.message));
  const auto& sets = again->status.checkpoint;
  if ((sets ? sets->without_progress : again->status.attempt) > job.spec.run_policy.backoff_limit)
    violate("more attempts than spec.runPolicy.backoffLimit allows");
  job = std::move(*again);
  for (const crds::Condition& c : job.status.conditions)
    if (c.status == crds::ConditionStatus::kTrue &&
        std::ranges::contains(condition_kinds(), c.type, &ConditionKind::type) &&  // else a hostile status has it
        c.message != with_remedy(c.type, c.message))
      violate(std::format("the condition {} doesn't say what to do: {}", c.type, c.message));
  const bool runs = job.status.phase == JobPhase::kRunning || job.status.phase == JobPhase::kMigrating;
  if (runs)
    for (const wire::Member& m : job.status.epoch->members)
      if (seat_of(m) != job.status.ranks.at(m.rank).seat() || m.set >= job.status.epoch->sets.size() ||
          job.status.epoch->sets[m.set] != job.status.ranks[m.rank].set)
        violate(std::format("status.ranks and status.epoch differ about rank {}", m.rank));
  if (job.status.wave_state.is_object())
    note(std::format(
        "wave {} {} gate {} {}", job.status.wave_state.value("number", 0), job.status.wave_state.value("phase", ""),
        job.status.wave_state.value("/gate/state"_json_pointer, ""), job.status.wave_state.value("message", "")));
  return true;
}

// As through the API: created if it is not there, else its status replaced.
void World::write(crds::RankMigration m) {
  if (m.metadata.uid.empty() != !migrations.contains(m.metadata.name))
    if (migrations.contains(m.metadata.name)) return;  // conflict
  if (m.metadata.uid.empty()) m.metadata.uid = std::format("uid-{}", ++uids_);
  json object;
  to_json(object, m);
  auto again = crds::rank_migration_from_json(object);
  if (!again) return violate("what was stored can't be read: " + again.error().message);
  if (const auto it = migrations.find(m.metadata.name);
      it != migrations.end() && crds::is_finished(it->second.status.phase))
    violate("a finished migration is written again: " + m.metadata.name);
  migrations[m.metadata.name] = std::move(*again);
}

void World::keep(const Notices& notices) {
  std::ranges::copy(notices.events, std::back_inserter(events));
  for (const auto& m : notices.migrations) unwritten_.insert_or_assign(m.metadata.name, m);
}

void World::do_work(const Work& work) {
  if (also_done) also_done(work);
  if (options_.cluster && !work.moving && !work.starting && options_.cluster->reservations.of_job.erase(key()) != 0)
    options_.cluster->reservations.version = std::to_string(std::stoi(options_.cluster->reservations.version) + 1);
  keep(work.notices);
  if (queued) {
    if (!work.workload.create.is_null()) queued->workload = work.workload.create;
    if (!work.workload.spec.is_null()) queued->workload["spec"].merge_patch(work.workload.spec);
    if (!work.workload.status.is_null()) queued->workload["status"].merge_patch(work.workload.status.at("status"));
  }
  for (const auto& [name, m] : std::exchange(unwritten_, {})) write(m);
  const bool needs_group = starts_by_scheduler(observe());
  const std::string group_name = text_at(part_at(work.pod_group, "metadata"), "name");
  if (work.pod_group.is_null()) {
    pod_group = {};
  } else if (no_pod_groups) {
    pod_group = {.name = group_name, .made = false, .refused = no_pod_groups};
  } else {
    if (!std::ranges::contains(pod_groups, work.pod_group))
      pod_groups.push_back(work.pod_group), note("makes a PodGroup");
    pod_group = {.name = group_name, .made = true, .refused = {}};
  }
  for (const PodRequest& request : work.create_pods) {
    json object = make_pod(job, request, {}, {.scheduled = scheduled, .runtime_image = runtime_image});
    const std::string name = object["metadata"]["name"];
    if (pods.contains(name)) continue;
    if (auto why = refuses ? refuses(request) : std::nullopt) {
      refused_.insert_or_assign(name, std::move(*why));
      continue;
    }
    refused_.erase(name);
    const auto is_its_group = [&](const json& group) { return group["metadata"]["name"] == request.pod_group; };
    if (needs_group && !request.target && std::ranges::none_of(pod_groups, is_its_group))
      violate(name + " is created before its PodGroup");
    created.push_back(request);
    note("creates " + name);
    removed_.erase(name);  // another of that name
    Pod& pod = pods[name];
    pod.name = name;
    pod.uid = std::format("uid-{}", ++uids_);
    pod.rank = request.rank;
    const bool nowhere = no_room || (finds_no_node && finds_no_node(request));
    pod.node = nowhere ? "" : scheduled ? node_for(object) : request.node;
    pod.target = request.target;
    pod.resumes = request.resumes;
    pod.up_at = pod.node.empty() ? 1 << 30 : tick_ + slow_start + (options_.seed ? random(0, 4) : 0);
    pod.status.rank = request.rank;
    pod.status.pod = name;
    pod.seats = static_cast<std::uint32_t>(request.ranks().size());
    for (std::uint32_t i = 0; i < request.beside.size(); ++i) {
      simulated::Pod& seat = pod.beside.emplace_back(static_cast<const simulated::Pod&>(pod));
      seat.local = seat.status.seat = i + 1;
      seat.rank = seat.status.rank = request.beside[i];
    }
    pod.ends_beside.resize(pod.beside.size());
    pod.object = {{"metadata", {{"uid", pod.uid}, {"labels", object["metadata"]["labels"]}}}, {"spec", json::object()}};
    const json& sidecar = object["spec"]["initContainers"].front();
    pod.object["spec"]["initContainers"] = {{{"name", sidecar.at("name")}, {"image", sidecar.at("image")}}};
    if (job.spec.checkpoint.storage) {  // a set knows of what it was made
      for (const char* list : {"containers", "volumes"}) pod.object["spec"][list] = object["spec"][list];
    }
    if (const auto id = runtimes.find(sidecar.at("image")); id != runtimes.end()) pod.status.runtime = id->second;
    const auto facts = std::ranges::find(nodes, pod.node, &observe::NodeFacts::name);
    auto cpu = cpus.find(pod.node);
    if (cpu == cpus.end() && facts != nodes.end()) cpu = cpus.find(facts->set);
    if (cpu != cpus.end()) {
      pod.status.cpu_features = cpu->second.bits();
      if (!pod.target) pod.status.program_features = cpu->second.bits();
    }
    if (!request.beside.empty()) pod.object["metadata"]["annotations"] = object["metadata"]["annotations"];
    if (needs_group) join_pod_group(pod.object, job, request);
    if (!pod.node.empty()) pod.object["spec"]["nodeName"] = pod.node;
  }
  const bool runs = job.status.phase == JobPhase::kRunning || job.status.phase == JobPhase::kMigrating;
  for (const std::string& name : work.delete_pods) {
    Pod* pod = find(name);
    if (!pod || pod->gone_at >= 0 || pod->vanished_until != 0) continue;
    note("deletes " + name);
    const auto wave = stored_wave(job.status);
    const auto replaced = [&](const Seat& seat) {
      return wave && *wave && (*wave)->phase == migrate::Phase::kRollingBack &&
             std::ranges::contains((*wave)->moves, seat, &migrate::Move::target);
    };
    const int gone_at = pod->lost ? 1 << 30 : tick_ + 1 + (options_.seed ? random(0, 5) : 1);
    pod->for_each_seat([&](simulated::Pod& seat) {
      if (runs && seat.computes() && !replaced(seat.seat()) && job.metadata.deletion_timestamp == Time{})
        violate("a computing rank's pod is deleted: " + name);
      seat.gone_at = gone_at;
    });
  }
  for (const migrate::Action& action : work.actions) {
    Message m{tick_, life_, action};
    if (options_.seed == 0) {
      deliver(m);
      continue;
    }
    const bool under_way = std::ranges::any_of(messages_, [&](const Message& other) {
      return other.life == life_ && other.action.seat == action.seat && other.action.kind == action.kind &&
             other.action.number == action.number;
    });
    if (under_way || random(0, 9) == 0) continue;
    m.at = tick_ + random(0, 3);
    messages_.push_back(std::move(m));
  }
  work_on_sets(work);
  if (work.remove_finalizer) {
    if (!pods.empty()) violate("the job goes before its pods");
    removed = true;
  }
  if (work.remove_job) remove_job();
}

void World::work_on_sets(const Work& work) {
  if (work.make_remover && no_remover) remover_refused_ = no_remover;
  if (work.make_remover && !no_remover && !remover) {
    if (job.metadata.deletion_timestamp == Time{}) violate("the sets of a job that isn't deleted are removed");
    if (!pods.empty()) violate("the sets are removed while the job's pods run");
    const bool retains = job.spec.checkpoint.reclaim_policy == crds::ReclaimPolicy::kRetain;
    if (!sets_used_by.empty() && !retains) violate("the sets are removed while another job needs them");
    remover.emplace();
    ++removers;
    remover_refused_.reset();
    note("makes the remover");
  }
  if (work.delete_remover && remover) remover->deleting = true;
  const bool keeps = job.spec.checkpoint.reclaim_policy == crds::ReclaimPolicy::kRetain;
  if (work.remove_finalizer && can_remove_sets && !keeps && !storage.empty() && !has_event("SetsLeft"))
    violate("the job goes, and its sets stay in silence");
}

std::string World::unrest() {
  const Step step = reconcile();
  std::string text;
  if (step.change()) {
    text += "stores; ";
  } else {
    for (const auto& p : step.work().create_pods) text += std::format("creates a pod of rank {}; ", p.rank);
    for (const auto& p : step.work().delete_pods) text += std::format("deletes {}; ", p);
    for (const auto& a : step.work().actions)
      text += std::format("asks {} for {}; ", name_of(a.seat), to_string(a.kind));
  }
  for (const auto& m : notices_of(step).migrations) text += std::format("writes {}; ", m.metadata.name);
  for (const auto& e : notices_of(step).events) text += std::format("reports {}; ", e.reason);
  json before, after;
  to_json(before, job.status);
  to_json(after, status_of(step));
  const bool stored = !crds::is_finished(job.status.phase);  // a finished job's progress is not written any more
  if (stored && before != after) text += "changes the status: " + json::diff(before, after).dump();
  return text;
}

}  // namespace bsp::reconcile::sim
