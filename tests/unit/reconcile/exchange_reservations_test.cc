// Room that operators book by load exchange: each with its own pods, over real links on this machine, with each of the
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
constexpr Resources kEach{500, 1 << 20, 1};

// One operator: what it sees of its namespace, and how it books.
struct Decider {
  std::string name;  // and namespace
  NodeUsage usage;
  std::unique_ptr<ExchangeReservations> room;

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
    if (room) room->pods_changed(node);
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
    deciders[m]->room =
        std::make_unique<ExchangeReservations>(ExchangePlace{std::move(group), addresses_}, deciders[m]->usage);
    for (const char* node : {"fast-1", "fast-2"}) deciders[m]->room->pods_changed(node);  // as the cache fills
    deciders[m]->room->begin();
  }
  void come_back(std::uint32_t m) { begin(m, listen(m, addresses_[m])); }

  // As JobShell does it: reads, decides, books, until that is done or there is no room. True if it has booked.
  static bool take(Decider& d, int job, std::int64_t slots, const std::string& node = "fast-1") {
    const std::string name = d.job(job);
    for (;;) {
      const Reservations seen = d.room->read(kNow);
      const auto others = reserved_by_others(
          seen, name, [&](const std::string& space, const std::string& pod) { return d.usage.is_placed(space, pod); });
      const auto here = others.find(node);
      const std::int64_t held = d.usage.of_all(node).pods + (here == others.end() ? 0 : here->second.pods);
      bool done = held >= slots;
      const bool reserved =
          !done && d.room->reserve(seen, name, reservation_of(std::format("p{}", job), node), kNow).has_value();
      if (!done && !reserved) continue;
      d.room->reconciled(name);
      return reserved;
    }
  }
  // Decided on less than the others hold: it keeps the turn, to decide again.
  static bool is_refused_a_first_time(Decider& d, int job) {
    const auto reserved = d.room->reserve({}, d.job(job), reservation_of(std::format("p{}", job)), kNow);
    if (reserved) (void)d.room->release(d.job(job), kNow);  // it had not heard of them yet
    return !reserved && reserved.error().code == ErrorCode::kConflict;
  }
  std::int64_t told(Decider& d, const std::string& node = "fast-1") {
    const Reservations seen = d.room->read(kNow);
    const auto here = seen.told.find(node);
    return here == seen.told.end() ? 0 : here->second.pods;
  }

  net::Ca ca_;
  std::vector<std::string> identities_, addresses_;
  std::chrono::milliseconds lost_after_{};
  std::vector<std::unique_ptr<Decider>> deciders;
};

INSTANTIATE_TEST_SUITE_P(Each, ExchangeReservationsTest,
                         testing::Values(Mechanism::kNaive, Mechanism::kIncrements, Mechanism::kSnapshot),
                         [](const auto& mechanism) { return std::string(exchange::to_string(mechanism.param)); });

// What another has decided before is seen; by Naive once the target runs.
TEST_P(ExchangeReservationsTest, WhatOneHasTakenTheOthersSeeTaken) {
  start(3);
  Decider &a = *deciders[0], &b = *deciders[1];
  ASSERT_TRUE(take(a, 1, 1));
  if (GetParam() == Mechanism::kNaive) {
    EXPECT_EQ(told(b), 0);
    a.place("p1", "fast-1");
    ASSERT_TRUE(eventually([&] { return told(b) == 1; }));
  }
  EXPECT_FALSE(take(b, 1, 1));
  EXPECT_FALSE(take(*deciders[2], 1, 1));
  EXPECT_TRUE(take(b, 1, 1, "fast-2")) << "another node";
}

TEST_P(ExchangeReservationsTest, ATargetIsCountedOnceWhereverItIsPlaced) {
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  ASSERT_TRUE(take(a, 1, 9));
  ASSERT_TRUE(eventually([&] { return b.room->read(kNow).told_moves.all == 1; }));
  a.place("p1", "fast-2");  // not where it was planned
  ASSERT_TRUE(eventually([&] { return told(b, "fast-2") == 1; }));
  EXPECT_EQ(told(b, "fast-1"), 0);
  EXPECT_EQ(b.room->read(kNow).told.at("fast-2"), kEach);
  EXPECT_EQ(b.room->read(kNow).told_moves.into.at("fast"), 1u);
  ASSERT_TRUE(a.room->release(a.job(1), kNow));  // the wave has ended, the rank runs
  ASSERT_TRUE(eventually([&] { return b.room->read(kNow).told_moves.all == 0; }));
  EXPECT_EQ(told(b, "fast-2"), 1);
  a.remove("p1", "fast-2");
  EXPECT_TRUE(eventually([&] { return b.room->read(kNow).told.empty(); }));
}

