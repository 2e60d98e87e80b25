// Seats that ranks have left: others move into them, without a pod or a slot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "operator/reconcile/kernel/rescheduling/move_memory.h"
#include "operator/reconcile/kernel/seats/free_seats.h"
#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Ranks 0, 1 and 2 are in the pod on slow-0, 3 and 4 in that on fast-0, which has one more slot.
Options two_nodes() {
  return {.ranks = 5, .slow = 1, .fast = 1, .slots = 3, .ranks_per_pod = crds::RanksPerPod::kAuto};
}
const Seat kLeft{"job-r0-g0", 1};

class FreeSeats : public testing::Test {
 protected:
  // Rank 1 takes the last slot of fast-0, and leaves its seat. From then on every slot is the job's.
  void leave() {
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    ASSERT_THAT(seats(),
                ElementsAre("job-r0-g0", "job-r0-g0/app-1", "job-r0-g0/app-2", "job-r3-g0", "job-r3-g0/app-1"));
    w.migrate_by_hand("leave", 1, "fast");
    ASSERT_TRUE(w.run_until([&] { return ended("leave") && w.find(kLeft)->process == Process::kNone; })) << w.trace;
    ASSERT_TRUE(w.run_until([&] { return w.unrest().empty(); })) << w.unrest() << w.trace;
    pods_made = w.created.size();
  }
  std::vector<std::string> seats() {
    std::vector<std::string> seats;
    for (const crds::RankPlace& place : w.job.status.ranks) seats.push_back(name_of(place.seat()));
    return seats;
  }
  bool ended(const std::string& migration) { return w.migration(migration).status.phase == Phase::kSucceeded; }
  bool refused(const std::string& migration) {
    return w.run_until([&] { return w.migration(migration).status.phase == Phase::kFailed; });
  }
  void expect_progress() {
    const std::uint64_t superstep = w.job.status.superstep.value;
    EXPECT_TRUE(w.run_until([&] { return w.job.status.superstep.value > superstep + 5; })) << w.trace;
    EXPECT_TRUE(w.run_until([&] { return w.unrest().empty(); })) << w.unrest() << w.trace;
  }
  void move(const std::string& migration, std::uint32_t rank, const std::string& node) {
    w.migrate_by_hand(migration, rank, node.starts_with("slow") ? "slow" : "fast", node);
  }

  World w{two_nodes()};
  std::size_t pods_made = 0;
};

TEST_F(FreeSeats, ARankGoesIntoTheSeatThatAnotherHasLeft) {
  leave();
  EXPECT_THAT(free_seats(w.observe()), ElementsAre(std::pair("slow-0", std::vector{kLeft})));
  w.migrate_by_hand("m", 3, "slow");
  ASSERT_TRUE(w.run_until([&] { return ended("m"); })) << w.trace;
  EXPECT_THAT(seats(), ElementsAre("job-r0-g0", "job-r1-g1", "job-r0-g0/app-2", "job-r0-g0/app-1", "job-r3-g0/app-1"));
  EXPECT_EQ(w.migration("m").status.target_pod, "job-r0-g0");
  EXPECT_EQ(w.migration("m").status.target_node, "slow-0");
  ASSERT_TRUE(w.run_until([&] { return w.unrest().empty(); })) << w.unrest() << w.trace;
  EXPECT_THAT(free_seats(w.observe()), ElementsAre(std::pair("fast-0", std::vector{Seat{"job-r3-g0", 0}})));
  // The one that left first comes home, and the pod that was made for it goes.
  move("home", 1, "fast-0");
  ASSERT_TRUE(refused("home")) << "it is there";
  move("further", 0, "fast-0");
  ASSERT_TRUE(w.run_until([&] { return ended("further"); })) << w.trace;
  move("home-again", 1, "slow-0");
  ASSERT_TRUE(w.run_until([&] { return ended("home-again") && !w.find("job-r1-g1"); })) << w.trace;
  EXPECT_THAT(seats(), ElementsAre("job-r3-g0", "job-r0-g0", "job-r0-g0/app-2", "job-r0-g0/app-1", "job-r3-g0/app-1"));
  EXPECT_EQ(w.created.size(), pods_made);
  expect_progress();
}

