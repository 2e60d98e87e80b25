// A pod with several seats: requests reach the seat that they name, and what happens to one concerns no other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <fstream>
#include <vector>

#include "sidecar/ring/ring_access.h"
#include "tests/unit/sidecar/real_sidecar.h"

namespace bsp::sidecar {
namespace {

using control::ProgramState;
using testing::HasSubstr;
using wire::RankPhase;

constexpr std::uint32_t kSeats = 3;

wire::EpochPlan plan_of(std::uint64_t epoch, const std::vector<std::uint32_t>& seats = {0, 1, 2}) {
  wire::EpochPlan plan{
      .epoch = epoch, .pmix_namespace = std::format("uid-e{}", epoch), .sets = {"slow"}, .members = {}};
  for (std::uint32_t rank = 0; rank < seats.size(); ++rank)
    plan.members.push_back(
        {.rank = rank, .pod = kPod, .pod_uid = "u", .address = "127.0.0.1:1", .set = 0, .seat = seats[rank]});
  return plan;
}

class Seats : public testing::Test {
 protected:
  void connect(std::uint32_t seat, ProgramState state = ProgramState::kRunning) {
    sidecar.connect_init({.uid = ::getuid(), .gid = ::getgid(), .pid = 7, .state = state}, seat);
    sidecar.wait_until([](const auto& s) { return s.init_connected; }, 30s, seat);
  }
  std::string descriptor(std::uint32_t seat) {
    std::ifstream file(sidecar.seat_dir(seat) / "epoch");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  RealSidecar sidecar{kSeats};
};

TEST_F(Seats, AreToldApartInRequests) {
  for (std::uint32_t seat = 0; seat < kSeats; ++seat) {
    const auto status = sidecar.status(seat);
    EXPECT_EQ(status.seat, seat);
    EXPECT_EQ(status.rank, seat);
    EXPECT_EQ(status.pod, kPod);
  }
  ASSERT_TRUE(sidecar.ask(wire::kArmGate, {{"superstep", 5}, {"seat", 1}}));
  EXPECT_EQ(sidecar.status(0).gate_superstep, 0u);
  EXPECT_EQ(sidecar.status(1).gate_superstep, 5u);
  EXPECT_EQ(sidecar.status(2).gate_superstep, 0u);
  EXPECT_EQ(sidecar.ask(wire::kStatus, {{"seat", nullptr}}).value()["rank"], 0) << "as if it were not there";
}

TEST_F(Seats, MustExist) {
  for (const json& seat : {json("1"), json(-1), json(1.5), json::array(), json(true)}) {
    const auto answer = sidecar.ask(wire::kStatus, {{"seat", seat}});
    ASSERT_FALSE(answer) << seat.dump();
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalid) << seat.dump();
    EXPECT_THAT(answer.error().message, HasSubstr("request.seat"));
  }
  const auto absent = sidecar.ask(wire::kArmGate, {{"superstep", 5}, {"seat", kSeats}});
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(absent.error().message, HasSubstr("has no seat 3, it has 3"));
  const auto planned = sidecar.ask(wire::kPrepareEpoch, json(plan_of(1, {0, 1, 7})));
  ASSERT_FALSE(planned);
  EXPECT_THAT(planned.error().message, HasSubstr("seat 7 of pod"));
}

TEST_F(Seats, EnterAnEpochInAnyOrder) {
  for (const std::uint32_t seat : {0u, 1u, 2u}) ASSERT_NO_FATAL_FAILURE(connect(seat));
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan_of(1, {2, 0, 1}))));  // rank 0 in seat 2, …
  for (const std::uint32_t seat : {0u, 1u, 2u}) EXPECT_EQ(sidecar.status(seat).prepared_epoch, 1u);
  ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 1}, {"seat", 2}}));
  EXPECT_EQ(sidecar.status(2).admitted_epoch, 1u);
  EXPECT_EQ(sidecar.status(0).admitted_epoch, 0u);
  EXPECT_THAT(descriptor(2), HasSubstr("BSP_RANK=0\n"));
  EXPECT_THAT(descriptor(2), HasSubstr("BSP_LOCAL_RANKS=0,1,2\n"));
  EXPECT_THAT(descriptor(2), HasSubstr("PMIX_RANK=0\n"));
  EXPECT_EQ(descriptor(0), "") << "it is not admitted yet";
  ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 1}}));
  EXPECT_THAT(descriptor(0), HasSubstr("PMIX_RANK=1\n"));
  EXPECT_EQ(sidecar.status(0).rank, 1u);
  // One seat is ahead: the others can't stay behind.
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan_of(2))));
  ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 2}}));
  EXPECT_FALSE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 1}, {"seat", 1}}));
  EXPECT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 2}, {"seat", 1}}));
  EXPECT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 2}, {"seat", 1}})) << "a repeated request has no effect";
}

