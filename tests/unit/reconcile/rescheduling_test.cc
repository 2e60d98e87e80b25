// The scheduler's life in the operator: reports in, decisions out, the same ones after any number of restarts, and
// what a wave really gained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "base/core/read_file.h"
#include "base/core/significant.h"
#include "operator/reconcile/kernel/rescheduling.h"
#include "operator/reconcile/shell/record.h"
#include "operator/record/line.h"
#include "operator/record/replay.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using crds::ReschedulingMode;
using migrate::Phase;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Ranks 0 and 1 in slow (half a superstep's speed), rank 2 in fast, two slots free there; the first call follows
// superstep 4. Each rank executes 1e9 instructions a superstep: 2 s in slow, 1 s in fast.
class Rescheduling : public testing::Test {
 protected:
  Rescheduling() {
    sim::World w({.ranks = 3, .slow = 2, .fast = 3});
    w.job.spec.rescheduling.alpha = 4;
    w.job.spec.rescheduling.heuristic = crds::Heuristic::kAutoMig;  // it counts a gain over α supersteps
    w.job.spec.sets.names.clear();
    w.job.spec.initial_mapping = crds::InitialMapping::kAscending;  // the slowest first
    check(w.run_until(crds::JobPhase::kRunning), "the job runs");
    o = w.observe();
  }

  Rescheduler rescheduler() const { return Rescheduler(o.job, o.job.status.epoch->sets.size()); }

  wire::RankReport report(std::uint32_t rank, std::uint64_t superstep) const {
    const bool slow = o.job.status.ranks[rank].set == "slow";
    const bool any_slow = std::ranges::any_of(o.job.status.ranks, [](const auto& p) { return p.set == "slow"; });
    wire::SuperstepReport s;
    s.superstep = superstep;
    s.instructions = 1'000'000'000;
    s.compute_ns = slow ? 2'000'000'000 : 1'000'000'000;
    s.edge_ns = !slow && any_slow ? 1'000'000'000 : 0;  // it waits for the slow ones
    if (unpredictable && rank > 0) {
      s.recv_bytes = {0, 1000 * (superstep % 3)};
      s.recv_ns = {0, 10 * (superstep % 3)};
    }
    return {.rank = rank, .completed = superstep, .epoch = 1, .memory_bytes = 1'000'000, .supersteps = {s}};
  }
  std::optional<Decided> feed(Rescheduler& r, std::uint64_t superstep) const {
    for (std::uint32_t rank = 0; rank < 3; ++rank) r.add(report(rank, superstep));
    return r.advance(o);
  }
  std::optional<Decided> feed(Rescheduler& r, std::uint64_t first, std::uint64_t last) const {
    std::optional<Decided> decided;
    for (std::uint64_t t = first; t <= last; ++t)
      if (auto d = feed(r, t)) decided = std::move(d);
    return decided;
  }
  // What a fresh operator reads.
  void store(const Rescheduler& r) {
    r.store(o.job.status, o);
    nlohmann::json j;
    to_json(j, o.job);
    o.job = crds::bsp_job_from_json(nlohmann::json::parse(j.dump())).value();
  }
  migrate::Wave begin(const Decided& decided) {
    o.job.status.last_decision = decided.decision;
    Begun begun = begin_wave(o, decided.moves, o.job.status);
    check(begun.wave.has_value(), "there is something to move");
    return *begun.wave;
  }
  // The wave of `decided` has ended after superstep `edge`.
  void end(migrate::Wave wave, Phase phase, std::uint64_t edge) {
    wave.phase = phase;
    wave.times.push_back({phase, o.now});
    wave.pause = {.total_ms = 500.0001, .transfer_ms = 100};
    wave.bytes.assign(wave.moves.size(), 10'000'000);
    if (phase == Phase::kSucceeded) {
      const std::uint64_t reported = o.job.status.epoch->epoch;
      o.job.status.epoch = migrate::next_plan(wave, *o.job.status.epoch);
      o.job.status.epoch->epoch = reported;
      place_ranks(wave, o, o.job.status);
    }
    for (const auto& move : wave.moves) {
      crds::RankMigration m;
      m.metadata.name = move.migration;
      m.spec.rank = {move.rank};
      m.status.phase = phase;
      m.status.superstep = {edge};
      m.status.source_set = "slow";
      m.status.target_set = "fast";
      o.migrations.push_back(m);
    }
    for (auto& [pod, s] : o.sidecars) s.completed = edge;
    o.job.status.wave_state = migrate::to_json(wave);
  }

  Observed o;
  bool unpredictable = false;  // what ranks 1 and 2 receive
};

TEST_F(Rescheduling, DecidesWhenTheWindowIsFull) {
  Rescheduler r = rescheduler();
  EXPECT_FALSE(feed(r, 1, 3));
  const auto decided = feed(r, 4);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->decision.superstep.value, 4u);
  EXPECT_EQ(decided->decision.alpha, 4u);
  EXPECT_EQ(decided->decision.outcome, "Migrating");
  EXPECT_NEAR(decided->decision.imbalance, 0.2, 1e-9) << "2 s against a mean of 5/3 s";
  EXPECT_EQ(decided->decision.time, o.now);
  ASSERT_THAT(decided->moves, SizeIs(2));
  EXPECT_EQ(decided->moves[0].set, "fast");
  EXPECT_THAT((std::vector{decided->moves[0].rank, decided->moves[1].rank}), UnorderedElementsAre(0, 1));
  EXPECT_THAT((std::vector{decided->moves[0].node, decided->moves[1].node}), UnorderedElementsAre("fast-1", "fast-2"));
  EXPECT_EQ(decided->moves[0].migration, "") << "its name is handed out with the wave";
  // 4 supersteps of 1 s less, and moving costs the assumed 0.3 s and 1 MB at 300 MB/s.
  EXPECT_NEAR(decided->predicted_gain_seconds, 4 - 0.3 - 1e6 / 300e6, 1e-6);
  EXPECT_THAT(decided->text, SizeIs(testing::Gt(5u)));
  EXPECT_FALSE(r.advance(o)) << "nothing new, nothing decided";
}

