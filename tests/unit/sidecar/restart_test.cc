// What a sidecar takes over from the one before it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <format>

#include <vector>

#include "crds/reflect.h"
#include "sidecar/agent/followed.h"
#include "tests/unit/sidecar/real_sidecar.h"

namespace bsp::sidecar {
namespace {

wire::EpochPlan plan_of(std::uint64_t epoch) {
  return {.epoch = epoch,
          .pmix_namespace = std::format("uid-e{}", epoch),
          .sets = {"slow"},
          .members = {{.rank = 0, .pod = kPod, .pod_uid = "u", .address = "127.0.0.1:1", .set = 0}}};
}

void connect_program(RealSidecar& sidecar) {
  sidecar.connect_init({.uid = ::getuid(), .gid = ::getgid(), .pid = 7, .state = control::ProgramState::kRunning});
  sidecar.wait_until([](const auto& s) { return s.init_connected; });
}

// Without it, it would forget its epochs and overwrite what it couldn't read.
TEST(Restart, WaitsForAStateThatCantBeReadAtPresent) {
  RealSidecar sidecar;
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan_of(1))));
  const std::string reason = sidecar.reason_without("sidecar/state");
  EXPECT_TRUE(reason.contains("/run/sidecar/state: ")) << reason;
  EXPECT_EQ(sidecar.status().prepared_epoch, 1u);
}

// Each wave that is rolled back leaves the epoch it had prepared, and the one it prepared to go on as before.
TEST(Restart, RemembersWhichVerbsWereFollowed) {
  RealSidecar sidecar;
  connect_program(sidecar);
  const auto arm = [&](const wire::Token& token) {
    json fields{{"superstep", 8}};
    fields[wire::kToken] = reflect::write(token);
    return sidecar.ask("armGate", fields);
  };
  ASSERT_TRUE(arm({3, 9, 2}));
  EXPECT_EQ(sidecar.status().wave, 3u);
  sidecar.restart();
  connect_program(sidecar);
  EXPECT_EQ(sidecar.status().wave, 3u);
  const auto late = arm({3, 9, 1});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kConflict);
  EXPECT_THAT(late.error().message,
              testing::EndsWith("it is of wave 3, epoch 9, attempt 1, and wave 3, epoch 9, attempt 2 has "
                                "been followed since"));
  ASSERT_TRUE(sidecar.ask("cancelGate", {{"superstep", 8}, {"token", reflect::write(wire::Token{3, 9, 2})}}));
  sidecar.restart();
  connect_program(sidecar);
  EXPECT_FALSE(arm({3, 9, 2})) << "its gate is over";
  EXPECT_TRUE(arm({3, 9, 3}));
}

// Seats of a pod have separate connections: the preparation of one may come after the gate of another.
TEST(Followed, AttemptsOfAGateMatterToGatesOnly) {
  const std::string file = std::format("/tmp/followed-{}", ::getpid());
  Followed followed(file);
  const auto of = [](const wire::Token& token) { return json{{wire::kToken, reflect::write(token)}}; };
  EXPECT_TRUE(followed.follow(wire::kArmGate, of({3, 9, 1})));
  EXPECT_TRUE(followed.follow(wire::kPrepareEpoch, of({3, 9, 0})));
  EXPECT_FALSE(followed.follow(wire::kArmGate, of({3, 9, 0})));
  EXPECT_FALSE(followed.follow(wire::kCancelGate, of({3, 9, 0}))) << "it would end the later attempt's";
  EXPECT_TRUE(followed.follow(wire::kCancelGate, of({3, 9, 1})));
  EXPECT_FALSE(followed.follow(wire::kPrepareEpoch, of({3, 8, 5})));
  EXPECT_FALSE(followed.follow(wire::kPrepareEpoch, of({2, 10, 5})));
  EXPECT_FALSE(Followed(file).follow(wire::kCommitGate, of({3, 9, 0}))) << "it is saved";
  std::filesystem::remove(file);
}

TEST(Restart, RefusesATokenThatIsNone) {
  RealSidecar sidecar;
  connect_program(sidecar);
  for (const json& token : {json("text"), json(7), json::object(), json{{"wave", -1}, {"epoch", 0}, {"attempt", 0}}}) {
    const auto answer = sidecar.ask("armGate", {{"superstep", 8}, {"token", token}});
    ASSERT_FALSE(answer) << token;
    EXPECT_EQ(answer.error().code, ErrorCode::kInvalid) << token;
    EXPECT_THAT(answer.error().message, testing::HasSubstr("request.token")) << token;
  }
  EXPECT_TRUE(sidecar.ask("armGate", {{"superstep", 8}, {"token", nullptr}})) << "null is none";
}

TEST(Restart, FindsNoEpochThatOnesPreparedLaterHaveReplaced) {
  RealSidecar sidecar;
  ASSERT_NO_FATAL_FAILURE(connect_program(sidecar));
  for (std::uint64_t epoch = 1; epoch <= 20; ++epoch) {
    ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan_of(epoch))));
    if (epoch == 1) {
      ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 1}}));
    }
  }
  std::vector<std::uint64_t> kept;
  sidecar.restart([&](const json& state) {
    for (const json& plan : state["plans"]) kept.push_back(plan["epoch"]);
  });
  ASSERT_NO_FATAL_FAILURE(connect_program(sidecar));
  EXPECT_THAT(kept, testing::ElementsAre(1u, 20u)) << "the one that is open, and the next";
  EXPECT_EQ(sidecar.status().prepared_epoch, 20u);
  EXPECT_FALSE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 19}}));
  EXPECT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 20}}));
}

}  // namespace
}  // namespace bsp::sidecar