// Its rank has moved away; a seat that no rank has is let into no epoch.
TEST_F(Seats, WithoutARankStayOut) {
  for (const std::uint32_t seat : {0u, 1u, 2u}) ASSERT_NO_FATAL_FAILURE(connect(seat));
  auto plan = plan_of(1);
  plan.members[1].pod = "job-r1-g1";
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan)));
  ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 1}}));
  const auto refused = sidecar.ask(wire::kOpenEpoch, {{"epoch", 1}, {"seat", 1}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("gives no rank to seat 1"));
  EXPECT_THAT(descriptor(0), HasSubstr("BSP_LOCAL_RANKS=0,2\n"));
  EXPECT_EQ(descriptor(1), "");
}

// Before the gate: the program may have to keep ranks together.
TEST_F(Seats, KnowWhichRanksTheNextEpochTakesAway) {
  for (const std::uint32_t seat : {0u, 1u, 2u}) ASSERT_NO_FATAL_FAILURE(connect(seat));
  const auto parting = [this](std::uint32_t seat) { return BSP_RING_LOAD(sidecar.ring(seat).parting[0]); };
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan_of(1, {2, 0, 1}))));
  for (const std::uint32_t seat : {0u, 1u, 2u}) {
    EXPECT_EQ(parting(seat), 0u) << "no epoch is open";
    ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 1}, {"seat", seat}}));
  }
  auto plan = plan_of(2, {2, 0, 1});
  plan.members[1].pod = "job-r1-g1";
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan)));
  EXPECT_EQ(parting(2), 0b010u);  // rank 0
  EXPECT_EQ(parting(0), 0b101u);  // rank 1, which leaves both others
  EXPECT_EQ(parting(1), 0b010u);
  // Another plan takes its place, after which two leave together; then one for which all stay.
  plan.members[2].pod = "job-r1-g1";
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan)));
  EXPECT_EQ(parting(2), 0b110u);
  EXPECT_EQ(parting(0), 0b001u);
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan_of(3, {2, 0, 1}))));
  for (const std::uint32_t seat : {0u, 1u, 2u}) EXPECT_EQ(parting(seat), 0u);
  ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 3}, {"seat", 2}}));
  EXPECT_EQ(parting(2), 0u);
}