// Supersteps of one length say nothing about those of another.
TEST_F(Rescheduling, AnotherEdgeStartsAnotherWindow) {
  Rescheduler r = rescheduler();
  const auto feed_edge = [&](std::uint64_t superstep, std::uint64_t chosen_after) {
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      wire::RankReport of = report(rank, superstep);
      of.edge_call = "MPI_Allreduce", of.edge_stride = chosen_after + 1, of.edge_chosen_after = chosen_after;
      r.add(of);
    }
    return r.advance(o);
  };
  for (std::uint64_t t = 1; t <= 3; ++t) EXPECT_FALSE(feed_edge(t, 0));
  for (std::uint64_t t = 4; t <= 7; ++t) EXPECT_FALSE(feed_edge(t, 4)) << t;
  EXPECT_TRUE(feed_edge(8, 4)) << "four supersteps of the new edge: 5 to 8";
  crds::BspJobStatus status = o.job.status;
  r.store(status, o);
  ASSERT_TRUE(status.superstep_edge);
  EXPECT_EQ(status.superstep_edge->stride, 5u);
  EXPECT_EQ(status.superstep_edge->chosen_after.value, 4u);
}

TEST_F(Rescheduling, NobodyDecidesOnCountedInstructionsBesideCpuTime) {
  Rescheduler r = rescheduler();
  for (auto& [pod, s] : o.sidecars) s.completed = 1;
  o.sidecars.at(o.job.status.ranks[2].pod).status->instructions_measured = false;
  EXPECT_EQ(unit_of_work(o), observe::WorkUnit::kMixed);
  EXPECT_FALSE(feed(r, 1, 8));
  o.sidecars.at(o.job.status.ranks[2].pod).status->instructions_measured = true;
  EXPECT_EQ(unit_of_work(o), observe::WorkUnit::kInstructions);
  EXPECT_TRUE(feed(r, 9, 12)) << "and decides when they have one unit again";
  store(r);
  for (const auto& figure : o.job.status.calibration) {
    if (figure.name == "cpu") {
      EXPECT_EQ(figure.source, crds::FigureSource::kCounted) << figure.set;
    }
  }
}

