// Members of a group in one process, over real sockets with TLS, each deciding in its own threads.
#include "operator/exchange/link_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <latch>
#include <thread>

#include "crds/exchange.h"
#include "tests/unit/net/link_world.h"

namespace bsp::exchange {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kPatience{60};  // for a loaded machine; normally nothing here waits that long

class LinkGroupTest : public testing::Test {
 protected:
  LinkGroup::Options options(Member self, std::uint32_t members, Mechanism mechanism = Mechanism::kSnapshot) {
    LinkGroup::Options o{
        .name = "pools", .self = self, .identities = {}, .mechanism = mechanism, .resources = {}, .tick = 50ms};
    for (std::uint32_t r = 0; r < resources; ++r) o.resources.push_back(std::format("pool-{}", r));
    for (Member m = 0; m < members; ++m) o.identities.push_back(std::format("operator-{}", m));
    return o;
  }
  void listen(const LinkGroup::Options& o) {
    auto group = LinkGroup::listen(ca.context(o.identities[o.self]), o, host + ":0");
    ASSERT_TRUE(group) << group.error().message;
    groups.push_back(std::move(*group));
  }
  std::vector<std::string> addresses() const {
    std::vector<std::string> all;
    for (const auto& group : groups) all.push_back(std::format("{}:{}", host, group->port()));
    return all;
  }
  void start(std::uint32_t members, Mechanism mechanism = Mechanism::kSnapshot) {
    for (Member m = 0; m < members; ++m) listen(options(m, members, mechanism));
    join();
  }
  void join() {
    const auto all = addresses();
    for (const auto& group : groups) ASSERT_TRUE(group->join(all, std::vector<double>(resources)));
  }

  static bool eventually(const std::function<bool()>& holds) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!holds())
      if (std::chrono::steady_clock::now() > deadline) return false;
    return true;
  }

  net::Ca ca;
  // This process' own, so that nobody takes a member's port while it restarts.
  std::string host = std::format("127.{}.{}.1", 1 + ::getpid() / 250 % 250, ::getpid() % 250);
  std::uint32_t resources = 1;
  std::vector<std::unique_ptr<LinkGroup>> groups;
};

TEST_F(LinkGroupTest, TwoDecidersNeverBothTakeTheLastSlot) {
  start(2);
  constexpr int kRounds = 20;
  std::atomic<int> takers = 0;
  std::atomic<int> most = 0;
  std::barrier together(2);
  const auto decider = [&](Member m) {
    for (int round = 0; round < kRounds; ++round) {
      together.arrive_and_wait();
      bool mine = false;
      {
        auto decision = groups[m]->decide(kPatience);
        ASSERT_TRUE(decision) << decision.error().message;
        mine = decision->view().total(0) < 1;
        if (mine) {
          most = std::max(most.load(), ++takers);
          decision->assign({{.to = m, .resource = 0, .amount = 1}});
        }
      }
      together.arrive_and_wait();
      EXPECT_EQ(takers, 1) << "round " << round;
      together.arrive_and_wait();
      if (!mine) continue;
      --takers;
      groups[m]->load_changed(0, -1);
    }
  };
  std::thread other(decider, 1);
  decider(0);
  other.join();
  EXPECT_EQ(most, 1);
}

TEST_F(LinkGroupTest, NoPoolIsOverbookedByManyDeciders) {
  constexpr std::uint32_t kMembers = 5;
  constexpr int kSlots = 3;
  resources = 2;
  start(kMembers);
  std::array<std::atomic<int>, 2> used{};
  std::atomic<int> placed = 0;
  std::vector<std::thread> deciders;
  for (Member m = 0; m < kMembers; ++m)
    deciders.emplace_back([&, m] {
      for (int i = 0; i < 6; ++i) {
        auto decision = groups[m]->decide(kPatience);
        ASSERT_TRUE(decision) << decision.error().message;
        const View& view = decision->view();
        const std::uint32_t pool = view.total(0) <= view.total(1) ? 0 : 1;
        if (view.total(pool) >= kSlots) continue;
        EXPECT_LT(used[pool]++, kSlots);
        ++placed;
        decision->assign({{.to = m, .resource = pool, .amount = 1}});
        if (i % 2 == 1) {
          --used[pool];
          groups[m]->load_changed(pool, -1);
        }
      }
    });
  for (std::thread& decider : deciders) decider.join();
  EXPECT_GE(placed, kSlots * 2);
}

TEST_F(LinkGroupTest, AnswersWhileTheDecidingThreadIsBusy) {
  start(3);
  // Members 1 and 2 want to decide, but their threads are busy until 0 has decided.
  std::latch decided(1);
  std::vector<std::thread> busy;
  for (Member m : {1u, 2u})
    busy.emplace_back([&, m] {
      decided.wait();
      EXPECT_TRUE(groups[m]->decide(kPatience));
    });
  {
    auto decision = groups[0]->decide(kPatience);
    EXPECT_TRUE(decision) << decision.error().message;
  }
  decided.count_down();
  for (std::thread& thread : busy) thread.join();
}

