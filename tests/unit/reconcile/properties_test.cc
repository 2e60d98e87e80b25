// Whatever happens, in any order: a rank never runs twice, nothing is stored that can't be read, the attempts are
// bounded, and the job ends. The world checks the first three at every tick (world.h); rapidcheck shrinks what fails
// to the fewest faults and prints them; the trace is printed with it.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <format>
#include <iostream>

#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {

enum class FaultKind {
  kProgramKilled,
  kProgramFails,
  kSidecarDiesWithProgram,
  kPodLost,
  kPodDeleted,
  kEvicted,
  kSidecarSilent,
  kSidecarRestarts,
  kOperatorKilled,
  kOperatorKilledAfterAWrite,
  kWriteConflicts,
  kSuspended,
  kResumed,
  kMoveByHand,
  kWrongMoveByHand,
  kDecision,
  kTargetPodLost,
  kNodeCordoned,
  kPoolJoins,
  kCutOff,
  kOperatorCutOff,
  kClockSet,
  kApiPaused,
  kVanished,
};
constexpr int kFaultKinds = 24;

struct Fault {
  int at = 0;  // tick
  FaultKind kind{};
  std::uint32_t rank = 0;
  int amount = 0;  // 0..60: how long, which
};
std::ostream& operator<<(std::ostream& out, const Fault& f) {
  return out << std::format("{{.at = {}, .kind = FaultKind({}), .rank = {}, .amount = {}}}", f.at,
                            static_cast<int>(f.kind), f.rank, f.amount);
}

}  // namespace bsp::reconcile::sim

namespace rc {
using bsp::reconcile::sim::Fault;
using bsp::reconcile::sim::FaultKind;

template <>
struct Arbitrary<Fault> {
  static Gen<Fault> arbitrary() {
    return gen::build<Fault>(gen::set(&Fault::at, gen::inRange(0, 180)),
                             gen::set(&Fault::kind, gen::map(gen::inRange(0, bsp::reconcile::sim::kFaultKinds),
                                                             [](int k) { return static_cast<FaultKind>(k); })),
                             gen::set(&Fault::rank, gen::inRange(0u, 3u)),
                             gen::set(&Fault::amount, gen::inRange(0, 60)));
  }
};
}  // namespace rc