TEST_F(Rescheduling, OffDecidesNothingAdviseMovesNobody) {
  o.job.spec.rescheduling.mode = ReschedulingMode::kOff;
  Rescheduler off = rescheduler();
  EXPECT_FALSE(feed(off, 1, 30));
  store(off);
  EXPECT_EQ(o.job.status.alpha, 0u);
  EXPECT_GT(o.job.status.imbalance, 0) << "it is measured all the same";

  o.job.spec.rescheduling.mode = ReschedulingMode::kAdvise;
  Rescheduler advise = rescheduler();
  const auto decided = feed(advise, 1, 4);
  ASSERT_TRUE(decided);
  EXPECT_THAT(decided->moves, IsEmpty());
  EXPECT_THAT(decided->decision.moves, SizeIs(2));
  EXPECT_EQ(decided->decision.outcome, "Advised");
  store(advise);
  EXPECT_FALSE(o.job.status.predicted_gain_seconds) << "nobody moves, nothing is gained";
}

// They were asked for while the ranks of that attempt still ran, far ahead of where the program is now: a gate set by
// them would be reached a long time later, and the window would wait for supersteps that come again.
TEST_F(Rescheduling, ReportsOfTheAttemptBeforeAreNoNews) {
  o.job.status.attempt = 1;
  o.job.status.epoch->epoch = 3;
  Rescheduler r = rescheduler();
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_FALSE(r.add(report(rank, 773)));
  EXPECT_EQ(r.collector().completed_by_all(), 0u);
  EXPECT_FALSE(r.advance(o));
  EXPECT_EQ(r.superstep_seconds(), 0) << "this attempt has measured nothing yet";
  EXPECT_EQ(r.collector().since(0), 0u);

  std::optional<Decided> decided;
  for (std::uint64_t t = 1; t <= 4; ++t)
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      wire::RankReport now = report(rank, t);
      now.epoch = rank == 0 ? 4 : 3;  // one has moved since
      EXPECT_TRUE(r.add(now));
      if (auto d = r.advance(o)) decided = std::move(d);
    }
  ASSERT_TRUE(decided) << "it decides as if there had been no attempt before";
  EXPECT_EQ(decided->decision.superstep.value, 4u);
}

TEST_F(Rescheduling, LateDoubleAndLostReportsDoNotMatter) {
  Rescheduler r = rescheduler();
  r.add(report(0, 2));
  r.add(report(0, 1));
  r.add(report(1, 1));
  r.add(report(1, 1));
  r.add(report(2, 2));
  r.add(report(1, 2));
  EXPECT_FALSE(r.advance(o));
  r.add(report(2, 1));  // too late: superstep 2 is taken
  EXPECT_FALSE(feed(r, 4 - 1));
  const auto decided = feed(r, 4);
  ASSERT_TRUE(decided);
  EXPECT_EQ(decided->decision.superstep.value, 4u);
}