TEST_F(Seats, EndAlone) {
  for (const std::uint32_t seat : {0u, 1u, 2u}) ASSERT_NO_FATAL_FAILURE(connect(seat));
  sidecar.say(control::Exited{.code = 3, .signal = 0, .message = "it had enough"}, 1);
  sidecar.wait_until([](const auto& s) { return s.phase == RankPhase::kExited; }, 30s, 1);
  EXPECT_TRUE(std::holds_alternative<control::Bye>(sidecar.heard(1)));
  EXPECT_NE(sidecar.status(0).phase, RankPhase::kExited);
  ASSERT_TRUE(sidecar.ask(wire::kKill, {{"seat", 2}}));
  EXPECT_TRUE(std::holds_alternative<control::Kill>(sidecar.heard(2)));
  ASSERT_TRUE(sidecar.ask(wire::kReceive, {{"migration", "m7"}, {"from_pod", "job-r9-g0"}, {"seat", 0}}));
  // What was saved of one seat is given to no other.
  sidecar.restart();
  EXPECT_EQ(sidecar.status(1).phase, RankPhase::kExited);
  EXPECT_EQ(sidecar.status(1).exit_code, 3);
  for (const std::uint32_t seat : {0u, 2u}) EXPECT_EQ(sidecar.status(seat).exit_code, -1);
  EXPECT_EQ(sidecar.status(0).transfer.migration, "m7");
  EXPECT_EQ(sidecar.status(0).transfer.phase, wire::TransferPhase::kFailed);
  for (const std::uint32_t seat : {1u, 2u}) EXPECT_EQ(sidecar.status(seat).transfer.migration, "");
}

// The rank of seat 1 moves away. Its seat is as new for the next rank: above all, no epoch continues that one before it is let in.
TEST_F(Seats, WaitForAnotherRankWhenOneHasLeft) {
  for (const std::uint32_t seat : {0u, 1u, 2u}) ASSERT_NO_FATAL_FAILURE(connect(seat));
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan_of(4))));
  for (const std::uint32_t seat : {0u, 1u, 2u})
    ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 4}, {"seat", seat}}));
  BSP_RING_STORE(sidecar.ring(1).state, static_cast<std::uint32_t>(BSP_RANK_RUNNING));
  BSP_RING_STORE(sidecar.ring(1).epoch, 4u);
  BSP_RING_STORE(sidecar.ring(1).opened_ns, 1u);
  BSP_RING_STORE_SEQ(sidecar.ring(1).completed, 100u);
  sidecar.restart([](json& state) {  // its checkpoint was sent
    state["seats"][1]["transfer"]["status"]["transfer"] = {{"migration", "m1"}, {"phase", "Sent"}};
  });
  ASSERT_NO_FATAL_FAILURE(connect(0));
  ASSERT_NO_FATAL_FAILURE(connect(1, ProgramState::kDumped));
  ASSERT_EQ(sidecar.status(1).transfer.phase, wire::TransferPhase::kSent);
  ASSERT_TRUE(sidecar.ask(wire::kKill, {{"seat", 1}}));
  ASSERT_TRUE(std::holds_alternative<control::Vacate>(sidecar.heard(1)));
  sidecar.say(control::Vacated{}, 1);
  sidecar.wait_until([](const auto& s) { return s.phase == RankPhase::kWaiting; }, 30s, 1);
  const auto free = sidecar.status(1);
  EXPECT_EQ(free.transfer.phase, wire::TransferPhase::kIdle);
  EXPECT_EQ(free.epoch, 0u);
  EXPECT_EQ(free.completed, 0u);
  EXPECT_EQ(free.admitted_epoch, 0u);
  EXPECT_TRUE(free.init_connected);
  EXPECT_FALSE(std::filesystem::exists(sidecar.seat_dir(1) / "epoch"));
  EXPECT_EQ(sidecar.status(0).admitted_epoch, 4u) << "its neighbour has not left";
  ASSERT_TRUE(sidecar.ask(wire::kKill, {{"seat", 1}})) << "a repeated request has no effect";
  // Another rank comes.
  EXPECT_TRUE(sidecar.ask(wire::kReceive, {{"migration", "m2"}, {"from_pod", "job-r9-g0"}, {"seat", 1}}));
  sidecar.say(control::Restored{.migration = "m3", .pid = 8, .ns = 1}, 1);
  sidecar.wait_until([](const auto& s) { return s.phase == RankPhase::kStopped; }, 30s, 1);
  EXPECT_FALSE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 3}, {"seat", 1}})) << "the pod has been in a later one";
  sidecar.restart();
  sidecar.connect_init({.uid = ::getuid(), .gid = ::getgid(), .pid = 8, .state = ProgramState::kRestored}, 1);
  sidecar.wait_until([](const auto& s) { return s.init_connected; }, 30s, 1);
  EXPECT_EQ(sidecar.status(1).phase, RankPhase::kStopped) << "the last epoch of the seat is not its own";
  auto plan = plan_of(5);
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan)));
  ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 5}, {"seat", 1}}));
  const auto heard = sidecar.heard(1);
  const auto* continued = std::get_if<control::Continue>(&heard);
  ASSERT_NE(continued, nullptr);
  EXPECT_EQ(continued->epoch, 5u);
}

