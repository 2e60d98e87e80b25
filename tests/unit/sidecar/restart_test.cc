// What a sidecar takes over from the one before it.
#include <gtest/gtest.h>

#include "tests/unit/sidecar/real_sidecar.h"

namespace bsp::sidecar {
namespace {

// Without it, it would forget its epochs and overwrite what it couldn't read.
TEST(Restart, WaitsForAStateThatCantBeReadAtPresent) {
  RealSidecar sidecar;
  const wire::EpochPlan plan{.epoch = 1,
                             .pmix_namespace = "uid-e1",
                             .sets = {"slow"},
                             .members = {{.rank = 0, .pod = kPod, .pod_uid = "u", .address = "127.0.0.1:1", .set = 0}}};
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(plan)));
  const std::string reason = sidecar.reason_without("sidecar/state");
  EXPECT_TRUE(reason.contains("/run/sidecar/state: ")) << reason;
  EXPECT_EQ(sidecar.status().prepared_epoch, 1u);
}

}  // namespace
}  // namespace bsp::sidecar