// Asked for at once: the second waits for the seat that the first one leaves.
TEST_F(FreeSeats, RanksSwapWithoutASlotBesideTheFreeSeat) {
  leave();
  for (int round = 0; round < 3; ++round) {
    const std::string there = std::format("there-{}", round), back = std::format("back-{}", round);
    move(back, round % 2 == 0 ? 0 : 3, "fast-0");
    move(there, round % 2 == 0 ? 3 : 0, "slow-0");
    ASSERT_TRUE(w.run_until([&] { return ended(there) && ended(back); }))
        << w.migration(there).status.message << w.migration(back).status.message << w.trace;
  }
  EXPECT_EQ(w.created.size(), pods_made);
  EXPECT_THAT(w.pods, SizeIs(3));
  EXPECT_TRUE(w.run_until([&] { return w.unrest().empty(); })) << w.unrest() << w.trace;
}

TEST_F(FreeSeats, TwoRanksDoNotGetOneSeat) {
  leave();
  move("first", 3, "slow-0");
  move("second", 4, "slow-0");
  ASSERT_TRUE(w.run_until([&] { return ended("first"); })) << w.trace;
  ASSERT_TRUE(refused("second")) << w.trace;
  EXPECT_EQ(w.migration("second").status.reason, "NoCapacity");
  EXPECT_EQ(name_of(w.job.status.ranks[4].seat()), "job-r3-g0/app-1");
}

TEST_F(FreeSeats, ASeatWhoseContainerHasEndedIsNone) {
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.find(kLeft)->leaves_files = true;
  w.migrate_by_hand("leave", 1, "fast");
  ASSERT_TRUE(w.run_until([&] { return ended("leave") && w.find(kLeft)->process == Process::kEnded; })) << w.trace;
  EXPECT_TRUE(free_seats(w.observe()).empty());
  move("home", 1, "slow-0");
  ASSERT_TRUE(refused("home")) << w.trace;
  EXPECT_THAT(w.migration("home").status.message, HasSubstr("node slow-0 has no free slot"));
  expect_progress();
}

// It ends later, while no move is under way.
TEST_F(FreeSeats, ASeatIsCountedOnlyWhileItIsSeenToWait) {
  leave();
  const auto slots = [&](const char* node) {
    const Observed o = w.observe();
    return MoveCapacity(o).free_slots(*std::ranges::find(o.nodes, node, &observe::NodeFacts::name));
  };
  EXPECT_EQ(slots("slow-0"), 1u);
  EXPECT_EQ(slots("fast-0"), 0u);
  w.silence("job-r0-g0", 3);
  for (int i = 0; i < 2; ++i) w.tick();
  EXPECT_EQ(slots("slow-0"), 0u);
  ASSERT_TRUE(w.run_until([&] { return slots("slow-0") == 1; })) << w.trace;
  w.end_container(kLeft);
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_EQ(slots("slow-0"), 0u);
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning) << "it was no rank's";
  EXPECT_EQ(w.job.status.attempt, 0u);
}

// A receive of a wave that is over comes late, when the next one has replaced it in the status.
TEST_F(FreeSeats, ASeatIsFreeAgainWhateverAnEarlierWaveHasLeftThere) {
  using wire::TransferPhase;
  leave();
  for (const TransferPhase phase : {TransferPhase::kReceiving, TransferPhase::kReceived, TransferPhase::kFailed}) {
    simulated::Pod& seat = *w.find(kLeft);
    seat.status.transfer = {};
    seat.status.transfer.migration = "late";
    seat.status.transfer.phase = phase;
    ++seat.status.version;
    w.tick();
    w.tick();
    ASSERT_TRUE(w.run_until([&] { return !free_seats(w.observe()).empty(); })) << static_cast<int>(phase) << w.trace;
  }
  w.migrate_by_hand("m", 3, "slow");
  ASSERT_TRUE(w.run_until([&] { return ended("m"); })) << w.trace;
  expect_progress();
}

