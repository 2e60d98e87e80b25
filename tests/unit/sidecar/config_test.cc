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

class Seats : public testing::Test {
 protected:
  static Result<Config> with(const char* ranks_of_pod, const char* ranks) {
    ::setenv(names::kEnvRank.data(), ranks_of_pod, 1);
    ::setenv(names::kEnvRanks.data(), ranks, 1);
    ::setenv(names::kEnvPod.data(), "job-r4-g0", 1);
    return Config::from_environment();
  }
};

TEST_F(Seats, AreTheRanksInOrder) {
  const auto one = with("4", "8");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->seats, std::vector<std::uint32_t>{4});
  EXPECT_EQ(one->seat_path(0, "ring"), "/run/bsp/ring");
  const auto three = with("7,4,5", "8");
  ASSERT_TRUE(three) << three.error().message;
  EXPECT_EQ(three->seats, (std::vector<std::uint32_t>{7, 4, 5}));
  EXPECT_EQ(three->seat_path(0, "ring"), "/run/bsp/seat-0/ring");
  EXPECT_EQ(three->seat_path(2, "ring"), "/run/bsp/seat-2/ring");
}

TEST_F(Seats, MustBeRanksOfTheJob) {
  for (const char* wrong :
       {"", ",", "4,", ",4", "4,,5", "4;5", "four", "-1", "4, 5", "8", "4,8", "4,5,4", "4294967296"}) {
    const auto config = with(wrong, "8");
    ASSERT_FALSE(config) << wrong;
    EXPECT_TRUE(config.error().message.contains(names::kEnvRank)) << config.error().message;
  }
}

}  // namespace
}  // namespace bsp::sidecar
