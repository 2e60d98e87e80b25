// Whoever loses a rank is told what was done to it, not how the others ended after that. In each case rank 0, which has lost its peer,
// ends as Open MPI ends such a rank, and is seen to end first.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using crds::JobPhase;
using sim::World;

struct Loss {
  const char* name;
  std::function<void(World&)> happens;
  const char* reason;
  const char* message;
};

void survivor_ends(World& w) { w.end_program(0, 14, 0); }
std::function<void(World&)> then(void (*loss)(World&)) {
  return [loss](World& w) {
    survivor_ends(w);
    for (int i = 0; i < 5; ++i) w.tick();
    loss(w);
  };
}

const Loss kLosses[] = {
    {"Deleted", then([](World& w) { w.delete_pod("job-r1-g0"); }), "PodLost",
     "pod job-r1-g0 of rank 1 is being deleted"},
    {"DeletedAndEndedBySigterm", then([](World& w) {
       w.delete_pod("job-r1-g0");
       w.end_program(1, 0, 15);
     }),
     "PodLost", "pod job-r1-g0 of rank 1 is being deleted"},
    {"Preempted", then([](World& w) {
       w.find("job-r1-g0")->disruption = {{"reason", "PreemptionByScheduler"},
                                          {"message", "preempting to accommodate x"}};
       w.delete_pod("job-r1-g0");
     }),
     "PodLost", "pod job-r1-g0 of rank 1 is being deleted: PreemptionByScheduler, preempting to accommodate x"},
    {"Evicted", then([](World& w) { w.evict("job-r1-g0"); }), "PodLost",
     "the node ended pod job-r1-g0 of rank 1: the node was low on memory"},
    {"ObjectGone", then([](World& w) { w.vanish("job-r1-g0", 20); }), "PodLost", "pod job-r1-g0 of rank 1 is gone"},
    {"MachineOff", then([](World& w) { w.cut_off("job-r1-g0", 10'000); }), "SidecarLost",
     "the sidecar of rank 1 (job-r1-g0) does not answer; it was on node slow-1, and rank 0 exited with code 14"},
    {"MachineOffAndNodeNotReady", then([](World& w) {
       w.node_troubles["slow-1"] = "is not ready";
       w.cut_off("job-r1-g0", 10'000);
     }),
     "SidecarLost", "does not answer; it was on node slow-1, which is not ready, and rank 0 exited with code 14"},
    {"Killed", then([](World& w) { w.end_program(1, 0, 9); }), "RankKilled", "rank 1 was ended by SIGKILL"},
    {"Crashed", then([](World& w) { w.end_program(1, 0, 11); }), "RankKilled", "rank 1 was ended by SIGSEGV"},
    {"Failed", then([](World& w) { w.end_program(1, 3, 0); }), "RankExited", "rank 1 exited with code 3"},
    {"EndedAsAnEpochOpened",
     [](World& w) {
       w.end_program(0, 1, 0);
       w.find("job-r0-g0")->status.exit_message = "bsp: rank 0: MPI failed at epoch 2: MPI_Comm_create_from_group: x";
       for (int i = 0; i < 5; ++i) w.tick();
       w.end_program(1, 0, 15);
     },
     "RankKilled", "rank 1 was ended by SIGTERM"},
    {"NothingElse", survivor_ends, "RankExited", "rank 0 exited with code 14"},
};

class Cause : public testing::TestWithParam<std::tuple<Loss, migrate::Phase>> {};

TEST_P(Cause, IsNamed) {
  const auto& [loss, phase] = GetParam();
  World w({.ranks = 2, .slow = 2, .fast = 2});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  if (phase != migrate::Phase::kPending) {
    w.migrate_by_hand("by-hand", 1, "fast");
    ASSERT_TRUE(w.run_until(phase)) << w.trace;
  }
  loss.happens(w);
  ASSERT_TRUE(w.run_until([&] { return !w.job.status.restarts.empty(); })) << w.trace;
  const crds::RestartRecord& restart = w.job.status.restarts[0];
  EXPECT_EQ(restart.reason, phase == migrate::Phase::kPending ? loss.reason : "RankLost") << w.trace;
  EXPECT_THAT(restart.message, testing::HasSubstr(loss.message)) << w.trace;
  if (phase != migrate::Phase::kPending) {
    const auto seen = [&] { return w.migrations.at("by-hand").status.phase == crds::MigrationPhase::kFailed; };
    ASSERT_TRUE(w.run_until(seen)) << w.trace;
    EXPECT_THAT(w.migrations.at("by-hand").status.message, testing::HasSubstr(loss.message)) << w.trace;
  }
  EXPECT_EQ(restart.rank, RankId{std::string_view(loss.name) == "NothingElse" ? 0u : 1u});
  EXPECT_EQ(w.violation, "") << w.trace;
}

INSTANTIATE_TEST_SUITE_P(EveryWay, Cause,
                         testing::Combine(testing::ValuesIn(kLosses),
                                          testing::Values(migrate::Phase::kPending, migrate::Phase::kPreparing)),
                         [](const auto& param) {
                           const bool moves = std::get<1>(param.param) != migrate::Phase::kPending;
                           return std::string(std::get<0>(param.param).name) + (moves ? "WhileRanksMove" : "");
                         });

}  // namespace
}  // namespace bsp::reconcile
