// Why an attempt failed, in a message that helps.
#include <algorithm>
#include <csignal>
#include <cstring>
#include <format>
#include <string_view>

#include "crds/refusal.h"
#include "operator/reconcile/kernel/silence.h"
#include "operator/reconcile/kernel/status.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {
namespace {

// How bsp-init explains an end that it brought about: its sidecar asked for it, or the memory limit was reached.
constexpr std::string_view kKilledBecause = "killed by SIGKILL: ";

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? std::format("SIG{}", name) : std::format("signal {}", signal);
}

// How Open MPI ends a rank that has lost the connection to another one: with the class of its error, as MPI_ERRORS_ARE_FATAL says.
constexpr bool is_of_survivor(int exit_code) {
  constexpr int kUnknown = 14, kOther = 16, kIntern = 17, kProcessFailed = 75;  // MPI_ERR_…
  return exit_code == kUnknown || exit_code == kOther || exit_code == kIntern || exit_code == kProcessFailed;
}

// What was done to a rank from outside never follows from how another one ended. A program's own end may.
enum class Weight { kDoneToIt, kOwnEnd, kOfSurvivor };

// With pod and container, where it shares the pod with others.
std::string text_of(std::uint32_t rank, const Seat& seat, const PodFacts& pod) {
  const std::string name = std::format("rank {}", rank);
  return pod.apps.size() == 1 ? name : std::format("{} ({}/{})", name, seat.pod, container_of(seat.local));
}

// How the program failed, according to its sidecar or else the node; nullopt: it runs, or ended well.
std::optional<Failure> end_of(std::uint32_t rank, const Seat& seat, const AppFacts& app, const SidecarFacts* sidecar,
                              bool epoch_open, const std::string& who) {
  const wire::RankStatus* status = sidecar && sidecar->status ? &*sidecar->status : nullptr;
  const bool reported = status && status->phase == wire::RankPhase::kExited;
  if (!reported && !app.ended) return std::nullopt;
  int code = reported ? status->exit_code : app.exit_code;
  int signal = reported ? status->exit_signal : 0;
  if (!reported && code > 128) signal = code - 128, code = -1;
  const bool initialized = status && status->mpi_initialized;
  const std::string& why = reported ? status->exit_message : app.message;
  if (code != 0 && why.contains(names::kEpochFailed)) {
    return Failure{
        rank,         seat,
        "RankExited", std::format("{} exited with code {}: {}", who, code, why.substr(why.find(names::kEpochFailed))),
        false,        true};
  }
  // bsp-init explains why a program could not be run; another attempt would fail alike.
  if (reported && !status->exit_message.empty() && !initialized && (code != 0 || signal != 0))
    return Failure{rank, seat, "CannotRun", std::format("{}: {}", who, status->exit_message), true};
  if (signal != 0) {
    if (reported && status->exit_message.starts_with(kKilledBecause))
      return Failure{rank, seat, "RankKilled",
                     std::format("{} was ended: {}", who, status->exit_message.substr(kKilledBecause.size())), false};
    const char* hint = app.reason == "OOMKilled" ? " (out of memory: raise the memory limit of its container)"
                       : signal == SIGKILL       ? " (killed from outside, or out of memory)"
                                                 : "";
    return Failure{rank, seat, "RankKilled", std::format("{} was ended by {}{}", who, signal_name(signal), hint),
                   false};
  }
  if (code != 0 && why.contains(names::kAborted))
    return Failure{
        rank, seat, "RankExited",
        std::format("{} exited with code {}, since {}; so the job is not restarted", who, code, names::kAborted), true};
  if (code != 0)
    return Failure{
        rank, seat, "RankExited", std::format("{} exited with code {}", who, code), false, is_of_survivor(code)};
  // MPI_Init returns only once the epoch is open. What a sidecar said before the end doesn't show what the program did since.
  if (reported ? !initialized : !epoch_open)
    return Failure{rank, seat, "NotMpi",
                   std::format("the program of {} ended without calling MPI_Init: a BSPJob runs MPI "
                               "programs that are linked dynamically with Open MPI 5 or newer",
                               who),
                   true};
  return std::nullopt;
}

// The program ended as its sidecar says, and was not just killed by the node that ended its pod.
bool ended_by_itself(const wire::RankStatus& status) {
  const bool killed = status.exit_signal == SIGKILL || status.exit_signal == SIGTERM;
  return status.phase == wire::RankPhase::kExited && (!killed || status.exit_message.starts_with(kKilledBecause));
}

// Every rank has returned from MPI_Finalize, or exited with 0: the job's results are complete.
bool all_finalized(const Observed& o) {
  return std::ranges::all_of(o.job.status.ranks, [&](const crds::RankPlace& place) {
    const wire::RankStatus* said = o.said(place.seat());
    if (said && said->mpi_finalized) return true;
    const AppFacts* app = o.app(place.seat());
    return app && app->ended && (app->exit_code == 0 || app->finalized);
  });
}

}  // namespace

namespace {
// Its sidecar answers for a process that was let into no epoch, though the rank was: a kubelet has begun the pod anew, as it does when
// the API server shows it again after a restore.
bool has_begun_anew(const Observed& o, const crds::RankPlace& place) {
  const wire::RankStatus* said = o.said(place.seat());
  if (!ranks_run(o.job.status) || !said || !said->init_connected || said->epoch != 0 || said->admitted_epoch != 0)
    return false;
  if (said->phase != wire::RankPhase::kStarting && said->phase != wire::RankPhase::kWaiting) return false;
  const auto wave = stored_wave(o.job.status);
  return !wave || !*wave || migrate::is_finished(**wave) ||
         !std::ranges::contains((*wave)->moves, place.seat(), &migrate::Move::target);
}
}  // namespace