TEST_F(FreeSeats, NoRankGoesToANodeThatIsDrained) {
  leave();
  w.cordon("slow-0");
  EXPECT_TRUE(free_seats(w.observe()).empty());
  move("m", 3, "slow-0");
  ASSERT_TRUE(refused("m")) << w.trace;
  // Nor is its pod left behind. One more node takes its ranks.
  w.nodes.push_back({.name = "slow-1", .set = "slow", .speed = 0.25, .slots = 3});
  ASSERT_TRUE(w.run_until([&] { return !w.find("job-r0-g0"); }, 3000)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
}

TEST_F(FreeSeats, NoRankGoesToAPodThatOthersAreAskedToLeave) {
  leave();
  w.nodes.push_back({.name = "slow-1", .set = "slow", .speed = 0.25, .slots = 3});
  w.migrate_by_hand("away", 2, "", std::string(crds::kAnyOtherNode));
  move("m", 3, "slow-0");
  ASSERT_TRUE(w.run_until([&] { return ended("away"); })) << w.trace;
  EXPECT_EQ(w.job.status.ranks[2].node, "slow-1");
  EXPECT_NE(w.migration("m").status.phase, Phase::kSucceeded) << w.trace;
}

TEST_F(FreeSeats, AMigrationThatIsDeletedLeavesTheSeatFree) {
  leave();
  w.migrate_by_hand("m", 3, "slow");
  ASSERT_TRUE(w.run_until(Phase::kPausing)) << w.trace;
  w.delete_migration("m");
  ASSERT_TRUE(w.run_until(Phase::kRolledBack)) << w.trace;
  ASSERT_TRUE(w.run_until([&] { return w.unrest().empty(); })) << w.unrest() << w.trace;
  EXPECT_THAT(free_seats(w.observe()), ElementsAre(std::pair("slow-0", std::vector{kLeft})));
  ASSERT_TRUE(w.find("job-r0-g0"));
  w.migrate_by_hand("again", 3, "slow");
  ASSERT_TRUE(w.run_until([&] { return ended("again"); })) << w.trace;
}

// The cost model's moves have no RankMigration until the operator has written one.
TEST_F(FreeSeats, TheCostModelMovesRanksThere) {
  leave();
  w.decide({{.migration = "", .rank = 3, .set = "slow", .node = "slow-0"}});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 2; })) << w.trace;
  EXPECT_EQ(name_of(w.job.status.ranks[3].seat()), name_of(kLeft));
  EXPECT_THAT(w.migrations, SizeIs(2));
}

// A plan names those first that gain most.
TEST(FreeSeatsOfAPlan, AreTakenInTheOrderOfRanks) {
  World w({.ranks = 5, .slow = 1, .fast = 1, .slots = 4, .ranks_per_pod = crds::RanksPerPod::kAuto});
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  for (const std::uint32_t rank : {1u, 2u}) w.migrate_by_hand(std::format("leave-{}", rank), rank, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 2 && w.unrest().empty(); })) << w.trace;
  w.decide({{.migration = "", .rank = 4, .set = "slow", .node = "slow-0"},
            {.migration = "", .rank = 1, .set = "slow", .node = "slow-0"}});
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 4; })) << w.trace;
  EXPECT_EQ(name_of(w.job.status.ranks[1].seat()), "job-r0-g0/app-1");
  EXPECT_EQ(name_of(w.job.status.ranks[4].seat()), "job-r0-g0/app-2");
}

TEST_F(FreeSeats, AnotherLibraryThereIsASeatForNobody) {
  leave();
  w.pod_of(3)->for_each_seat([](simulated::Pod& seat) { seat.status.runtime = "b"; });
  w.find(kLeft)->status.runtime = "a";
  for (int i = 0; i < 3; ++i) w.tick();
  move("m", 3, "slow-0");
  ASSERT_TRUE(refused("m")) << w.trace;
  EXPECT_EQ(w.migration("m").status.reason, "NoCapacity");
}

TEST_F(FreeSeats, ALostStatusIsRebuiltFromWhatTheSeatsSay) {
  leave();
  w.remove_status();
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(w.job.status.attempt, 0u);
  w.migrate_by_hand("m", 3, "slow");
  ASSERT_TRUE(w.run_until([&] { return ended("m") && w.unrest().empty(); })) << w.trace;
  const auto before = seats();
  w.remove_status();
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_EQ(seats(), before);
  EXPECT_EQ(w.job.status.attempt, 0u);
  expect_progress();
}