TEST_F(Rescheduling, StoresWhatTheStatusShows) {
  Rescheduler r = rescheduler();
  feed(r, 1, 3);
  store(r);
  EXPECT_EQ(o.job.status.alpha, 4u);
  EXPECT_DOUBLE_EQ(o.job.status.d, 0.5);
  EXPECT_NEAR(o.job.status.imbalance, 0.2, 1e-9);
  EXPECT_DOUBLE_EQ(o.job.status.ranks[0].compute_seconds, 2);
  EXPECT_DOUBLE_EQ(o.job.status.ranks[2].compute_seconds, 1);
  EXPECT_DOUBLE_EQ(o.job.status.ranks[2].time_seconds, 2);
  EXPECT_FALSE(o.job.status.predicted_gain_seconds);
  int measured = 0;
  for (const auto& figure : o.job.status.calibration)
    if (figure.name == "cpu" && figure.source != crds::FigureSource::kAssumed) {
      ++measured;
      EXPECT_DOUBLE_EQ(figure.value, figure.set == "slow" ? 5e8 : 1e9);
      EXPECT_EQ(figure.samples, 3u);
    }
  EXPECT_EQ(measured, 2);
  EXPECT_DOUBLE_EQ(r.superstep_seconds(), 2);
  const auto decided = feed(r, 4);
  store(r);
  EXPECT_EQ(o.job.status.alpha, decided->decision.alpha_next) << "of the window that begins";
  EXPECT_EQ(o.job.status.predicted_gain_seconds, significant(decided->predicted_gain_seconds, 6));
}

// Every superstep another operator, which reads the status and asks the sidecars for all they still have.
TEST_F(Rescheduling, RestartsChangeNoDecision) {
  o.job.spec.rescheduling.mode = ReschedulingMode::kAdvise;
  unpredictable = true;
  using Call = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, double, double>;
  auto call_of = [](const Decided& d) {
    return Call{d.decision.superstep.value, d.decision.alpha, d.decision.alpha_next, d.decision.d, d.decision.d_next};
  };
  std::vector<Call> without, with;
  Rescheduler steady = rescheduler();
  for (std::uint64_t t = 1; t <= 70; ++t)
    if (auto d = feed(steady, t)) without.push_back(call_of(*d));
  ASSERT_GE(without.size(), 4u);
  for (std::uint64_t t = 1; t <= 70; ++t) {
    Rescheduler fresh = rescheduler();
    if (auto d = feed(fresh, 1, t)) with.push_back(call_of(*d));
    store(fresh);
  }
  EXPECT_EQ(with, without);
  EXPECT_EQ(o.job.status.alpha, std::get<2>(without.back()));
  crds::BspJobStatus of_steady = o.job.status;
  steady.store(of_steady, o);
  EXPECT_EQ(of_steady.rescheduler, o.job.status.rescheduler);
  const auto from_fast = o.job.status.rescheduler["state"]["pFromSets"][0]["p"].get<std::string>();
  ASSERT_EQ(from_fast.size(), 3u);
  EXPECT_EQ(from_fast[0], '/') << "rank 0 hears from nobody";
  EXPECT_NE(from_fast[2], '/');
}

TEST_F(Rescheduling, ContinuesWhatAnOlderOperatorHasStored) {
  const auto stored = nlohmann::json::parse(
      R"({"state": {"k": 5, "alpha": 4, "alphaNext": 2, "d": 0.25, "gamma": 1, "elapsed": 7.5, "owed": 0.5, "pComp": [1, 0.5, 0.75],
          "pCommBySet": [[], [[0, 0.25], [1, 0.5]], []]}, "waveSeen": 3, "counted": 12, "work": [["slow", "fast", 0.5, 3]],
          "baseline": {"wave": 4, "alpha": 4, "predicted": 1, "seconds": 2.5, "compute": [1.5, 2, 2.5], "after": 9}})");
  const SchedulerState read = scheduler_state_from_json(stored, 3, 2);
  EXPECT_EQ(
      read.window.cadence,
      (decide::Cadence{.k = {5}, .alpha = 4, .alpha_next = 2, .d = 0.25, .gamma = 1, .elapsed = 7.5, .owed = 0.5}));
  EXPECT_THAT(read.window.P_comp, ElementsAre(1, 0.5, 0.75));
  EXPECT_EQ((read.window.P_comm[1, 0]), 0.25);
  EXPECT_EQ((read.window.P_comm[1, 1]), 0.5);
  EXPECT_EQ((read.window.P_comm[2, 1]), 1);
  EXPECT_EQ(read.wave_seen, 3u);
  EXPECT_EQ(read.counted, 12);
  EXPECT_EQ(read.work, stored["work"]);
  ASSERT_TRUE(read.baseline);
  EXPECT_EQ(read.baseline->compute.at(2), 2.5);
  EXPECT_EQ(read.baseline->after, 9u);

  decide::State window = read.window;
  round_predictabilities(window);
  SchedulerState rounded = read;
  rounded.window = window;
  const SchedulerState again = scheduler_state_from_json(to_json(rounded), 3, 2);
  EXPECT_EQ(again.window, window);
  EXPECT_EQ(again.counted, read.counted);
  EXPECT_EQ(again.work, read.work);
  EXPECT_EQ(again.baseline->compute, read.baseline->compute);
  EXPECT_NEAR((again.window.P_comm[1, 0]), 0.25, 0.01);
}