std::string where(const crds::RankPlace& place, const Observed& o) {
  const PodFacts* pod = o.pod(place.seat());
  const std::string& node = pod && !pod->node.empty() ? pod->node : place.node;
  if (node.empty()) return "";
  const auto trouble = o.node_troubles.find(node);
  return std::format("; it was on node {}{}", node,
                     trouble == o.node_troubles.end() ? "" : ", which " + trouble->second);
}

namespace {
std::string with_reason(std::string what, const std::string& why) {
  return why.empty() ? std::move(what) : std::format("{}: {}", what, why);
}

// A survivor's end is all that is known, and another rank has fallen silent: its machine has gone, of which the cluster hears later.
void blame_silent_rank(const Observed& o, Failure& failure) {
  for (const crds::RankPlace& place : o.job.status.ranks) {
    const SidecarFacts* sidecar = o.sidecar(place.seat());
    const AppFacts* app = o.app(place.seat());
    if (place.pod == failure.seat.pod || !sidecar || !app || app->ended) continue;
    const auto& said = sidecar->status;
    if (sidecar->unreachable_since == SteadyTime{} || (said && said->phase == wire::RankPhase::kExited)) continue;
    failure.message = std::format("the sidecar of rank {} ({}) does not answer{}, and {}", place.rank.value,
                                  name_of(place.seat()), where(place, o), failure.message);
    failure.rank = place.rank.value;
    failure.seat = place.seat();
    failure.reason = "SidecarLost";
    return;
  }
}
}  // namespace

std::optional<Failure> find_failure(const Observed& o, const JobLimits& limits) {
  std::optional<Failure> found;
  std::pair<Weight, SteadyTime> found_at;
  auto consider = [&](Failure failure, Weight weight, SteadyTime at) {
    // The first failure of the least weight is the cause; the others mostly follow from it.
    if (found && std::pair(weight, at) >= found_at) return;
    found = std::move(failure);
    found_at = {weight, at};
  };
  for (const crds::RankPlace& place : o.job.status.ranks) {
    const std::uint32_t rank = place.rank.value;
    const Seat seat = place.seat();
    const PodFacts* pod = o.pod(seat);
    if (!pod) {
      if (o.job.status.epoch)
        consider(
            {rank, seat, "PodLost", std::format("pod {} of rank {} is gone", place.pod, rank) + where(place, o), false},
            Weight::kDoneToIt, o.steady);
      continue;
    }
    const AppFacts& app = pod->app(seat.local);
    const SidecarFacts* sidecar = o.sidecar(seat);
    if (app.cannot_start) {
      const bool image = app.reason.starts_with("ErrImage");
      return Failure{rank, seat, image ? "ImageNotFound" : "CannotStart",
                     std::format("pod {}: {}", name_of(seat), app.message.empty() ? app.reason : app.message), true};
    }
    if (app.pod_ended && !(sidecar && sidecar->status && ended_by_itself(*sidecar->status))) {
      // Every attempt would end alike.
      const bool final = app.reason == "DeadlineExceeded";
      const bool named = final || app.reason == "InitContainerFailed";
      consider({rank, seat, named ? app.reason : "PodLost",
                std::format("the node ended pod {} of rank {}: {}", place.pod, rank,
                            app.message.empty() ? app.reason : app.message) +
                    where(place, o),
                final},
               Weight::kDoneToIt, o.steady);
      continue;
    }
    if (!app.ended && has_begun_anew(o, place)) {
      consider({rank, seat, "PodLost",
                std::format("the program of rank {} has begun anew in pod {}, so the one that was in epoch {} is gone",
                            rank, place.pod, o.job.status.epoch ? o.job.status.epoch->epoch : 0) +
                    where(place, o),
                false},
               Weight::kDoneToIt, o.steady);
      continue;
    }
    auto end = end_of(rank, seat, app, sidecar, o.job.status.epoch.has_value(), text_of(rank, seat, *pod));
    if (app.ended && !end) continue;  // well
    if (pod->deleting) {              // so its program was told to end
      consider({rank, seat, "PodLost",
                with_reason(std::format("pod {} of rank {} {}", place.pod, rank,
                                        pod->vanished ? "is gone" : "is being deleted"),
                            pod->disruption) +
                    where(place, o),
                false},
               Weight::kDoneToIt, o.steady);
    } else if (end) {
      if (sidecar) end->since = sidecar->phase_since;
      consider(*end, end->of_survivor ? Weight::kOfSurvivor : Weight::kOwnEnd,
               end->since != SteadyTime{} ? end->since : o.steady);
    }
  }
  for (const Silence::Rank& silent : judge_silence(o, limits).ranks)
    if (silent.gone)
      consider({silent.rank, silent.seat, "SidecarLost", silent.text, false}, Weight::kDoneToIt, silent.since);
  if (found && found->of_survivor) blame_silent_rank(o, *found);
  // How a finished program exits is no reason to compute everything again.
  if (found && !found->final && all_finalized(o)) {
    found->final = true;
    found->message += "; every rank had passed MPI_Finalize, so the job is not restarted";
  }
  return found;
}

}  // namespace bsp::reconcile
