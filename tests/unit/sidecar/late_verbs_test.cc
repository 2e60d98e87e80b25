// Verbs that were under way for so long that another rank has their seat. They name the seat, and nothing in their fields tells
// whose it was: only the token does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <map>
#include <string>
#include <vector>

#include "sidecar/ring/ring_access.h"
#include "tests/unit/sidecar/real_sidecar.h"

namespace bsp::sidecar {
namespace {

using control::ProgramState;
using testing::HasSubstr;
using wire::RankPhase;

constexpr std::uint32_t kSeat = 1;
constexpr wire::Token kNow{.wave = 4, .epoch = 7, .attempt = 2};

// Seat 0 has rank 0. Seat 1 has rank 1, and later rank 2.
wire::EpochPlan plan_with(std::uint64_t epoch, std::uint32_t here) {
  wire::EpochPlan plan{
      .epoch = epoch, .pmix_namespace = std::format("uid-e{}", epoch), .sets = {"slow"}, .members = {}};
  for (const std::uint32_t rank : {0u, 1u, 2u}) {
    const bool is_here = rank == 0 || rank == here;
    plan.members.push_back({.rank = rank,
                            .pod = is_here ? kPod : "job-r9-g0",
                            .pod_uid = "u",
                            .address = "127.0.0.1:1",
                            .set = 0,
                            .seat = rank == here ? kSeat : 0});
  }
  return plan;
}

json with(json fields, const wire::Token& token) {
  fields[wire::kSeat] = kSeat;
  fields[wire::kToken] = reflect::write(token);
  return fields;
}

// As they were sent to rank 1.
std::map<std::string_view, json> verbs_of_the_past() {
  const json image{{"set", 3}, {"epoch", 4}, {"attempt", 0}, {"key", ""}};
  return {
      {wire::kPrepareEpoch, json(plan_with(9, 1))},
      {wire::kOpenEpoch, {{"epoch", 7}}},
      {wire::kArmGate, {{"superstep", 200}}},
      {wire::kCommitGate, {{"superstep", 200}}},
      {wire::kCancelGate, {{"superstep", 200}}},
      {wire::kReceive, {{"migration", "m1"}, {"from_pod", "job-r9-g0"}, {"restore", true}}},
      {wire::kSend, {{"migration", "m1"}, {"to_pod", "job-r9-g0"}, {"to_address", "127.0.0.1:1"}}},
      {wire::kRestore, {{"migration", "m1"}}},
      {wire::kDiscard, {{"migration", "m2"}}},  // the one that has come
      {wire::kSave, image},
      {wire::kLoad, {{"image", image}, {"digest", ""}}},
      {wire::kKeepSets, {{"below", 100}, {"keep", json::array()}}},
      {wire::kKill, json::object()},
  };
}

class LateVerbs : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(connect(ProgramState::kRunning, 7));
    ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, with(json(plan_with(4, 1)), {3, 4, 0})));
    ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, with({{"epoch", 4}}, {3, 4, 0})));
    sidecar.restart([](json& state) {  // rank 1 was sent
      state["seats"][kSeat]["transfer"]["status"]["transfer"] = {{"migration", "m1"}, {"phase", "Sent"}};
    });
    ASSERT_NO_FATAL_FAILURE(connect(ProgramState::kDumped, 7));
    ASSERT_TRUE(sidecar.ask(wire::kKill, with(json::object(), {3, 5, 1})));
    sidecar.say(control::Vacated{}, kSeat);
    sidecar.wait_until([](const auto& s) { return s.phase == RankPhase::kWaiting; }, 30s, kSeat);
    // Rank 2 comes.
    ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, with(json(plan_with(7, 2)), {4, 7, 0})));
    ASSERT_TRUE(sidecar.ask(wire::kReceive, with({{"migration", "m2"}, {"from_pod", "job-r9-g0"}}, {4, 7, 1})));
    sidecar.say(control::Restored{.migration = "m2", .pid = 8, .ns = 1}, kSeat);
    sidecar.wait_until([](const auto& s) { return s.phase == RankPhase::kStopped; }, 30s, kSeat);
    ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, with({{"epoch", 7}}, {4, 7, 1})));
    sidecar.say(control::Running{.pid = 8}, kSeat);
    bsp_ring& ring = sidecar.ring(kSeat);
    BSP_RING_STORE(ring.epoch, std::uint64_t{7});
    BSP_RING_STORE(ring.opened_ns, std::uint64_t{1});
    BSP_RING_STORE(ring.state, static_cast<std::uint32_t>(BSP_RANK_RUNNING));
    BSP_RING_STORE_SEQ(ring.completed, std::uint64_t{100});
    sidecar.wait_until([](const auto& s) { return s.phase == RankPhase::kRunning && s.completed == 100; }, 30s, kSeat);
    ASSERT_EQ(sidecar.status(kSeat).rank, 2u);
    ASSERT_TRUE(sidecar.ask(wire::kArmGate, with({{"superstep", 200}}, kNow)));
    (void)sidecar.heard_since(kSeat);
  }
  void connect(ProgramState state, std::int64_t pid) {
    sidecar.connect_init({.uid = ::getuid(), .gid = ::getgid(), .pid = pid, .state = state}, kSeat);
    sidecar.wait_until([](const auto& s) { return s.init_connected; }, 30s, kSeat);
  }
  json shown() {
    json statuses;
    for (std::uint32_t seat = 0; seat < 3; ++seat) {
      json status = sidecar.status(seat);
      for (const char* moment : {"version", "throttled", "cpu"}) status.erase(moment);
      statuses.push_back(std::move(status));
    }
    return statuses;
  }
  void expect_all_refused() {
    const json before = shown();
    for (const auto& [verb, fields] : verbs_of_the_past())
      for (const wire::Token& token : {wire::Token{3, 5, 1}, wire::Token{3, 9, 9}, wire::Token{4, 6, 9}}) {
        SCOPED_TRACE(std::format("{} {}", verb, reflect::write(token).dump()));
        const auto answer = sidecar.ask(std::string(verb).c_str(), with(fields, token));
        ASSERT_FALSE(answer) << answer->dump();
        EXPECT_EQ(answer.error().code, ErrorCode::kConflict);
        EXPECT_FALSE(answer.error().retryable) << "whoever sent it must not send it again";
        EXPECT_THAT(answer.error().message, HasSubstr("has been followed since"));
        EXPECT_EQ(shown(), before);
        EXPECT_EQ(sidecar.heard_since(kSeat), std::vector<std::string>()) << "bsp-init is asked for nothing";
      }
    for (const char* verb : {wire::kArmGate, wire::kCommitGate, wire::kCancelGate}) {
      EXPECT_FALSE(sidecar.ask(verb, with({{"superstep", 200}}, {4, 7, 1}))) << verb << " of an earlier attempt";
      EXPECT_EQ(shown(), before);
    }
  }

  RealSidecar sidecar{3};
};

TEST_F(LateVerbs, AreAllThatAct) {
  std::vector<std::string_view> known;
  for (const auto& [verb, fields] : verbs_of_the_past()) known.push_back(verb);
  EXPECT_THAT(known, testing::UnorderedElementsAreArray(Sidecar::acting_verbs()));
}

TEST_F(LateVerbs, ToARankThatHasLeftAreRefusedAndDoNothing) { expect_all_refused(); }

TEST_F(LateVerbs, AreRefusedByTheNextSidecarToo) {
  sidecar.restart();
  ASSERT_NO_FATAL_FAILURE(connect(ProgramState::kRunning, 8));
  expect_all_refused();
}

// Else the tests above could pass for any other reason.
TEST_F(LateVerbs, WouldBeFollowedIfTheyWereOfToday) {
  for (const auto& [verb, fields] : verbs_of_the_past()) {
    const auto answer = sidecar.ask(std::string(verb).c_str(), with(fields, kNow));
    if (!answer) {
      EXPECT_THAT(answer.error().message, testing::Not(HasSubstr("followed since"))) << verb;
    }
  }
}

}  // namespace
}  // namespace bsp::sidecar
