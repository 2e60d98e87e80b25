// Operators that reserve by load exchange: each with its own pods, over real links on this machine, with each of the
// three mechanisms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <format>
#include <thread>

#include "operator/reconcile/capacity/stores/exchange_store.h"
#include "tests/unit/net/link_world.h"

namespace bsp::reconcile {
namespace {

using exchange::LinkGroup;
using exchange::Mechanism;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

const Time kNow{1'000'000s};
const Resources kEach{500, 1 << 20, 1};

// One operator: what it sees of its namespace, and how it reserves.
struct Decider {
  std::string name;  // and namespace
  NodeUsage usage;
  std::unique_ptr<ExchangeReservations> store;

  [[nodiscard]] std::string job(int number) const { return std::format("{}/j{}", name, number); }
  // Pods as the scheduler binds them and as they go.
  void place(const std::string& pod, const std::string& node) { change(pod, node, true); }
  void remove(const std::string& pod, const std::string& node) { change(pod, node, false); }

 private:
  void change(const std::string& pod, const std::string& node, bool there) {
    const json object = {
        {"metadata",
         {{"name", pod},
          {"namespace", name},
          {"ownerReferences",
           {{{"apiVersion", names::kApiVersion}, {"kind", names::kBspJobKind}, {"name", "j"}, {"controller", true}}}}}},
        {"spec",
         {{"nodeName", node},
          {"containers", {{{"name", "app"}, {"resources", {{"requests", {{"cpu", "500m"}, {"memory", "1Mi"}}}}}}}}}}};
    usage.change(there ? nullptr : &object, there ? &object : nullptr);
    if (store) store->pods_changed(node);
  }
};

Reservation reservation_of(const std::string& pod, const std::string& node = "fast-1") {
  return {.uid = "u", .wave = 1, .each = kEach, .slots = {{pod, 0, "fast", node}}, .until = kNow};
}

bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

class ExchangeReservationsTest : public testing::TestWithParam<Mechanism> {
 protected:
  void start(std::uint32_t count, std::chrono::milliseconds lost_after = 30s) {
    lost_after_ = lost_after;
    std::vector<std::shared_ptr<LinkGroup>> groups;
    for (std::uint32_t m = 0; m < count; ++m) identities_.push_back(std::format("space-{}", m));
    for (std::uint32_t m = 0; m < count; ++m) {
      groups.push_back(listen(m, "127.0.0.1:0"));
      addresses_.push_back(std::format("127.0.0.1:{}", groups.back()->port()));
      deciders.emplace_back(std::make_unique<Decider>())->name = identities_[m];
    }
    for (std::uint32_t m = 0; m < count; ++m) begin(m, std::move(groups[m]));
  }
  std::shared_ptr<LinkGroup> listen(std::uint32_t m, const std::string& address) {
    auto group = LinkGroup::listen(ca_.context(identities_[m]),
                                   {.name = "test",
                                    .self = m,
                                    .identities = identities_,
                                    .mechanism = GetParam(),
                                    .resources = {},
                                    .majority = identities_.size() > 2,
                                    .lost_after = lost_after_,
                                    .tick = 20ms},
                                   address);
    EXPECT_TRUE(group) << group.error().message;
    return std::move(*group);
  }
  void begin(std::uint32_t m, std::shared_ptr<LinkGroup> group) {
    deciders[m]->store =
        std::make_unique<ExchangeReservations>(ExchangePlace{std::move(group), addresses_}, deciders[m]->usage);
    for (const char* node : {"fast-1", "fast-2"}) deciders[m]->store->pods_changed(node);  // as the cache fills
    deciders[m]->store->begin();
  }
  void come_back(std::uint32_t m) { begin(m, listen(m, addresses_[m])); }

  // As JobShell does it: reads, decides and reserves until it succeeds or there is no slot. True if it has reserved.
  static bool take(Decider& d, int job, std::int64_t slots, const std::string& node = "fast-1") {
    const std::string name = d.job(job);
    for (;;) {
      const Reservations seen = d.store->read(kNow);
      const auto others = reserved_by_others(
          seen, name, [&](const std::string& space, const std::string& pod) { return d.usage.is_placed(space, pod); });
      const auto here = others.find(node);
      const std::int64_t held = d.usage.of_all(node).pods + (here == others.end() ? 0 : here->second.pods);
      bool done = held >= slots;
      const bool reserved =
          !done && d.store->reserve(seen, name, reservation_of(std::format("p{}", job), node), kNow).has_value();
      if (!done && !reserved) continue;
      d.store->reconciled(name);
      return reserved;
    }
  }
  // Decided without knowing all of the others' reservations: it keeps the turn, to decide again.
  static bool is_refused_a_first_time(Decider& d, int job) {
    const auto reserved = d.store->reserve({}, d.job(job), reservation_of(std::format("p{}", job)), kNow);
    if (reserved) (void)d.store->release(d.job(job), kNow);  // it didn't know of them yet
    return !reserved && reserved.error().code == ErrorCode::kConflict;
  }
  std::int64_t pods_of_others(Decider& d, const std::string& node = "fast-1") {
    const Reservations seen = d.store->read(kNow);
    const auto here = seen.reported.find(node);
    return here == seen.reported.end() ? 0 : here->second.pods;
  }

