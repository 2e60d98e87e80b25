// What a sidecar takes over from the one before it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <vector>

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