TEST_F(Rescheduling, APoolThatJoinsShiftsNoSet) {
  Rescheduler r = rescheduler();
  feed(r, 1, 3);
  o.nodes.insert(o.nodes.begin(), {.name = "aaa-0", .set = "aaa", .speed = 100});
  const auto decided = feed(r, 4);
  ASSERT_TRUE(decided) << "the epoch's Sets are what was measured";
  ASSERT_THAT(decided->moves, SizeIs(2));
  for (const MoveRequest& move : decided->moves) EXPECT_EQ(move.set, "fast");
}

TEST_F(Rescheduling, PodsThatAreNotGoneHoldTheirSlot) {
  Rescheduler r = rescheduler();
  feed(r, 1, 3);
  o.pods["job-r0-g7"].node = "fast-1";  // a source of the wave before, still being removed
  o.nodes.at(2).taken = 1;              // fast-2: another job's
  const auto decided = feed(r, 4);
  ASSERT_TRUE(decided);
  EXPECT_THAT(decided->moves, IsEmpty());
  for (const auto& stay : decided->decision.stays)
    if (stay.rank.value != 2) {
      EXPECT_EQ(stay.reason, "NoCapacity");
    }
}

TEST_F(Rescheduling, ARankThatMovedCoolsDownAndABlockedOneStays) {
  o.job.spec.rescheduling.cooldown_supersteps = 100;
  crds::RankMigration m;
  m.spec.rank = {0};
  m.status.phase = Phase::kSucceeded;
  m.status.superstep = {1};
  o.migrations.push_back(m);
  o.job.status.ranks[1].blocked_reason = "an open window";
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  EXPECT_THAT(decided->moves, IsEmpty());
  for (const auto& stay : decided->decision.stays) {
    if (stay.rank.value == 0) {
      EXPECT_EQ(stay.reason, "Cooldown");
    }
    if (stay.rank.value == 1) {
      EXPECT_EQ(stay.reason, "NotMigratable");
    }
  }
}

// Else every call would stop the whole job only to hear it again.
TEST_F(Rescheduling, ARankWhoseDumpWasRefusedStaysForAWhile) {
  const auto reason_of = [&](std::uint32_t rank) {
    Rescheduler r = rescheduler();
    const auto decided = feed(r, 1, 4);
    if (!decided) return std::string("no decision");
    for (const auto& stay : decided->decision.stays)
      if (stay.rank.value == rank) return stay.reason;
    return std::string("moves");
  };
  ASSERT_EQ(reason_of(0), "moves");
  crds::RankMigration m;
  m.spec.rank = {0};
  m.status.phase = Phase::kRolledBack;
  m.status.message = "rank 0: not migratable now: descriptor 3 is an open socket; rank 10 continues";
  m.status.completion_time = o.now - std::chrono::minutes(4);
  o.migrations.push_back(m);
  EXPECT_EQ(reason_of(0), "NotMigratable");
  o.migrations[0].status.message = "rank 10: not migratable now: descriptor 3 is an open socket";
  EXPECT_EQ(reason_of(0), "moves");  // it went back with another rank of its wave
  o.migrations[0].status.message = m.status.message;
  o.migrations[0].status.completion_time = o.now - std::chrono::minutes(6);
  EXPECT_EQ(reason_of(0), "moves");
}

