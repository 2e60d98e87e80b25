#include "sidecar/agent/config.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "crds/names.h"

namespace bsp::sidecar {
namespace {

// A pod's address may be of either family.
TEST(Config, ListensOnAllAddressesOfBothFamilies) {
  for (const auto& [name, value] :
       {std::pair{names::kEnvRank, "0"}, {names::kEnvRanks, "2"}, {names::kEnvPod, "job-r0-g0"}})
    ::setenv(name.data(), value, 1);
  ::unsetenv(names::kEnvListen.data());
  const auto config = Config::from_environment();
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->listen, "[::]:7600");
}

}  // namespace
}  // namespace bsp::sidecar
