// A process that arms a fault point through its environment: it dies where fault points are compiled in, else
// continues.
#include "base/core/fault.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace bsp {
namespace {

constexpr bool kHasThem = BSP_FAULT_POINTS;

// Exits with 0 if no fault fires.
[[noreturn]] void pass(const char* variable, const std::string& value) {
  ::setenv(variable, value.c_str(), 1);
  fault_point("test.point");
  ::_exit(0);
}

void expect_killed_if_compiled_in(const char* variable, const std::string& value) {
  if (kHasThem)
    EXPECT_EXIT(pass(variable, value), testing::KilledBySignal(SIGKILL), "");
  else
    EXPECT_EXIT(pass(variable, value), testing::ExitedWithCode(0), "");
}

TEST(FaultPoints, ArmedByTheEnvironment) { expect_killed_if_compiled_in("BSP_FAULTS", "test.point=kill"); }

TEST(FaultPoints, ArmedByAFile) {
  char path[] = "/tmp/bsp-faults-XXXXXX";
  const std::filesystem::path directory = ::mkdtemp(path);
  std::ofstream(directory / "test.point") << "kill";
  expect_killed_if_compiled_in("BSP_FAULT_DIRECTORY", directory);
  std::filesystem::remove_all(directory);
}

TEST(FaultPoints, InjectsAFailure) {
  const auto ask = [] {
    ::setenv("BSP_FAULTS", "test.point=fail", 1);
    ::_exit(fault_fails("test.point") ? 1 : 0);
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(kHasThem ? 1 : 0), "");
}

}  // namespace
}  // namespace bsp