TEST_F(Seats, AreFreeAlsoIfTheirSidecarWasDownThen) {
  ASSERT_NO_FATAL_FAILURE(connect(1));
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan_of(4))));
  ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 4}, {"seat", 1}}));
  BSP_RING_STORE_SEQ(sidecar.ring(1).completed, 100u);
  sidecar.restart([](json& state) {
    state["seats"][1]["transfer"]["status"]["transfer"] = {{"migration", "m1"}, {"phase", "Sent"}};
  });
  ASSERT_EQ(sidecar.status(1).admitted_epoch, 4u);
  ASSERT_NO_FATAL_FAILURE(connect(1, ProgramState::kWaiting));
  sidecar.wait_until([](const auto& s) { return s.transfer.phase == wire::TransferPhase::kIdle; }, 30s, 1);
  EXPECT_EQ(sidecar.status(1).completed, 0u);
  EXPECT_EQ(sidecar.status(1).admitted_epoch, 0u);
}

// The first Vacate takes a while, so that the operator asks again, and both are answered: the second one when the next rank is on its way.
TEST_F(Seats, AreLeftOnce) {
  ASSERT_NO_FATAL_FAILURE(connect(1));
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan_of(4))));
  sidecar.restart([](json& state) {
    state["seats"][1]["transfer"]["status"]["transfer"] = {{"migration", "m1"}, {"phase", "Sent"}};
  });
  ASSERT_NO_FATAL_FAILURE(connect(1, ProgramState::kDumped));
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_TRUE(sidecar.ask(wire::kKill, {{"seat", 1}}));
    ASSERT_TRUE(std::holds_alternative<control::Vacate>(sidecar.heard(1)));
  }
  sidecar.say(control::Vacated{}, 1);
  sidecar.wait_until([](const auto& s) { return s.transfer.phase == wire::TransferPhase::kIdle; }, 30s, 1);
  ASSERT_TRUE(sidecar.ask(wire::kReceive, {{"migration", "m2"}, {"from_pod", "job-r9-g0"}, {"seat", 1}}));
  sidecar.say(control::Vacated{}, 1);
  sidecar.say(control::Exited{.code = 3, .signal = 0, .message = ""}, 1);
  sidecar.wait_until([](const auto& s) { return s.phase == RankPhase::kExited; }, 30s, 1);
  const auto held = sidecar.status(1);
  EXPECT_EQ(held.transfer.phase, wire::TransferPhase::kReceiving);
  EXPECT_EQ(held.transfer.migration, "m2");
}

