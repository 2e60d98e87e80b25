#include "operator/reconcile/kernel/status.h"

#include <algorithm>
#include <format>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/counted.h"
#include "base/core/first_few.h"
#include "base/json/fields.h"
#include "crds/stored_status.h"
#include "operator/reconcile/kernel/pods/pods.h"
#include "operator/reconcile/kernel/rescheduling/move_memory.h"
#include "operator/reconcile/kernel/rescheduling/rescheduling.h"
#include "operator/reconcile/kernel/resize/resize.h"
#include "operator/reconcile/kernel/start/gang.h"

namespace bsp::reconcile {

namespace {

// True if it is much throttled, False again only well below that, so that the condition doesn't flap.
constexpr double kHardlyThrottled = 0.02;

// Supersteps count as missing after so many seconds without one, and so many times what the others took.
constexpr double kLongSuperstep = 60, kMuchLonger = 10;

// How many seconds after the last rejected message the condition stays.
constexpr double kRejectedLately = 60;

}  // namespace

bool is_on(const crds::BspJobStatus& status, const char* type) {
  const crds::Condition* c = crds::find_condition(status.conditions, type);
  return c && c->status == crds::ConditionStatus::kTrue;
}

void turn_condition(const Observed& o, crds::BspJobStatus& status, const char* type, bool on, std::string reason,
                    std::string message) {
  crds::set_condition(status.conditions,
                      {.type = type,
                       .status = on ? crds::ConditionStatus::kTrue : crds::ConditionStatus::kFalse,
                       .observed_generation = o.job.metadata.generation,
                       .last_transition_time = {},
                       .reason = std::move(reason),
                       .message = on ? with_remedy(type, std::move(message)) : std::move(message)},
                      o.now);
}

void show_delay(const Observed& o, const std::string& delay, crds::BspJobStatus& status) {
  if (delay.empty() && !is_on(status, kWaveDelayed)) return;
  turn_condition(o, status, kWaveDelayed, !delay.empty(), delay.empty() ? "WaveGoesOn" : "RanksNotThrough",
                 delay.empty() ? "no wave waits for a rank to continue" : delay + "; the other ranks wait for it");
}

bool warn_of_throttling(const Observed& o, crds::BspJobStatus& status) {
  const bool limited =
      std::ranges::any_of(status.ranks, [&](const crds::RankPlace& place) { return cpu_limit_of(o, place) > 0; });
  if (!limited || status.phase != crds::JobPhase::kRunning) return false;
  const crds::RankPlace* worst = nullptr;
  double share = 0;
  for (const crds::RankPlace& place : status.ranks)
    if (const SidecarFacts* s = o.sidecar(place.seat()); s && s->throttled > share)
      worst = &place, share = s->throttled;
  const bool was = is_on(status, kCpuThrottled);
  const bool is = was ? share > kHardlyThrottled : is_much_throttled(share);
  if (was == is && crds::find_condition(status.conditions, kCpuThrottled)) return false;
  turn_condition(
      o, status, kCpuThrottled, is, is ? "CPULimit" : "NotThrottled",
      is ? std::format("rank {} was held back for {:.0f} % of the time by its CPU limit of {}, and every superstep "
                       "waits for the slowest rank",
                       worst->rank.value, share * 100, crds::cpu_text(cpu_limit_of(o, *worst)))
         : "no rank is held back by a CPU limit");
  return is;
}

namespace {

// Such as PETSc's on its own communicator, where mpi4py or DOLFIN has started MPI.
constexpr std::string_view kWithThreads = "with MPI_THREAD_MULTIPLE only calls on MPI_COMM_WORLD itself count";

// `called`: the blocking collective of all ranks that rank `behind`, the furthest behind, has called most; "" if none.
std::string why_no_edge(const crds::SuperstepSpec& spec, const std::optional<crds::SuperstepEdge>& found,
                        std::uint64_t behind, const std::string& called) {
  const bool is_auto = spec.call == names::kEdgeAuto;
  if (is_auto && !found)
    return called.empty()
               ? std::format(
                     "supersteps end at a blocking collective of all ranks that recurs, and rank {} has called none; "
                     "ranks of a program without one stay where they are ({})",
                     behind, kWithThreads)
               : std::format(
                     "supersteps end at a blocking collective of all ranks that recurs, and none has yet; rank {} "
                     "calls {} most often, and spec.superstep.call of a new job can name it",
                     behind, called);
  const std::string& call = is_auto ? found->call : spec.call;
  const std::uint64_t stride = is_auto ? found->stride : spec.stride;
  const std::string hint =
      called.empty() ? std::format("rank {} has called no blocking collective of all ranks ({})", behind, kWithThreads)
      : is_auto      ? std::format("another one is chosen when it recurs ({})", kWithThreads)
      : called != call
          ? std::format("rank {} calls {} most often, and spec.superstep.call of a new job can name it", behind, called)
      : stride > 1 ? "with a smaller spec.superstep.stride they end more often"
                   : std::format("rank {} has not come to its next one", behind);
  return std::format("one ends at every {}{} of all ranks ({}); {}", stride > 1 ? std::format("{}th ", stride) : "",
                     call, is_auto ? "status.summary.superstepEnds" : "spec.superstep", hint);
}

}  // namespace

bool warn_of_no_supersteps(const Observed& o, crds::BspJobStatus& status) {
  const crds::BspJobSpec& spec = o.job.spec;
  if (status.phase != crds::JobPhase::kRunning || spec.rescheduling.mode == crds::ReschedulingMode::kOff) return false;
  const double seconds = o.superstep_ended == SteadyTime{} ? 0 : to_seconds(o.steady - o.superstep_ended);
  const bool is = seconds > std::max(kLongSuperstep, kMuchLonger * o.superstep_seconds);
  if (is == is_on(status, kNoSupersteps)) return false;
  std::string called;  // by the rank that is furthest behind
  std::uint64_t least = ~0ull, behind = 0;
  for (const crds::RankPlace& place : status.ranks)
    if (const SidecarFacts* s = o.sidecar(place.seat()); s && s->status && s->completed < least) {
      least = s->completed;
      behind = place.rank.value;
      called = s->status->collective;
    }
  turn_condition(o, status, kNoSupersteps, is, is ? "NoEdge" : "Superstep",
                 is ? std::format("no superstep has ended for {:.0f} s, and until one does no rank can move: {}",
                                  seconds, why_no_edge(spec.superstep, status.superstep_edge, behind, called))
                    : "supersteps end");
  return is;
}

bool warn_of_mixed_units(const Observed& o, crds::BspJobStatus& status) {
  if (status.phase != crds::JobPhase::kRunning) return false;
  const bool is = unit_of_work(o) == observe::WorkUnit::kMixed;
  if (is == is_on(status, kMixedUnits)) return false;
  std::set<std::string> counted, timed;
  for (const crds::RankPlace& place : status.ranks)
    if (const wire::RankStatus* said = o.said(place.seat()))
      (said->instructions_measured ? counted : timed).insert(place.set);
  const auto list = [](const std::set<std::string>& sets) {
    std::string text;
    for (const std::string& set : sets) text += (text.empty() ? "" : ", ") + set;
    return text;
  };
  turn_condition(
      o, status, kMixedUnits, is, is ? "CountersMissing" : "OneUnit",
      is ? std::format("ranks report counted instructions in {} and CPU time in {}, where the CPU's counters can't "
                       "be read; the two can't be compared, so no rank is moved",
                       list(counted), list(timed))
         : "all ranks report work in one unit");
  return is;
}

bool warn_of_cpu_features(const Observed& o, crds::BspJobStatus& status) {
  if (status.phase != crds::JobPhase::kRunning || !status.epoch) return false;
  const observe::CpuFacts facts = cpu_facts(o);
  std::map<std::string, std::pair<FirstFew, CpuFeatures>> sets;  // which ranks can't go there, and what is missing
  for (const crds::RankPlace& place : status.ranks)
    for (const observe::CpuFacts::Closed& closed : facts.closed_to(place.rank.value))
      if (closed.set != place.set && std::ranges::contains(status.epoch->sets, closed.set)) {
        sets[closed.set].first.add(std::to_string(place.rank.value));
        sets[closed.set].second = closed.lacks;
      }
  std::string text;
  for (const auto& [set, found] : sets)
    text += std::format("{}{} can't go to Set {}, whose CPUs lack {}", text.empty() ? "" : "; ",
                        found.first.text("rank"), set, found.second.text());
  const bool is = !sets.empty(), was = is_on(status, kCpuFeaturesDiffer);
  if (is)
    text =
        with_remedy(kCpuFeaturesDiffer, text + ": their libraries have seen these features when they chose their code");
  const crds::Condition* before = crds::find_condition(status.conditions, kCpuFeaturesDiffer);
  if (is ? before && was && before->message == text : !was) return false;
  turn_condition(o, status, kCpuFeaturesDiffer, is, is ? "FeaturesMissing" : "NoneMissing",
                 is ? text : "every rank can go to every Set of the job");
  return is && !was;
}

void add_member(wire::EpochPlan& plan, const crds::RankPlace& place, const PodFacts& facts) {
  auto at = std::ranges::find(plan.sets, place.set);
  if (at == plan.sets.end()) at = plan.sets.insert(at, place.set);
  plan.members.push_back({place.rank.value, place.pod, facts.uid, facts.address,
                          static_cast<std::uint32_t>(at - plan.sets.begin()), place.local});
}

bool warn_of_move_memory(const Observed& o, crds::BspJobStatus& status) {
  if (status.phase != crds::JobPhase::kRunning) return false;
  const std::string lack = MoveCapacity(o).lack();
  // The free memory changes constantly; report only that it is too little.
  if (lack.empty() == !is_on(status, kMovesLackMemory)) return false;
  turn_condition(o, status, kMovesLackMemory, !lack.empty(), lack.empty() ? "EnoughMemory" : "NodeMemory",
                 lack.empty() ? "where there is a free slot there is the memory for a move" : lack);
  return !lack.empty();
}

bool warn_of_seccomp(const Observed& o, crds::BspJobStatus& status) {
  const nlohmann::json profile = asked_seccomp(o.job.spec);
  const bool is = !profile.is_null() && !keeps_seccomp(o.job.spec);
  if (is == is_on(status, kSeccompReplaced)) return false;
  turn_condition(
      o, status, kSeccompReplaced, is, is ? "CheckpointNeedsUnconfined" : "AsInTemplate",
      is ? std::format("spec.template asks for seccompProfile {}, and the program runs Unconfined: a process under any "
                       "seccomp filter can be checkpointed only with CAP_SYS_ADMIN on the node, so its rank could "
                       "never move",
                       text_at(profile, "type"))
         : "the program runs under the seccomp profile of the template, if it names one");
  return is;
}

bool warn_of_overrides(const Observed& o, crds::BspJobStatus& status) {
  const nlohmann::json& spec = part_at(o.job.spec.pod_template, "spec");
  FirstFew texts("; ");
  if (const std::string policy = text_at(spec, "restartPolicy"); !policy.empty() && policy != "Never")
    texts.add(
        std::format("spec.template.spec.restartPolicy is {} and the pods have Never: a rank isn't restarted alone, "
                    "spec.runPolicy.backoffLimit counts restarts of the job",
                    policy));
  if (o.capacity_may_come && part_at(spec, "terminationGracePeriodSeconds") == 0)
    texts.add(
        "spec.template.spec.terminationGracePeriodSeconds is 0 and the pods have 1: with 0 a pod's object goes before "
        "its containers end, and another copy of the rank could be started beside one that runs");
  if (const nlohmann::json* app = crds::app_container(o.job.spec))
    if (const nlohmann::json& added = part_at(part_at(part_at(*app, "securityContext"), "capabilities"), "add");
        !added.empty())
      texts.add(
          std::format("spec.template.spec.containers[app].securityContext.capabilities.add {} is left out: the "
                      "program has no capabilities (raise a limit such as memlock on the nodes instead of "
                      "IPC_LOCK)",
                      added.dump()));
  if (const std::string own = own_pod_group(o.job.spec); o.capacity_may_come && !own.empty())
    texts.add(
        std::format("{} is left out: spec.scheduling.gang is {}, so the pods belong to a PodGroup of the operator's",
                    own, crds::to_string(o.job.spec.scheduling.gang)));
  const bool is = !texts.empty();
  if (is == is_on(status, kTemplateOverridden)) return false;
  turn_condition(o, status, kTemplateOverridden, is, "ReplacedByOperator", texts.text());
  return is;
}

bool warn_of_rejected_reports(const Observed& o, crds::BspJobStatus& status) {
  const bool was = is_on(status, kReportsRejected);
  const crds::RankPlace* latest = nullptr;
  const SidecarFacts* facts = nullptr;
  std::size_t ranks = 0;
  for (const crds::RankPlace& place : status.ranks) {
    const SidecarFacts* s = o.sidecar(place.seat());
    if (!s || s->rejected.empty() || to_seconds(o.steady - s->rejected_at) > kRejectedLately) continue;
    ++ranks;
    if (!facts || s->rejected_at > facts->rejected_at) latest = &place, facts = s;
  }
  const bool is = facts != nullptr;
  if (was == is) return false;
  turn_condition(o, status, kReportsRejected, is, is ? "NotBelieved" : "Reported",
                 is ? std::format("a message of the sidecar of rank {} ({}) was rejected: {}{}; the scheduler works "
                                  "without it",
                                  latest->rank.value, name_of(latest->seat()), facts->rejected,
                                  ranks > 1 ? std::format(" (and {})", counted(ranks - 1, "more rank")) : "")
                    : "the sidecars' reports are accepted");
  return is;
}

void refresh_status(const Observed& o, crds::BspJobStatus& status) {
  std::uint64_t by_all = ~0ull, by_one = 0;
  for (crds::RankPlace& place : status.ranks) {
    const SidecarFacts* sidecar = o.sidecar(place.seat());
    const wire::RankStatus* s = o.said(place.seat());
    const std::uint64_t completed = sidecar ? sidecar->completed : 0;
    by_all = std::min(by_all, completed);
    by_one = std::max(by_one, completed);
    // Set if a scheduler chose the node.
    if (const PodFacts* pod = o.pod(place.seat()); pod && !pod->node.empty()) place.node = pod->node;
    if (!s) continue;
    place.blocked_reason = s->blocked_reason;
    if (s->memory_bytes) place.memory_bytes = s->memory_bytes;
  }
  // A superstep ends with a call of all ranks, so of a program that has ended well, all have completed what one has: some
  // sidecars go with their pods before they have told the last one.
  const std::uint64_t completed = status.phase == crds::JobPhase::kSucceeded ? by_one : by_all;
  if (!status.ranks.empty()) status.superstep.value = std::max(status.superstep.value, completed);

  using crds::JobPhase;
  const bool runs = is_running(status.phase);
  std::map<std::string, crds::SetRanks> sets;
  for (const auto& node : o.nodes) {
    if (const auto& own = o.job.spec.sets.names; !own.empty() && !std::ranges::contains(own, node.set)) continue;
    auto& entry = sets[node.set];
    entry.set = node.set;
    entry.slots += node.slots;
  }
  // Free capacity changes with every other job, which doesn't matter to a job that moves no rank.
  if (!runs)
    for (const auto& before : status.ranks_per_set)
      if (const auto it = sets.find(before.set); it != sets.end()) it->second.slots = before.slots;
  for (const auto& place : status.ranks) {
    sets[place.set].set = place.set;
    ++sets[place.set].ranks;
  }
  status.ranks_per_set.clear();
  for (auto& [name, entry] : sets) status.ranks_per_set.push_back(std::move(entry));

  // A condition's reason follows its status, not every change of the phase.
  auto turned = [&](const char* type, bool on) {
    if (crds::find_condition(status.conditions, type) && is_on(status, type) == on) return;
    turn_condition(o, status, type, on, status.reason.empty() ? "Unknown" : status.reason, status.message);
  };
  turned("Starting", status.phase == JobPhase::kStarting);
  turned("Running", runs);
  turned("Migrating", status.phase == JobPhase::kMigrating);
  turned("Suspended", status.phase == JobPhase::kSuspended);
  turned("Complete", status.phase == JobPhase::kSucceeded);
  turned("Failed", status.phase == JobPhase::kFailed);
  // All of them are judged anew each time. kubectl wait passes over a condition of an older generation than the object's.
  for (crds::Condition& condition : status.conditions) condition.observed_generation = o.job.metadata.generation;
}

}  // namespace bsp::reconcile