TEST_F(LinkGroupTest, IncrementsBroadcastAReservation) {
  start(3, Mechanism::kIncrements);
  auto decision = groups[0]->decide(kPatience);
  ASSERT_TRUE(decision) << decision.error().message;
  decision->assign({{.to = 2, .resource = 0, .amount = 4}});
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (groups[1]->view().load(2) != 4 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(groups[1]->view().load(2), 4);
}

TEST_F(LinkGroupTest, OthersContinueWhenAMemberDiesMidDecision) {
  for (Member m = 0; m < 3; ++m) {
    auto o = options(m, 3);
    o.lost_after = 200ms;
    o.answer_within = 5s;
    listen(o);
  }
  join();
  // Member 0 decides, holds everyone's grant, and dies.
  std::optional<LinkGroup::Decision> held(std::move(groups[0]->decide(kPatience).value()));
  groups[0].reset();
  EXPECT_TRUE(eventually([&] {  // a member whose thread is held up is lost for a while, too
    const auto decision = groups[2]->decide(kPatience);
    return decision && decision->view().lost(0) && !decision->view().lost(1);
  }));
}

TEST_F(LinkGroupTest, UnclaimedViewIsReleased) {
  listen(options(0, 2));
  listen(options(1, 2));
  const auto all = addresses();
  ASSERT_TRUE(groups[0]->join(all, {0}));
  const auto early = groups[0]->decide(1ms);  // member 1 has not joined
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().code, ErrorCode::kTimeout);
  ASSERT_TRUE(groups[1]->join(all, {0}));
  EXPECT_TRUE(groups[1]->decide(kPatience)) << "0 has the smaller rank, got its view first, and decided nothing";
  EXPECT_TRUE(groups[0]->decide(kPatience));
}

TEST_F(LinkGroupTest, OneDecisionAtATimePerMember) {
  start(2);
  const auto open = groups[0]->decide(kPatience);
  ASSERT_TRUE(open);
  const auto second = groups[0]->decide(kPatience);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "the previous decision is not finished");
}

TEST_F(LinkGroupTest, RejectsAnImpostor) {
  start(2);
  net::Link stranger(ca.context("operator-7"), {addresses()[0], "operator-0"});
  const auto ask = [](net::Link& link, wire::ExchangeBatch batch) {
    batch.messages = {{.kind = Kind::kStart, .id = 1}};
    const auto answer = link.call(wire::kExchange, nlohmann::json(batch), kPatience);
    return answer ? std::string("taken in") : answer.error().message;
  };
  EXPECT_THAT(ask(stranger, {.group = "pools", .from = 1, .instance = 5, .resources = {}, .number = 1, .messages = {}}),
              testing::EndsWith("\"operator-7\" is not member 1 of group pools"));
  net::Link other(ca.context("operator-1"), {addresses()[0], "operator-0"});
  EXPECT_THAT(ask(other, {.group = "pools-2", .from = 1, .instance = 5, .resources = {}, .number = 1, .messages = {}}),
              testing::EndsWith("this is a member of group pools, not pools-2"));
  EXPECT_THAT(ask(other, {.group = "pools", .from = 0, .instance = 5, .resources = {}, .number = 1, .messages = {}}),
              testing::EndsWith("\"operator-1\" is not member 0 of group pools"));
}

// A member restarts before or after the others have declared it lost. In either case all start a new generation with
// their own loads, and no earlier decision is forgotten.
TEST_F(LinkGroupTest, RestartedMemberRejoins) {
  for (const Mechanism mechanism : {Mechanism::kNaive, Mechanism::kIncrements, Mechanism::kSnapshot})
    for (const bool missed : {false, true}) {
      SCOPED_TRACE(std::format("{}, {}", to_string(mechanism), missed ? "missed" : "at once"));
      groups.clear();
      for (Member m = 0; m < 3; ++m) {
        auto o = options(m, 3, mechanism);
        o.lost_after = 500ms;
        listen(o);
      }
      join();
      groups[0]->decide(kPatience)->assign({{.to = 0, .resource = 0, .amount = 2}});
      if (mechanism == Mechanism::kNaive) groups[0]->load_changed(0, 2, true);
      groups[1]->load_changed(0, 3);
      for (Member m : {0u, 2u})  // with Snapshot a member has only the view that it requested itself
        ASSERT_TRUE(eventually([&] { return groups[m]->decide(kPatience)->view().total(0) == 5; }));
      const auto all = addresses();
      groups[1].reset();
      if (missed) {
        ASSERT_TRUE(eventually([&] {
          for (const double by : {1.0, -1.0})
            groups[0]->load_changed(0, by);  // a member without messages doesn't notice a loss
          return groups[0]->decide(kPatience)->view().lost(1);
        }));
        EXPECT_EQ(groups[0]->view().load(1), 3) << "as last known";
      }
      auto again = LinkGroup::listen(ca.context("operator-1"), options(1, 3, mechanism), all[1]);
      ASSERT_TRUE(again) << again.error().message;
      ASSERT_TRUE((*again)->join(all, {4}));
      groups[1] = std::move(*again);
      for (Member m = 0; m < 3; ++m)
        EXPECT_TRUE(eventually([&] {
          const auto decision = groups[m]->decide(kPatience);
          return decision && decision->view().total(0) == 6 && !decision->view().lost(1);
        })) << "member "
            << m;
    }
}

