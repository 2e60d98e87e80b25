// Reservations in one object: no slot is reserved twice, expired entries are removed, and there is a limit to
// moves at once. With several jobs in simulated clusters, and with several writers of a real store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <format>
#include <random>
#include <thread>

#include "operator/local/files.h"
#include "operator/local/store.h"
#include "operator/reconcile/capacity/stores/store.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {
namespace {

using crds::JobPhase;
using migrate::Phase;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using namespace std::chrono_literals;

const Time kNow{1'000'000s};

Reservation reservation_of(const std::string& node, std::uint32_t slots = 1, Time until = kNow + 10min) {
  Reservation b{.uid = "u", .wave = 3, .each = {500, 1 << 20, 1}, .slots = {}, .until = until};
  for (std::uint32_t i = 0; i < slots; ++i) b.slots.push_back({std::format("{}-p{}", node, i), i, "fast", node});
  return b;
}
const auto kNowhere = [](const std::string&, const std::string&) { return false; };

// --- The entries ----------------------------------------------------------------------------------------------------
TEST(Reservations, RoundTrip) {
  Reservations b;
  b.of_job = {{"default/a", reservation_of("n1", 2)}, {"science/job.with.dots", reservation_of("n2")}};
  const json data = reservation_data(b);
  for (const auto& [key, line] : data.items())
    EXPECT_EQ(key.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-"), std::string::npos)
        << "no key of a ConfigMap";
  const Reservations again = reservations_from_json({{"metadata", {{"resourceVersion", "7"}}}, {"data", data}});
  EXPECT_EQ(again.of_job, b.of_job);
  EXPECT_EQ(again.version, "7");
}

TEST(Reservations, HoldOtherResourcesToo) {
  Reservation reservation = reservation_of("n1", 2);
  reservation.each.extended = {{"hugepages-2Mi", 2 << 20}, {"nvidia.com/gpu", 1}};
  const json data = reservation_data({.of_job = {{"default/a", reservation}}, .version = ""});
  const Reservations again = reservations_from_json({{"data", data}});
  EXPECT_THAT(again.of_job, ElementsAre(Pair("default/a", reservation)));
  EXPECT_EQ(reserved_by_others(again, "default/b", kNowhere).at("n1").extended,
            (Extended{{"hugepages-2Mi", 4 << 20}, {"nvidia.com/gpu", 2}}));
  for (const char* wrong : {"null", "5", R"("gpu")", "[1]", R"({"a": "b", "c": -1, "d": null, "e": 0})"}) {
    const json line = R"({"slots": [{"pod": "p", "node": "n1"}], "extended": )" + std::string(wrong) + "}";
    const Reservations read = reservations_from_json({{"data", {{"default.a", line}}}});
    EXPECT_THAT(read.of_job.at("default/a").each.extended, IsEmpty()) << wrong;
  }
}

// Added up for each slot, so a line of a MiB must not name thousands.
TEST(Reservations, NameNoMoreResourcesThanAPodAsksFor) {
  json extended = json::object();
  for (int i = 0; i < 1000; ++i) extended[std::format("example.com/r{:03}", i)] = 1;
  const json line = json{{"slots", {{{"pod", "p"}, {"node", "n1"}}}}, {"extended", extended}};
  const Reservations read = reservations_from_json({{"data", {{"default.a", line.dump()}}}});
  EXPECT_EQ(read.of_job.at("default/a").each.extended.size(), 32u);
}

TEST(Reservations, CorruptEntriesAreSkipped) {
  json data = reservation_data({.of_job = {{"default/a", reservation_of("n1")}}, .version = ""});
  data["default.b"] = "not JSON";
  data["default.c"] = "[]";
  data["default.d"] = R"({"slots": [{"rank": -1}], "until": 5})";
  data["default.e"] = json::array();
  EXPECT_THAT(reservations_from_json({{"data", data}}).of_job, ElementsAre(Pair("default/a", reservation_of("n1"))));
  EXPECT_THAT(reservations_from_json(json()).of_job, IsEmpty());
  EXPECT_THAT(reservations_from_json({{"data", 3}}).of_job, IsEmpty());
}

// A line of 100 bytes can name every pod of the largest cluster.
TEST(Reservations, NameNoMoreRanksThanAClusterHas) {
  json data;
  for (int i = 0; i < 1000; ++i)
    data[std::format("default.j{:03}", i)] =
        R"({"start": true, "places": {"count": 100000, "pod": {"j-r*-g0": "0-99999"}}})";
  const Reservations read = reservations_from_json({{"data", data}});
  ASSERT_EQ(read.of_job.size(), 1u);
  EXPECT_EQ(read.of_job.begin()->second.slots.size(), 100'000u);
  EXPECT_EQ(read.of_job.begin()->second.slots[7].pod, "j-r7-g0");
}

TEST(Reservations, HoldTheirNodesUntilTheTargetsArePlaced) {
  const Reservations b{.of_job = {{"default/a", reservation_of("n1", 2)}, {"other/a", reservation_of("n1")}},
                       .version = ""};
  EXPECT_EQ(reserved_by_others(b, "default/a", kNowhere).at("n1"), (Resources{500, 1 << 20, 1}))
      << "its own slots are its own";
  EXPECT_EQ(reserved_by_others(b, "default/x", kNowhere).at("n1"), (Resources{1500, 3 << 20, 3}));
  const auto placed = reserved_by_others(b, "default/x", [](const std::string& name_space, const std::string& pod) {
    return name_space == "default" && pod == "n1-p0";  // of the three, the two in other namespaces have the same names
  });
  EXPECT_EQ(placed.at("n1"), (Resources{1000, 2 << 20, 2}));
}

TEST(Reservations, ExpireUnlessTheyAreRenewed) {
  Reservations b{
      .of_job = {{"default/a", reservation_of("n1", 1, kNow)}, {"default/b", reservation_of("n2", 1, kNow + 1s)}},
      .version = ""};
  drop_expired(b, kNow + 1ms);
  EXPECT_THAT(b.of_job, ElementsAre(Pair("default/b", testing::_)));
  const Reservation fresh = reservation_of("n", 1, kNow + kReservationKept);
  EXPECT_FALSE(is_to_be_renewed(fresh, kNow));
  EXPECT_TRUE(is_to_be_renewed(fresh, kNow + kReservationKept / 2 + 1s));
}

TEST(MovesLeft, AreTheMinimumOverAllLimits) {
  const MovesElsewhere elsewhere{.into = {{"fast", 2}}, .all = 3};
  EXPECT_EQ(moves_left({}, elsewhere, "fast", 9, 9), std::nullopt);
  EXPECT_EQ(moves_left({.into_set = 4, .in_cluster = 0}, elsewhere, "fast", 1, 5), 1u);
  EXPECT_EQ(moves_left({.into_set = 4, .in_cluster = 0}, elsewhere, "slow", 1, 5), 3u);
  EXPECT_EQ(moves_left({.into_set = 4, .in_cluster = 5}, elsewhere, "slow", 0, 1), 1u);
  EXPECT_EQ(moves_left({.into_set = 1, .in_cluster = 1}, elsewhere, "fast", 0, 0), 0u)
      << "a limit may have been lowered";
}

// --- The object
// -------------------------------------------------------------------------------------------------------
class ReservationObject : public testing::Test {
 protected:
  ReservationObject() {
    char path[] = "/tmp/bsp-reservations-test-XXXXXX";
    root_ = ::mkdtemp(path);
    store_ = std::move(local::Store::open({.root = root_})).value();
  }
  ~ReservationObject() override { EXPECT_TRUE(local::remove_tree(root_)); }
  kube::Key key() const { return {kConfigMap, "default", "reservations"}; }

  std::string root_;
  std::unique_ptr<local::Store> store_;
};

TEST_F(ReservationObject, IsCreatedWithTheFirstReservationAndKeepsOtherFields) {
  ObjectReservations store(*store_, "default", "reservations");
  EXPECT_THAT(store.read(kNow).of_job, IsEmpty());
  EXPECT_TRUE(store.release("default/a", kNow));
  EXPECT_EQ(store_->get(key()).error().code, ErrorCode::kNotFound) << "nothing reserved, nothing written";
  ASSERT_TRUE(store.reserve(store.read(kNow), "default/a", reservation_of("n1"), kNow));
  kube::Object object = store_->get(key()).value();
  EXPECT_THAT(reservations_from_json(object).of_job, ElementsAre(Pair("default/a", reservation_of("n1"))));
  object["metadata"]["labels"]["mine"] = "kept";
  ASSERT_TRUE(store_->update(object));
  ASSERT_TRUE(store.release("default/a", kNow));
  object = store_->get(key()).value();
  EXPECT_EQ(object["data"], json::object());
  EXPECT_EQ(object["metadata"]["labels"]["mine"], "kept");
  ASSERT_TRUE(store_->remove(key(), ""));
  const auto lost = store.reserve(store.read(kNow), "default/a", reservation_of("n1"), kNow);
  EXPECT_EQ(lost.error().code, ErrorCode::kConflict) << "it was deleted: decide again";
  EXPECT_TRUE(store.reserve(store.read(kNow), "default/a", reservation_of("n1"), kNow));
}

TEST_F(ReservationObject, OneOfTwoThatReadTheSameVersionReserves) {
  ObjectReservations mine(*store_, "default", "reservations"), theirs(*store_, "default", "reservations");
  for (int round = 0; round < 2; ++round) {  // once with nothing there, once with something
    const Reservations a = mine.read(kNow), b = theirs.read(kNow);
    ASSERT_TRUE(mine.reserve(a, std::format("default/a{}", round), reservation_of("n1"), kNow));
    EXPECT_EQ(theirs.reserve(b, "default/b", reservation_of("n1"), kNow).error().code, ErrorCode::kConflict);
    EXPECT_TRUE(theirs.read(kNow).of_job.contains(std::format("default/a{}", round))) << "what it lost to is known now";
    EXPECT_FALSE(mine.reserve(a, "default/a9", reservation_of("n1"), kNow)) << "the same within one process";
  }
}

TEST_F(ReservationObject, ExpiredEntriesGoWithTheNextWriteAndARunningWavesStays) {
  ObjectReservations store(*store_, "default", "reservations");
  ASSERT_TRUE(store.reserve(store.read(kNow), "default/dead", reservation_of("n1"), kNow));
  ASSERT_TRUE(store.reserve(store.read(kNow), "default/slow", reservation_of("n2"), kNow));
  const Time later = kNow + 9min;
  ASSERT_TRUE(store.renew("default/slow", later));
  ASSERT_TRUE(store.renew("default/none", later));
  const Time late = kNow + 11min;
  EXPECT_THAT(store.read(late).of_job, ElementsAre(Pair("default/slow", testing::_)));
  EXPECT_EQ(store_->get(key()).value()["data"].size(), 2u) << "reading writes nothing";
  ASSERT_TRUE(store.reserve(store.read(late), "default/new", reservation_of("n3"), late));
  EXPECT_FALSE(store_->get(key()).value()["data"].contains("default.dead"));
}

// Two operators with two workers each want the three slots of one node for ten jobs: whatever the order, each slot is
// given once.
TEST_F(ReservationObject, GivesNoSlotTwiceToManyCompetitors) {
  constexpr int kJobs = 10, kSlots = 3;
  ObjectReservations stores[2] = {{*store_, "default", "reservations"}, {*store_, "default", "reservations"}};
  std::atomic<int> next = 0, reserved = 0, refused = 0;
  auto work = [&](ReservationStore& store) {
    for (int job = next++; job < kJobs; job = next++) {
      const std::string name = std::format("default/j{}", job);
      for (;;) {
        const Reservations seen = store.read(kNow);
        const auto others = reserved_by_others(seen, name, kNowhere);
        if (others.contains("n") && others.at("n").pods >= kSlots) {
          ++refused;
          break;
        }
        if (store.reserve(seen, name, reservation_of("n"), kNow)) {
          ++reserved;
          break;
        }
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) workers.emplace_back([&, i] { work(stores[i % 2]); });
  }
  EXPECT_EQ(reservations_from_json(store_->get(key()).value()).of_job.size(), 3u);
  EXPECT_EQ(reserved.load(), kSlots);
  EXPECT_EQ(refused.load(), kJobs - kSlots);
}

// --- Jobs that compete
// ------------------------------------------------------------------------------------------------
namespace sim_test {
using sim::SharedNodes;
using sim::World;

// Two jobs of one rank in slow; `fast` slots in fast.
struct TwoJobs {
  explicit TwoJobs(std::uint32_t fast)
      : a({.name = "a", .ranks = 1, .slow = 2, .fast = fast, .cluster = &cluster}),
        b({.name = "b", .ranks = 1, .slow = 2, .fast = fast, .cluster = &cluster}) {}
  template <class F>
  bool run_until(F wanted, int ticks = 400) {
    for (int i = 0; i < ticks && a.violation.empty() && b.violation.empty(); ++i) {
      if (wanted()) return true;
      a.tick();
      b.tick();
    }
    return a.violation.empty() && b.violation.empty() && wanted();
  }
  bool run() {
    return run_until(
        [&] { return a.job.status.phase == JobPhase::kRunning && b.job.status.phase == JobPhase::kRunning; });
  }
  bool both_ended() {
    return crds::is_finished(a.migration("m").status.phase) && crds::is_finished(b.migration("m").status.phase);
  }
  std::string trace() const { return a.violation + b.violation + "\n" + a.trace + "---\n" + b.trace; }

  SharedNodes cluster;
  World a, b;
};

TEST(CompetingJobs, OneSlotIsReservedOnce) {
  TwoJobs jobs(1);
  ASSERT_TRUE(jobs.run()) << jobs.trace();
  jobs.a.slow_start = 20;  // its target starts slowly: until then the slot is only reserved
  jobs.a.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(jobs.run_until([&] { return jobs.cluster.reservations.of_job.contains("default/a"); })) << jobs.trace();
  jobs.b.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(jobs.run_until([&] { return jobs.both_ended(); })) << jobs.trace();
  EXPECT_EQ(jobs.a.migration("m").status.phase, Phase::kSucceeded);
  EXPECT_EQ(jobs.b.migration("m").status.reason, "NoCapacity");
  ASSERT_TRUE(jobs.run_until([&] { return jobs.cluster.reservations.of_job.empty(); }))
      << "what has ended holds nothing";
}

TEST(CompetingJobs, ADecisionOnAStaleViewIsMadeAgain) {
  TwoJobs jobs(1);
  ASSERT_TRUE(jobs.run()) << jobs.trace();
  jobs.a.migrate_by_hand("m", 0, "fast");
  jobs.b.migrate_by_hand("m", 0, "fast");
  // Both read before either has reserved.
  const Step a = jobs.a.reconcile(), b = jobs.b.reconcile();
  ASSERT_EQ(a.change()->reserve.size(), 1u);
  ASSERT_EQ(b.change()->reserve.size(), 1u);
  EXPECT_EQ(a.change()->reserve[0], (ReservedSlot{"a-r0-g1", 0, "fast", "fast-0"}));
  EXPECT_EQ(b.change()->reserve[0].node, "fast-0") << "the same slot";
  EXPECT_TRUE(a.change() && b.change()) << "reserved and stored before anything is created";
  ASSERT_TRUE(jobs.run_until([&] { return jobs.both_ended(); })) << jobs.trace();
  EXPECT_NE(jobs.a.migration("m").status.phase, jobs.b.migration("m").status.phase);
}

TEST(CompetingJobs, ARolledBackWaveReleasesItsReservation) {
  TwoJobs jobs(1);
  ASSERT_TRUE(jobs.run()) << jobs.trace();
  jobs.a.slow_start = 10'000;
  jobs.a.limits.prepare = 10s;
  jobs.a.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(jobs.run_until([&] { return jobs.a.migration("m").status.phase == Phase::kRolledBack; })) << jobs.trace();
  ASSERT_TRUE(jobs.run_until([&] { return jobs.cluster.reservations.of_job.empty() && jobs.a.pods.size() == 1; }));
  jobs.b.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(jobs.run_until([&] { return crds::is_finished(jobs.b.migration("m").status.phase); }));
  EXPECT_EQ(jobs.b.migration("m").status.phase, Phase::kSucceeded) << jobs.trace();
}

TEST(CompetingJobs, AnOperatorThatDiesBetweenReservingAndStoringLeavesNoReservation) {
  TwoJobs jobs(1);
  ASSERT_TRUE(jobs.run()) << jobs.trace();
  jobs.a.migrate_by_hand("m", 0, "fast");
  jobs.a.conflicts = 1;  // reserved, and then the status is not stored
  jobs.a.tick();
  ASSERT_TRUE(jobs.cluster.reservations.of_job.contains("default/a"));
  jobs.a.delete_migration("m");  // the user deletes it
  jobs.a.tick();
  EXPECT_THAT(jobs.cluster.reservations.of_job, IsEmpty());
}

// Three ranks each for four slots: one job runs after the other.
TEST(CompetingStarts, NoneOfAHundredIsHalfStarted) {
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    SharedNodes cluster;
    std::mt19937 random(seed);
    World a({.name = "a", .ranks = 3, .supersteps = 5, .cluster = &cluster, .seed = seed});
    World b({.name = "b", .ranks = 3, .supersteps = 5, .cluster = &cluster, .seed = seed + 1000});
    bool waited = false;
    for (World* w : {&a, &b}) {
      w->capacity_may_come = true;
      w->job.spec.run_policy.clean_pod_policy = crds::CleanPodPolicy::kAll;
      w->job.metadata.creation_timestamp = Time{std::chrono::seconds(w == &a ? 100 : 101)};
    }
    const auto ended = [](const World& w) { return w.job.status.phase == JobPhase::kSucceeded && w.pods.empty(); };
    for (int i = 0; i < 2000 && !(ended(a) && ended(b)); ++i) {
      const bool a_first = random() % 2 == 0;
      if (random() % 5 != 0) (a_first ? a : b).tick();  // one job's worker may be slower than the other's
      if (random() % 5 != 0) (a_first ? b : a).tick();
      if (random() % 40 == 0) (random() % 2 == 0 ? a : b).restart_operator();
      // The pods of a job that has succeeded are deleted one by one.
      const auto holds = [](const World& w) { return !w.pods.empty() && w.job.status.phase != JobPhase::kSucceeded; };
      ASSERT_FALSE(holds(a) && holds(b)) << "seed " << seed << ": both hold slots\n" << a.trace << b.trace;
      for (const World* w : {&a, &b}) waited |= w->job.status.reason == kWaitingForSlots;
    }
    ASSERT_EQ(a.violation + b.violation, "") << "seed " << seed << "\n" << a.trace << "---\n" << b.trace;
    ASSERT_TRUE(ended(a) && ended(b)) << "seed " << seed << "\n" << a.trace << "---\n" << b.trace;
    EXPECT_EQ(a.job.status.attempt + b.job.status.attempt, 0u) << "seed " << seed;
    EXPECT_TRUE(waited) << "seed " << seed;
  }
}

TEST(CompetingStarts, AnyPriorityIsOrdered) {
  constexpr std::int64_t kRising[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX};
  for (const std::int64_t a : kRising)
    for (const std::int64_t b : kRising) {
      const WaitingJob one{.key = "n/a", .priority = a, .created = {}, .sets = {}},
          other{.key = "n/b", .priority = b, .created = {}, .sets = {}};
      EXPECT_EQ(starts_before(one, other), a >= b) << a << " and " << b;
      EXPECT_EQ(starts_before(other, one), b > a) << a << " and " << b;
    }
}

TEST(CompetingStarts, TheQueueIsShownAndOrderedByPriorityThenAge) {
  SharedNodes cluster;
  World runs({.name = "comp-a", .ranks = 3, .cluster = &cluster});
  World young({.name = "young", .ranks = 2, .cluster = &cluster}),
      old({.name = "old", .ranks = 2, .cluster = &cluster});
  World urgent({.name = "urgent", .ranks = 2, .cluster = &cluster}),
      huge({.name = "huge", .ranks = 9, .cluster = &cluster});
  const std::vector<World*> all{&runs, &young, &old, &urgent, &huge};
  for (World* w : all) w->capacity_may_come = true;
  young.job.metadata.creation_timestamp = Time{std::chrono::seconds(300)};
  old.job.metadata.creation_timestamp = urgent.job.metadata.creation_timestamp = Time{std::chrono::seconds(200)};
  urgent.job.spec.run_policy.priority = 5;
  const auto tick = [&](int times) {
    for (int i = 0; i < times; ++i)
      for (World* w : all) w->tick();
  };
  tick(20);
  ASSERT_EQ(runs.job.status.phase, JobPhase::kRunning) << runs.trace;
  for (const World* w : {&young, &old, &urgent}) {
    EXPECT_EQ(w->job.status.phase, JobPhase::kPending);
    EXPECT_EQ(w->job.status.message, "waits for 2 slots in slow, fast, held by comp-a (1 free)");
    EXPECT_EQ(crds::find_condition(w->job.status.conditions, kWaitingForSlots)->status, crds::ConditionStatus::kTrue);
    EXPECT_TRUE(w->pods.empty());
  }
  EXPECT_EQ(young.unrest(), "") << "reported once";
  EXPECT_EQ(huge.job.status.reason, "NoCapacity") << "it would hold back all others for ever";
  const auto gives_way = [&](World& w) {
    w.job.spec.run_policy.suspend = true;
    tick(10);
  };
  gives_way(runs);  // four slots: for two of the three
  tick(20);
  EXPECT_EQ(urgent.job.status.phase, JobPhase::kRunning) << urgent.trace;
  EXPECT_EQ(old.job.status.phase, JobPhase::kRunning) << old.trace;
  EXPECT_EQ(young.job.status.phase, JobPhase::kPending) << young.trace;
  EXPECT_EQ(crds::find_condition(old.job.status.conditions, kWaitingForSlots), nullptr);
  gives_way(old);
  tick(20);
  EXPECT_EQ(young.job.status.phase, JobPhase::kRunning) << young.trace;
  for (const World* w : all) EXPECT_EQ(w->violation, "");
}

TEST(CompetingStarts, AJobPassesByThoseThatWaitForOtherSets) {
  SharedNodes cluster;
  World runs({.name = "runs", .cluster = &cluster}), waits({.name = "waits", .cluster = &cluster});
  World passes({.name = "passes", .cluster = &cluster});
  passes.job.metadata.creation_timestamp = Time{std::chrono::seconds(300)};
  for (World* w : {&runs, &waits}) w->job.spec.sets.names = {"slow"};
  const auto tick = [&](const std::vector<World*>& worlds, int times) {
    for (int i = 0; i < times; ++i)
      for (World* w : worlds) w->capacity_may_come = true, w->tick();
  };
  tick({&runs, &waits}, 20);
  ASSERT_EQ(waits.job.status.reason, "WaitingForSlots") << waits.trace;
  tick({&runs, &waits, &passes}, 20);
  EXPECT_EQ(passes.job.status.phase, JobPhase::kRunning) << passes.trace;
  for (const crds::RankPlace& place : passes.job.status.ranks) EXPECT_EQ(place.set, "fast");
  EXPECT_EQ(waits.job.status.phase, JobPhase::kPending);
  for (const World* w : {&runs, &waits, &passes}) EXPECT_EQ(w->violation, "");
}

TEST(CompetingStarts, ASmallerJobDoesNotOvertakeUnlessItUsesOtherSets) {
  const WaitingJob large{"default/large", 0, Time{std::chrono::seconds(1)}, {.names = {"slow", "fast"}}};
  const std::map<std::string, WaitingJob> waiting{{large.key, large}};
  const auto later = [](crds::SetsSpec sets) { return WaitingJob{"x/small", 0, Time{std::chrono::seconds(2)}, sets}; };
  EXPECT_EQ(ahead_of(later({.names = {"fast"}}), waiting), large.key);
  EXPECT_EQ(ahead_of(later({}), waiting), large.key);
  EXPECT_EQ(ahead_of(later({.label = "other", .names = {"x"}}), waiting), large.key) << "it may be the same nodes";
  EXPECT_EQ(ahead_of(later({.names = {"medium"}}), waiting), "");
  EXPECT_EQ(ahead_of(large, waiting), "");
  const std::vector<std::string> sets{"fast", "medium", "slow"};
  EXPECT_THAT(wanted_by_none_ahead(later({}), waiting, sets), testing::ElementsAre("medium"));
  EXPECT_THAT(wanted_by_none_ahead(later({.label = "other", .names = {}}), waiting, sets), testing::IsEmpty());
  EXPECT_THAT(wanted_by_none_ahead(large, waiting, sets), testing::SizeIs(3));
  EXPECT_EQ(held_by({"default/a", "default/b", "x/c"}, "default"), "held by a, b and 1 job of other namespaces");
  EXPECT_EQ(held_by({"x/c", "x/d"}, "default"), "held by 2 jobs of other namespaces");
  EXPECT_EQ(held_by({}, "default"), "");
}

// --- Limits
// -----------------------------------------------------------------------------------------------------------
TEST(MoveLimits, OfTheClusterAndOfASetDelayOtherJobs) {
  for (const MoveCaps caps : {MoveCaps{.into_set = 1, .in_cluster = 0}, MoveCaps{.into_set = 0, .in_cluster = 1}}) {
    TwoJobs jobs(2);
    jobs.a.caps = jobs.b.caps = caps;
    ASSERT_TRUE(jobs.run()) << jobs.trace();
    jobs.a.slow_start = 20;
    jobs.a.migrate_by_hand("m", 0, "fast");
    ASSERT_TRUE(jobs.run_until([&] { return jobs.a.wave_phase() == Phase::kPreparing; })) << jobs.trace();
    jobs.b.migrate_by_hand("m", 0, "fast");
    for (int i = 0; i < 5; ++i) jobs.b.tick();
    EXPECT_EQ(jobs.b.migration("m").status.phase, Phase::kPending);
    EXPECT_EQ(jobs.b.migration("m").status.reason, "MoveLimit");
    EXPECT_THAT(jobs.b.migration("m").status.message, HasSubstr("the operator's limit of simultaneous moves"));
    EXPECT_EQ(jobs.b.unrest(), "") << "reported once";
    ASSERT_TRUE(jobs.run_until([&] { return jobs.both_ended(); })) << jobs.trace();
    EXPECT_EQ(jobs.a.migration("m").status.phase, Phase::kSucceeded);
    EXPECT_EQ(jobs.b.migration("m").status.phase, Phase::kSucceeded);
    EXPECT_EQ(jobs.b.migration("m").status.message, "");
  }
}

TEST(MoveLimits, OfAJobApplyToUsersRequestsToo) {
  World w({.ranks = 2, .slow = 2, .fast = 2});
  w.job.spec.rescheduling.max_moves_per_wave = 1;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.migrate_by_hand("m0", 0, "fast");
  w.migrate_by_hand("m1", 1, "fast");
  ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration("m1").status.phase); })) << w.trace;
  EXPECT_EQ(w.migration("m0").status.wave, 1u);
  EXPECT_EQ(w.migration("m1").status.wave, 2u);
  EXPECT_EQ(w.migration("m1").status.phase, Phase::kSucceeded);
}

TEST(Capacity, IsWaitedForIfItMayBecomeFree) {
  World w({.ranks = 3, .slow = 1, .fast = 1});
  w.capacity_may_come = true;
  for (int i = 0; i < 5; ++i) w.tick();
  EXPECT_EQ(w.job.status.phase, JobPhase::kPending);
  EXPECT_EQ(w.job.status.reason, "NoCapacity");
  EXPECT_THAT(w.job.status.message, HasSubstr("3 ranks need 3 slots"));
  EXPECT_EQ(w.unrest(), "") << "reported once";
  w.nodes.push_back({.name = "fast-9", .set = "fast"});
  EXPECT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
}

}  // namespace sim_test
}  // namespace
}  // namespace bsp::reconcile