  net::Ca ca_;
  std::vector<std::string> identities_, addresses_;
  std::chrono::milliseconds lost_after_{};
  std::vector<std::unique_ptr<Decider>> deciders;
};

INSTANTIATE_TEST_SUITE_P(Each, ExchangeReservationsTest,
                         testing::Values(Mechanism::kNaive, Mechanism::kIncrements, Mechanism::kSnapshot),
                         [](const auto& mechanism) { return std::string(exchange::to_string(mechanism.param)); });

// Others see an earlier decision; with Naive only once the target runs.
TEST_P(ExchangeReservationsTest, OthersSeeAReservedSlotAsTaken) {
  start(3);
  Decider &a = *deciders[0], &b = *deciders[1];
  ASSERT_TRUE(take(a, 1, 1));
  if (GetParam() == Mechanism::kNaive) {
    EXPECT_EQ(pods_of_others(b), 0);
    a.place("p1", "fast-1");
    ASSERT_TRUE(eventually([&] { return pods_of_others(b) == 1; }));
  }
  EXPECT_FALSE(take(b, 1, 1));
  EXPECT_FALSE(take(*deciders[2], 1, 1));
  EXPECT_TRUE(take(b, 1, 1, "fast-2")) << "another node";
}

TEST_P(ExchangeReservationsTest, ATargetCountsOnceWhereverItIsPlaced) {
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  ASSERT_TRUE(take(a, 1, 9));
  ASSERT_TRUE(eventually([&] { return b.store->read(kNow).reported_moves.all == 1; }));
  a.place("p1", "fast-2");  // not where it was planned
  ASSERT_TRUE(eventually([&] { return pods_of_others(b, "fast-2") == 1; }));
  EXPECT_EQ(pods_of_others(b, "fast-1"), 0);
  EXPECT_EQ(b.store->read(kNow).reported.at("fast-2"), kEach);
  EXPECT_EQ(b.store->read(kNow).reported_moves.into.at("fast"), 1u);
  ASSERT_TRUE(a.store->release(a.job(1), kNow));  // the wave has ended, the rank runs
  ASSERT_TRUE(eventually([&] { return b.store->read(kNow).reported_moves.all == 0; }));
  EXPECT_EQ(pods_of_others(b, "fast-2"), 1);
  a.remove("p1", "fast-2");
  EXPECT_TRUE(eventually([&] { return b.store->read(kNow).reported.empty(); }));
}

// The scheduler counts no checkpoint, so the operator of the target reports it as long as the wave lasts.
TEST_P(ExchangeReservationsTest, TheCheckpointsMemoryIsReportedUntilTheWaveEnds) {
  constexpr std::int64_t kCheckpoint = 100 << 20;
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  const auto memory = [&] {
    const Reservations seen = b.store->read(kNow);
    const auto here = seen.reported.find("fast-1");
    return here == seen.reported.end() ? 0 : here->second.memory;
  };
  Reservation reservation = reservation_of("p1");
  reservation.checkpoint = kCheckpoint;
  ASSERT_TRUE(
      eventually([&] { return a.store->reserve(a.store->read(kNow), a.job(1), reservation, kNow).has_value(); }));
  if (GetParam() != Mechanism::kNaive) {
    EXPECT_TRUE(eventually([&] { return memory() == kEach.memory + kCheckpoint; })) << memory();
  }
  a.place("p1", "fast-1");
  EXPECT_TRUE(eventually([&] { return memory() == kEach.memory + kCheckpoint; })) << memory();
  ASSERT_TRUE(a.store->release(a.job(1), kNow));
  EXPECT_TRUE(eventually([&] { return memory() == kEach.memory; })) << memory();
}

TEST_P(ExchangeReservationsTest, OtherResourcesAreReportedWhileTheyAreHeld) {
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  const auto gpus = [&] {
    const Reservations seen = b.store->read(kNow);
    const auto here = seen.reported.find("fast-1");
    return here == seen.reported.end() ? Extended{} : here->second.extended;
  };
  Reservation reservation = reservation_of("p1");
  reservation.each.extended = {{"nvidia.com/gpu", 2}};
  ASSERT_TRUE(
      eventually([&] { return a.store->reserve(a.store->read(kNow), a.job(1), reservation, kNow).has_value(); }));
  if (GetParam() != Mechanism::kNaive) {
    EXPECT_TRUE(eventually([&] { return gpus() == reservation.each.extended; }));
  }
  ASSERT_TRUE(a.store->release(a.job(1), kNow));
  EXPECT_TRUE(eventually([&] { return gpus().empty(); }));
}

TEST_P(ExchangeReservationsTest, AWavesReservationEndsWithIt) {
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  ASSERT_TRUE(take(a, 1, 1));
  ASSERT_TRUE(a.store->release(a.job(1), kNow));
  ASSERT_TRUE(eventually([&] { return b.store->read(kNow).reported.empty(); }));
  EXPECT_TRUE(take(b, 1, 1));
}

// Operators report the pods that already run when they join, early or late.
TEST_P(ExchangeReservationsTest, PodsThatAlreadyRanCount) {
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  a.place("p1", "fast-1");
  ASSERT_TRUE(eventually([&] { return pods_of_others(b) == 1; }));
  a.store.reset();
  a.place("p2", "fast-1");
  come_back(0);
  EXPECT_TRUE(eventually([&] { return pods_of_others(b) == 2; }));
  EXPECT_FALSE(take(b, 1, 2));
}

// Five jobs of each of three operators want the four slots of one node, all at once. The scheduler places the targets after a while.
TEST_P(ExchangeReservationsTest, ManyCompeteForOneNode) {
  constexpr int kJobs = 5, kSlots = 4;
  start(3);
  std::atomic<int> reserved = 0;
  {
    std::vector<std::jthread> workers;
    for (const auto& decider : deciders)
      for (int worker = 0; worker < 2; ++worker)
        workers.emplace_back([&, worker] {
          for (int job = worker; job < kJobs; job += 2)
            if (take(*decider, job, kSlots)) {
              ++reserved;
              decider->place(std::format("p{}", job), "fast-1");
            }
        });
  }
  EXPECT_GE(reserved, kSlots);
  if (GetParam() == Mechanism::kSnapshot) {
    EXPECT_EQ(reserved, kSlots) << "no slot is taken twice";
  }
  for (const auto& decider : deciders) {
    EXPECT_TRUE(eventually([&] { return pods_of_others(*decider) + decider->usage.of_all("fast-1").pods >= kSlots; }));
    EXPECT_FALSE(take(*decider, 99, kSlots)) << "at last all know";
  }
}

TEST_P(ExchangeReservationsTest, JobsOfOneOperatorWaitForTheirTurn) {
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  ASSERT_TRUE(take(b, 1, 9));
  if (GetParam() == Mechanism::kNaive) b.place("p1", "fast-1");
  ASSERT_TRUE(eventually([&] { return is_refused_a_first_time(a, 1); }));
  const auto other = a.store->reserve(a.store->read(kNow), a.job(2), reservation_of("p2"), kNow);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(other.error().message, HasSubstr("the slots for space-0/j1 are being reserved first"));
  EXPECT_TRUE(a.store->reserve(a.store->read(kNow), a.job(1), reservation_of("p1"), kNow)) << "on the view of its turn";
  ASSERT_TRUE(a.store->release(a.job(1), kNow));
  EXPECT_TRUE(take(a, 2, 9));
}

// One dies during its turn: the others wait as long as it may only be slow, then continue. Its
// reservations stay; when it returns, it reports what it holds.
TEST_P(ExchangeReservationsTest, ADeadDeciderBlocksNoOther) {
  start(3, 1s);
  Decider &a = *deciders[0], &b = *deciders[1], &c = *deciders[2];
  const bool naive = GetParam() == Mechanism::kNaive;
  for (Decider* d : {&a, &b}) {
    ASSERT_TRUE(take(*d, 1, 1, d == &a ? "fast-1" : "fast-2"));
    if (naive) d->place("p1", d == &a ? "fast-1" : "fast-2");
  }
  ASSERT_TRUE(
      eventually([&] { return pods_of_others(a, "fast-2") == 1 && pods_of_others(b) == 1 && pods_of_others(c) == 1; }));
  ASSERT_TRUE(eventually([&] { return is_refused_a_first_time(a, 2); })) << "its turn";
  a.store.reset();
  EXPECT_TRUE(take(b, 2, 1, "fast-3"));
  EXPECT_TRUE(take(c, 2, 1, "fast-4"));
  EXPECT_FALSE(take(b, 3, 1)) << "the dead operator's reservations stay";
  if (!naive) {
    EXPECT_FALSE(take(c, 3, 1, "fast-3")) << "those that are left still know of each other";
  }
  if (naive) a.remove("p1", "fast-1");
  come_back(0);  // the target was never created, or is gone
  EXPECT_TRUE(eventually([&] { return take(b, 3, 1); }));
  EXPECT_TRUE(eventually([&] { return take(a, 3, 9, "fast-9"); }));
}

}  // namespace
}  // namespace bsp::reconcile