// The scheduler counts no checkpoint, so whoever runs the rank at last has to tell of it for as long as the wave lasts.
TEST_P(ExchangeReservationsTest, TheCheckpointsMemoryIsToldUntilTheWaveHasEnded) {
  constexpr std::int64_t kCheckpoint = 100 << 20;
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  const auto memory = [&] {
    const Reservations seen = b.room->read(kNow);
    const auto here = seen.told.find("fast-1");
    return here == seen.told.end() ? 0 : here->second.memory;
  };
  Reservation reservation = reservation_of("p1");
  reservation.checkpoint = kCheckpoint;
  ASSERT_TRUE(eventually([&] { return a.room->reserve(a.room->read(kNow), a.job(1), reservation, kNow).has_value(); }));
  if (GetParam() != Mechanism::kNaive) {
    EXPECT_TRUE(eventually([&] { return memory() == kEach.memory + kCheckpoint; })) << memory();
  }
  a.place("p1", "fast-1");
  EXPECT_TRUE(eventually([&] { return memory() == kEach.memory + kCheckpoint; })) << memory();
  ASSERT_TRUE(a.room->release(a.job(1), kNow));
  EXPECT_TRUE(eventually([&] { return memory() == kEach.memory; })) << memory();
}

TEST_P(ExchangeReservationsTest, WhatAWaveHadBookedIsGivenUpWithIt) {
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  ASSERT_TRUE(take(a, 1, 1));
  ASSERT_TRUE(a.room->release(a.job(1), kNow));
  ASSERT_TRUE(eventually([&] { return b.room->read(kNow).told.empty(); }));
  EXPECT_TRUE(take(b, 1, 1));
}

// What runs already is told at the start, by who comes first and by who comes later.
TEST_P(ExchangeReservationsTest, PodsThatRanBeforeCount) {
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  a.place("p1", "fast-1");
  ASSERT_TRUE(eventually([&] { return told(b) == 1; }));
  a.room.reset();
  a.place("p2", "fast-1");
  come_back(0);
  EXPECT_TRUE(eventually([&] { return told(b) == 2; }));
  EXPECT_FALSE(take(b, 1, 2));
}

// Five jobs of each of three operators want the four slots of one node, all at once. The scheduler places what was
// booked after a while.
TEST_P(ExchangeReservationsTest, ManyWhoCompeteForOneNode) {
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
    EXPECT_EQ(reserved, kSlots) << "nobody takes what another has";
  }
  for (const auto& decider : deciders) {
    EXPECT_TRUE(eventually([&] { return told(*decider) + decider->usage.of_all("fast-1").pods >= kSlots; }));
    EXPECT_FALSE(take(*decider, 99, kSlots)) << "at last all know";
  }
}

TEST_P(ExchangeReservationsTest, OfAJobThatDecidesOthersOfItsOperatorWaitForTheTurn) {
  start(2);
  Decider &a = *deciders[0], &b = *deciders[1];
  ASSERT_TRUE(take(b, 1, 9));
  if (GetParam() == Mechanism::kNaive) b.place("p1", "fast-1");
  ASSERT_TRUE(eventually([&] { return is_refused_a_first_time(a, 1); }));
  const auto other = a.room->reserve(a.room->read(kNow), a.job(2), reservation_of("p2"), kNow);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(other.error().message, HasSubstr("the slots for space-0/j1 are being requested first"));
  EXPECT_TRUE(a.room->reserve(a.room->read(kNow), a.job(1), reservation_of("p1"), kNow)) << "on the view of its turn";
  ASSERT_TRUE(a.room->release(a.job(1), kNow));
  EXPECT_TRUE(take(a, 2, 9));
}

// One ends while it is its turn: the others wait for as long as it may only have been slow, and go on. What it had
// booked stays booked; when it is back, it says what it holds.
TEST_P(ExchangeReservationsTest, ADeciderThatDiesHoldsNobodyUpForEver) {
  start(3, 1s);
  Decider &a = *deciders[0], &b = *deciders[1], &c = *deciders[2];
  const bool naive = GetParam() == Mechanism::kNaive;
  for (Decider* d : {&a, &b}) {
    ASSERT_TRUE(take(*d, 1, 1, d == &a ? "fast-1" : "fast-2"));
    if (naive) d->place("p1", d == &a ? "fast-1" : "fast-2");
  }
  ASSERT_TRUE(eventually([&] { return told(a, "fast-2") == 1 && told(b) == 1 && told(c) == 1; }));
  ASSERT_TRUE(eventually([&] { return is_refused_a_first_time(a, 2); })) << "its turn";
  a.room.reset();
  EXPECT_TRUE(take(b, 2, 1, "fast-3"));
  EXPECT_TRUE(take(c, 2, 1, "fast-4"));
  EXPECT_FALSE(take(b, 3, 1)) << "what the dead one had booked stays booked";
  if (!naive) {
    EXPECT_FALSE(take(c, 3, 1, "fast-3")) << "those that are left still know of each other";
  }
  if (naive) a.remove("p1", "fast-1");
  come_back(0);  // the target was never made, or has gone
  EXPECT_TRUE(eventually([&] { return take(b, 3, 1); }));
  EXPECT_TRUE(eventually([&] { return take(a, 3, 9, "fast-9"); }));
}

}  // namespace
}  // namespace bsp::reconcile