// --- Records ---------------------------------------------------------------------------------------------------
// A decision's record holds what it was decided from, also when the window began under another operator.
TEST_F(Rescheduling, EveryDecisionComesWithItsRecord) {
  EXPECT_EQ(feed(*std::make_unique<Rescheduler>(rescheduler()), 1, 4)->record, nullptr) << "nobody asked for it";
  o.job.spec.rescheduling.mode = ReschedulingMode::kAdvise;
  std::optional<record::Rerun> rerun;
  std::uint64_t calls = 0;
  Rescheduler r(o.job, o.job.status.epoch->sets.size(), true);
  for (std::uint64_t t = 1; t <= 40; ++t) {
    if (t == 20) {
      store(r);
      r = Rescheduler(o.job, o.job.status.epoch->sets.size(), true);
      feed(r, 1, 19);  // what the sidecars still have
    }
    const auto decided = feed(r, t);
    if (!decided) continue;
    ++calls;
    ASSERT_TRUE(decided->record);
    const auto call = record::from_line(*decided->record);
    ASSERT_TRUE(call) << call.error().message;
    EXPECT_EQ(call->job, "job");
    EXPECT_EQ(call->uid, o.job.metadata.uid);
    EXPECT_EQ(call->time, to_rfc3339(o.now));
    EXPECT_EQ(call->plan.superstep.value, t);
    EXPECT_EQ(call->supersteps.size(), call->plan.now.alpha);
    EXPECT_FALSE(call->params.migrates);
    EXPECT_THAT(call->plan.moves, SizeIs(2));
    EXPECT_EQ(record::difference(call->plan, *record::replay(*call, call->params)), "");
    if (!rerun) rerun.emplace(call->params);
    const auto again = rerun->add(*call);
    ASSERT_TRUE(again && again->size() == 1);
    EXPECT_EQ(record::difference(call->plan, again->front()), "") << "the run as a whole";
  }
  EXPECT_GE(calls, 3u);
}

TEST(RecordFile, GrowsByWholeLines) {
  const std::string path = testing::TempDir() + "bsp_record_" + std::to_string(::getpid());
  EXPECT_TRUE(check_appendable(path));
  EXPECT_TRUE(append_line(path, "one"));
  EXPECT_TRUE(append_line(path, "two"));
  EXPECT_EQ(read_file(path), "one\ntwo\n");
  std::ofstream(path, std::ios::app) << "half";  // its writer was killed
  EXPECT_TRUE(append_line(path, "three"));
  EXPECT_EQ(read_file(path), "one\ntwo\nhalf\nthree\n");
  std::filesystem::remove(path);
  const auto nowhere = append_line(path + "/x", "one");
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, testing::HasSubstr(path + "/x"));
  EXPECT_FALSE(append_line("/dev/full", "one")) << "and the job goes on";
  EXPECT_EQ(record_path("/var/lib/bsp", "science", "lattice"), "/var/lib/bsp/science_lattice.jsonl");
}