// Its sidecar ended between asking bsp-init for the copy and noting that. Nothing else would end it, since its pod has other ranks.
TEST_F(Seats, LoseACopyThatTheirSidecarDidNotNote) {
  for (const ProgramState state : {ProgramState::kRestoring, ProgramState::kRestored}) {
    for (const std::uint32_t seat : {0u, 2u}) ASSERT_NO_FATAL_FAILURE(connect(seat));
    ASSERT_NO_FATAL_FAILURE(connect(1, ProgramState::kWaiting));
    ASSERT_TRUE(sidecar.ask(wire::kReceive, {{"migration", "m2"}, {"from_pod", "job-r9-g0"}, {"seat", 1}}));
    sidecar.restart();
    sidecar.connect_init({.uid = ::getuid(), .gid = ::getgid(), .pid = 8, .state = state, .migration = "m2"}, 1);
    const auto holds = [](const auto& s) {
      return s.transfer.migration == "m2" && (s.transfer.phase == wire::TransferPhase::kRestoring ||
                                              s.transfer.phase == wire::TransferPhase::kRestored);
    };
    ASSERT_NO_FATAL_FAILURE(sidecar.wait_until(holds, 30s, 1)) << static_cast<int>(state);
    std::jthread asks([this] { EXPECT_TRUE(sidecar.ask(wire::kDiscard, {{"migration", "m2"}, {"seat", 1}})); });
    const auto heard = sidecar.heard(1);
    ASSERT_TRUE(std::holds_alternative<control::Discard>(heard)) << static_cast<int>(state);
    EXPECT_EQ(std::get<control::Discard>(heard).migration, "m2");
    sidecar.say(control::Discarded{.migration = "m2"}, 1);
    asks.join();
    const auto clean = sidecar.status(1);
    EXPECT_EQ(clean.transfer.phase, wire::TransferPhase::kIdle);
    EXPECT_EQ(clean.phase, RankPhase::kWaiting);
    sidecar.restart();
  }
}

// A wave that would move a rank there is rolled back for this reason before any rank stops.
TEST(Seat, RefusesWhatNeedsABspInitThatItDoesNotUnderstand) {
  RealSidecar sidecar;
  control::Hello hello{
      .mode = control::Mode::kRestore, .uid = ::getuid(), .gid = ::getgid(), .state = ProgramState::kWaiting};
  const json receives = reflect::write(wire::ReceiveRequest{"m1", "job-r1-g0", true});
  for (const std::uint32_t protocol : {0u, control::kProtocol + 2, UINT32_MAX}) {
    hello.protocol = protocol;
    ASSERT_NO_FATAL_FAILURE(sidecar.connect_init(hello));
    const std::string says =
        std::format("bsp-init speaks version {} of its protocol and the sidecar version 1", protocol);
    sidecar.wait_until([&](const auto& s) { return s.blocked_reason.starts_with(says); });
    EXPECT_FALSE(sidecar.status().init_connected);
    const auto refused = sidecar.ask(wire::kReceive, receives);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
    EXPECT_THAT(refused.error().message, testing::HasSubstr(says));
  }
  // One release newer, and our own.
  for (const std::uint32_t protocol : {control::kProtocol + 1, control::kProtocol}) {
    hello.protocol = protocol;
    ASSERT_NO_FATAL_FAILURE(sidecar.connect_init(hello));
    sidecar.wait_until([](const auto& s) { return s.init_connected && s.blocked_reason.empty(); });
    EXPECT_TRUE(sidecar.ask(wire::kReceive, receives));
  }
}

TEST(Seat, OfAPodThatHasOneEndsWithItsRank) {
  RealSidecar alone;
  ASSERT_TRUE(alone.ask(wire::kPrepareEpoch, json(plan_of(1, {0}))));
  alone.connect_init({.uid = ::getuid(), .gid = ::getgid(), .pid = 7, .state = ProgramState::kRunning});
  alone.restart([](json& state) {
    state["seats"][0]["transfer"]["status"]["transfer"] = {{"migration", "m1"}, {"phase", "Sent"}};
  });
  alone.connect_init({.uid = ::getuid(), .gid = ::getgid(), .pid = 7, .state = ProgramState::kDumped});
  alone.wait_until([](const auto& s) { return s.init_connected; });
  ASSERT_TRUE(alone.ask(wire::kKill, json::object()));
  EXPECT_TRUE(std::holds_alternative<control::Kill>(alone.heard(0)));
}

}  // namespace
}  // namespace bsp::sidecar