TEST_F(LinkGroupTest, NewGenerationWaitsForTheDecision) {
  start(3);
  auto held = groups[0]->decide(kPatience);
  ASSERT_TRUE(held);
  const auto all = addresses();
  groups[2].reset();
  auto again = LinkGroup::listen(ca.context("operator-2"), options(2, 3), all[2]);
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE((*again)->join(all, {0}));
  EXPECT_FALSE((*again)->decide(300ms)) << "its grant is needed, and it hasn't granted the request yet";
  held->assign({{.to = 0, .resource = 0, .amount = 1}});
  auto decision = (*again)->decide(kPatience);
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_EQ(decision->view().load(0), 1);
}

TEST_F(LinkGroupTest, DecisionIsConfirmedOnceAllHaveCountedIt) {
  for (Member m = 0; m < 3; ++m) {
    auto o = options(m, 3, Mechanism::kIncrements);
    o.lost_after = 2s;
    listen(o);
  }
  join();
  ASSERT_TRUE(groups[0]->decide(kPatience)->assign_confirmed({{.to = 0, .resource = 0, .amount = 1}}, kPatience));
  for (Member m = 0; m < 3; ++m) EXPECT_EQ(groups[m]->view().load(0), 1);
  groups[2].reset();
  const auto unconfirmed =
      groups[0]->decide(kPatience)->assign_confirmed({{.to = 0, .resource = 0, .amount = 1}}, 200ms);
  ASSERT_FALSE(unconfirmed);
  EXPECT_EQ(unconfirmed.error().message, "group pools: not all members have confirmed it in time");
  groups[0]->load_changed(0, -1);
  EXPECT_TRUE(groups[0]->decide(kPatience)->assign_confirmed({{.to = 0, .resource = 0, .amount = 5}}, kPatience))
      << "no member waits for a lost one";
  EXPECT_TRUE(groups[0]->view().lost(2));
  EXPECT_EQ(groups[1]->view().load(0), 6);
}

TEST_F(LinkGroupTest, ResourcesAreIdentifiedByName) {
  resources = 0;
  start(2);
  const std::uint32_t slow = groups[0]->resource("slow"), fast = groups[0]->resource("fast");
  EXPECT_EQ(groups[0]->resource("slow"), slow);
  EXPECT_EQ(groups[1]->resource("fast"), 0u) << "each member has its own numbers";
  groups[0]->load_changed(slow, 7);
  groups[0]->load_changed(fast, 8);
  groups[1]->load_changed(0, 1);
  EXPECT_EQ(groups[0]->view().load(0, fast), 8) << "counted before the resource is first used here";
  auto decision = groups[1]->decide(kPatience);
  ASSERT_TRUE(decision) << decision.error().message;
  EXPECT_EQ(groups[1]->resources(), (std::vector<std::string>{"fast", "slow"}));
  EXPECT_EQ(decision->view().total(0), 9);
  EXPECT_EQ(decision->view().total(1), 7);
}

TEST_F(LinkGroupTest, ResolvesHostNames) {
  host = "127.0.0.1";
  listen(options(0, 2));
  listen(options(1, 2));
  std::vector<std::string> all;
  for (const auto& group : groups) all.push_back(std::format("localhost:{}", group->port()));
  for (const auto& group : groups) ASSERT_TRUE(group->join(all, {0}));
  EXPECT_TRUE(groups[0]->decide(kPatience));
  EXPECT_TRUE(groups[1]->decide(kPatience));
}

TEST_F(LinkGroupTest, RejectsAnInvalidGroup) {
  auto o = options(0, 2);
  o.self = 2;
  EXPECT_FALSE(LinkGroup::listen(ca.context("operator-0"), o, "127.0.0.1:0"));
  listen(options(0, 2));
  EXPECT_EQ(groups[0]->join({"127.0.0.1:1"}, {0}).error().message, "group pools: 1 addresses for 2 members");
  EXPECT_EQ(groups[0]->join({"", "127.0.0.1:1"}, {0, 0}).error().message, "group pools: 2 loads for 1 resources");
}

}  // namespace
}  // namespace bsp::exchange