// --- Waves -----------------------------------------------------------------------------------------------------
TEST_F(Rescheduling, RealisedGainsCompareBeforeAndAfterTheWave) {
  for (const bool restarted : {false, true}) {
    const Observed before = o;
    auto r = std::make_unique<Rescheduler>(rescheduler());
    const auto decided = feed(*r, 1, 4);
    ASSERT_TRUE(decided);
    const migrate::Wave wave = begin(*decided);
    EXPECT_FALSE(feed(*r, 5, 7)) << "nothing is decided while ranks move";
    store(*r);
    if (restarted) r = std::make_unique<Rescheduler>(rescheduler());
    end(wave, Phase::kSucceeded, 7);
    EXPECT_FALSE(feed(*r, 8)) << "the superstep that the pause cut belongs to neither mapping";
    store(*r);
    if (restarted) r = std::make_unique<Rescheduler>(rescheduler());
    feed(*r, 9, 17);
    EXPECT_THAT(r->realised(o.job.status, false), IsEmpty()) << "too few supersteps to compare";
    feed(*r, 18);
    const auto gains = r->realised(o.job.status, false);
    ASSERT_THAT(gains, SizeIs(2));
    for (const RealisedGain& gain : gains)
      EXPECT_EQ(gain.seconds, 4 * 1.0 - 0.5) << "over the 4 supersteps for which it was predicted; rounded";
    EXPECT_THAT((std::vector{gains[0].migration, gains[1].migration}), UnorderedElementsAre("job-w1-r0", "job-w1-r1"));
    EXPECT_THAT(r->realised(o.job.status, false), IsEmpty()) << "once";
    store(*r);
    ASSERT_TRUE(o.job.status.realised_gain_seconds);
    EXPECT_EQ(o.job.status.realised_gain_seconds, 3.5);
    bool bandwidth = false;
    for (const auto& f : o.job.status.calibration)
      if (f.name == "bandwidth")
        bandwidth = f.source == crds::FigureSource::kMeasured && f.value == 1e8 && f.samples == 2;
    EXPECT_TRUE(bandwidth) << "10 MB in 100 ms, twice";
    o = before;
  }
}

TEST_F(Rescheduling, AnEndingJobComparesWhatItHas) {
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  const migrate::Wave wave = begin(*decided);
  feed(r, 5);
  end(wave, Phase::kSucceeded, 5);
  feed(r, 6, 8);
  EXPECT_THAT(r.realised(o.job.status, false), IsEmpty());
  EXPECT_THAT(r.realised(o.job.status, true), SizeIs(2));
}

TEST_F(Rescheduling, AWaveThatWentBackGainsNothingAndTheWindowBeginsAnew) {
  Rescheduler r = rescheduler();
  const auto decided = feed(r, 1, 4);
  ASSERT_TRUE(decided);
  migrate::Wave wave = begin(*decided);
  feed(r, 5);
  wave.rollback_committed = true;
  end(wave, Phase::kRolledBack, 5);
  const std::uint64_t alpha = decided->decision.alpha_next;
  std::optional<Decided> next;
  std::uint64_t t = 6;
  while (!next && t < 100) next = feed(r, t++);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->decision.superstep.value, 7 + alpha - 1) << "from superstep 7 on, which the pause did not touch";
  EXPECT_THAT(r.realised(o.job.status, true), IsEmpty());
}

TEST_F(Rescheduling, AMoveThatWasGivenUpForItsSizeGivesTheNextMoreTime) {
  for (const auto phase : {Phase::kCheckpointing, Phase::kRestoring}) {
    const Observed before = o;
    Rescheduler r = rescheduler();
    const auto decided = feed(r, 1, 4);
    ASSERT_TRUE(decided);
    migrate::Wave wave = begin(*decided);
    EXPECT_NEAR(bandwidth_of(wave, o), 300e6, 1) << "assumed";
    feed(r, 5);
    o.job.status.ranks[wave.moves.back().rank].memory_bytes = 1'000'000'000;
    wave.reason = std::string(crds::to_string(phase)) + "Timeout";
    wave.late_seconds = 50;
    wave.rollback_committed = true;
    end(wave, Phase::kRolledBack, 5);
    feed(r, 6);
    store(r);
    EXPECT_NEAR(bandwidth_of(wave, o), 20e6, 1);
    o = before;
  }
}

}  // namespace
}  // namespace bsp::reconcile