namespace bsp::reconcile::sim {
namespace {

void happen(World& w, const Fault& f, int number) {
  const std::string pod = f.rank < w.job.status.ranks.size() ? w.job.status.ranks[f.rank].pod : "";
  std::string target;
  for (const auto& [name, p] : w.pods)
    if (p.target && name != pod) target = name;
  switch (f.kind) {
    case FaultKind::kProgramKilled:
      return w.end_program(f.rank, 0, 9);
    case FaultKind::kProgramFails:
      return w.end_program(f.rank, 1 + f.amount, 0);
    case FaultKind::kSidecarDiesWithProgram:
      return w.end_program(f.rank, 0, 9, false);
    case FaultKind::kPodLost:
      return w.lose_pod(pod);
    case FaultKind::kPodDeleted:
      return w.delete_pod(pod);
    case FaultKind::kEvicted:
      return w.evict(pod);
    case FaultKind::kSidecarSilent:
      return w.silence(pod, 2 * f.amount);
    case FaultKind::kSidecarRestarts:
      return w.restart_sidecar(f.amount % 2 && !target.empty() ? target : pod);
    case FaultKind::kOperatorKilled:
      return w.restart_operator(f.amount);
    case FaultKind::kOperatorKilledAfterAWrite:
      w.die_after_stores = f.amount % 12;
      return;
    case FaultKind::kWriteConflicts:
      w.conflicts = f.amount % 6;
      return;
    case FaultKind::kSuspended:
      w.job.spec.run_policy.suspend = true;
      return;
    case FaultKind::kResumed:
      w.job.spec.run_policy.suspend = false;
      return;
    case FaultKind::kMoveByHand:
      return w.migrate_by_hand(std::format("m{}", number), f.rank, f.amount % 2 ? "fast" : "slow");
    case FaultKind::kWrongMoveByHand:
      return w.migrate_by_hand(std::format("wrong{}", number), f.rank + (f.amount % 2 ? 10 : 0),
                               f.amount % 3 ? "gpu" : "fast");
    case FaultKind::kDecision: {
      std::vector<MoveRequest> moves;
      for (std::uint32_t r = 0; r < 3; ++r)
        if (f.amount >> r & 1) moves.push_back({"", r, f.amount & 8 ? "fast" : "slow", ""});
      if (w.job.status.phase == crds::JobPhase::kRunning) w.decide(std::move(moves));
      return;
    }
    case FaultKind::kTargetPodLost:
      return w.lose_pod(target);
    case FaultKind::kNodeCordoned:
      w.nodes[static_cast<std::size_t>(f.amount) % w.nodes.size()].cordoned = true;
      return;
    case FaultKind::kPoolJoins:
      w.nodes.insert(w.nodes.begin(), {.name = std::format("aaa-{}", number), .set = "aaa"});
      return;
    case FaultKind::kCutOff:
      return w.cut_off(f.amount % 3 == 0 && !target.empty() ? target : pod, 8 * f.amount);
    case FaultKind::kOperatorCutOff:
      return w.silence_all(4 * f.amount);
    case FaultKind::kClockSet:
      w.now += std::chrono::minutes(4 * (f.amount - 30));
      return;
    case FaultKind::kApiPaused:
      return w.pause_api(4 * f.amount);
    case FaultKind::kVanished:
      return w.vanish(f.amount % 3 == 0 && !target.empty() ? target : pod, 2 * f.amount);
  }
}

std::string shortest_trace;  // of the failures; rapidcheck's last attempt may be one that passes

void end_well(const std::vector<Fault>& faults, std::uint32_t seed) {
  World w({.ranks = 3, .slow = 4, .fast = 4, .supersteps = 60, .seed = seed});
  auto hold = [&](bool ok, const char* what) {
    if (ok) return;
    if (shortest_trace.empty() || w.trace.size() < shortest_trace.size()) shortest_trace = w.trace;
    RC_ASSERT(w.violation == std::string());
    RC_FAIL(what);
  };
  for (int tick = 0; tick < 200 && w.violation.empty(); ++tick) {
    for (std::size_t i = 0; i < faults.size(); ++i)
      if (faults[i].at == tick) happen(w, faults[i], static_cast<int>(i));
    w.tick();
  }
  // The faults are over; some nodes may be cordoned for good, so that the job may also fail for lack of capacity.
  w.job.spec.run_policy.suspend = false;
  const bool ended = w.run_until([&] { return crds::is_finished(w.job.status.phase); }, 3000);
  hold(ended && w.violation.empty(), "the job does not end");
  for (int i = 0; i < 20; ++i) w.tick();
  hold(w.violation.empty(), "something went wrong after the end");
  hold(w.all_ended(), "a program is left running");
  // The last fault may have been a long pause of the API server.
  hold(w.run_until([&] { return w.unrest().empty(); }, 300), "the operator does not rest");
  for (const auto& [name, m] : w.migrations) hold(crds::is_finished(m.status.phase), "a migration never ended");
  hold(w.job.status.migrations.active == 0, "a migration counts as active");
  const auto& c = w.job.status.migrations;
  std::uint32_t shown = 0;
  for (const auto& [name, m] : w.migrations) shown += m.status.wave != 0 && m.status.reason != "NoSuchWave";
  hold(c.succeeded + c.rolled_back + c.failed >= shown, "migrations are miscounted");
}

class ReconcileProperties : public testing::Test {
 protected:
  ReconcileProperties() {
    sim::try_cases(40);
    shortest_trace.clear();
  }
  ~ReconcileProperties() override {
    if (HasFailure()) std::cerr << "The shortest trace of a failure:\n" << shortest_trace;
  }
};

TEST_F(ReconcileProperties, AnyFaultsWithLateAndLostMessagesEndWell) {
  EXPECT_TRUE(rc::check("any faults, messages late or lost",
                        [](const std::vector<Fault>& faults) { end_well(faults, *rc::gen::inRange(1u, 1000u)); }));
}

// With nothing random but the faults, a case is always the same, and one that fails shrinks to few.
TEST_F(ReconcileProperties, AnyFaultsWithMessagesAtOnceEndWell) {
  EXPECT_TRUE(rc::check("any faults, messages at once", [](const std::vector<Fault>& faults) { end_well(faults, 0); }));
}

// Few faults, one of them in the middle of a wave, where most can go wrong.
TEST_F(ReconcileProperties, AnyTwoFaultsInAWaveEndWell) {
  EXPECT_TRUE(rc::check("two faults in a wave", [] {
    Fault first = *rc::gen::arbitrary<Fault>(), second = *rc::gen::arbitrary<Fault>();
    Fault move{.at = 20, .kind = FaultKind::kDecision, .rank = 0, .amount = 8 + *rc::gen::inRange(1, 8)};
    first.at = *rc::gen::inRange(20, 50);
    second.at = *rc::gen::inRange(20, 60);
    end_well({move, first, second}, *rc::gen::inRange(0u, 1000u));
  }));
}

}  // namespace
}  // namespace bsp::reconcile::sim