// --- Every fault in every phase of a move into a free seat ------------------------------------------------------------
struct FaultOfReuse {
  const char* name;
  void (*strikes)(World&);
};
void PrintTo(const FaultOfReuse& fault, std::ostream* out) { *out << fault.name; }

constexpr const char* kLeavesPod = "job-r3-g0";
constexpr const char* kWithFreeSeat = "job-r0-g0";
const FaultOfReuse kFaultsOfReuse[] = {
    {"FreeContainerEnds", [](World& w) { w.end_container(kLeft); }},
    {"TargetPod", [](World& w) { w.lose_pod(kWithFreeSeat); }},
    {"TargetDeleted", [](World& w) { w.delete_pod(kWithFreeSeat); }},
    {"TargetEvicted", [](World& w) { w.evict(kWithFreeSeat); }},
    {"TargetNodeDrains", [](World& w) { w.cordon("slow-0"); }},
    {"TargetSidecar", [](World& w) { w.restart_sidecar(kWithFreeSeat); }},
    {"TargetSilent", [](World& w) { w.silence(kWithFreeSeat, 40); }},
    {"ProgramBesideTheSeat", [](World& w) { w.end_program(0, -1, 9); }},
    {"SourcePod", [](World& w) { w.lose_pod(kLeavesPod); }},
    {"SourceSidecar", [](World& w) { w.restart_sidecar(kLeavesPod); }},
    {"SourceSilent", [](World& w) { w.silence(kLeavesPod, 40); }},
    {"MovingProgram", [](World& w) { w.end_program(3, -1, 9); }},
    {"Operator", [](World& w) { w.restart_operator(3); }},
    {"Conflicts", [](World& w) { w.conflicts = 3; }},
    {"MigrationDeleted", [](World& w) { w.delete_migration("m"); }},
};
constexpr Phase kEveryPhase[] = {Phase::kPreparing, Phase::kPausing,  Phase::kCheckpointing, Phase::kTransferring,
                                 Phase::kRestoring, Phase::kResuming, Phase::kSucceeded};

class FreeSeatFault : public testing::TestWithParam<std::tuple<FaultOfReuse, Phase>> {};

TEST_P(FreeSeatFault, LeavesOneCopyOfEachRankAndAJobThatGoesOn) {
  const auto& [fault, phase] = GetParam();
  for (const std::uint32_t seed : {0u, 1u, 2u, 3u}) {
    Options options = two_nodes();
    options.seed = seed;
    World w(options);
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    w.migrate_by_hand("leave", 1, "fast");
    ASSERT_TRUE(w.run_until([&] { return !free_seats(w.observe()).empty(); })) << w.trace;
    w.migrate_by_hand("m", 3, "slow");
    ASSERT_TRUE(w.run_until([&] { return w.job.status.wave == 2 && w.wave_phase() == phase; })) << w.trace;
    // A node that drains needs another one.
    w.nodes.push_back({.name = "slow-1", .set = "slow", .speed = 0.25, .slots = 3});
    fault.strikes(w);
    ASSERT_TRUE(w.run_until([&] { return wave_over(w) || w.job.status.attempt > 0; }, 3000)) << w.violation << '\n'
                                                                                             << w.trace;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning, 3000)) << w.violation << '\n' << w.trace;
    const std::uint64_t superstep = w.job.status.superstep.value;
    ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > superstep + 5; }, 3000)) << w.violation << '\n'
                                                                                                 << w.trace;
    ASSERT_TRUE(w.run_until([&] { return w.unrest().empty(); }, 3000)) << w.unrest() << '\n' << w.trace;
    EXPECT_EQ(w.violation, "");
  }
}

INSTANTIATE_TEST_SUITE_P(InEachPhase, FreeSeatFault,
                         testing::Combine(testing::ValuesIn(kFaultsOfReuse), testing::ValuesIn(kEveryPhase)),
                         [](const auto& p) {
                           return std::format("{}_{}", std::get<0>(p.param).name,
                                              crds::to_string(std::get<1>(p.param)));
                         });

}  // namespace
}  // namespace bsp::reconcile::sim
