// A process whose environment asks to be struck: it is where fault points are compiled in, and goes on where they are not.
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

// Ends with 0 where nothing befalls it.
[[noreturn]] void pass(const char* variable, const std::string& value) {
  ::setenv(variable, value.c_str(), 1);
  fault_point("test.point");
  ::_exit(0);
}

void expect_struck_if_compiled_in(const char* variable, const std::string& value) {
  if (kHasThem)
    EXPECT_EXIT(pass(variable, value), testing::KilledBySignal(SIGKILL), "");
  else
    EXPECT_EXIT(pass(variable, value), testing::ExitedWithCode(0), "");
}

TEST(FaultPoints, ByTheEnvironment) { expect_struck_if_compiled_in("BSP_FAULTS", "test.point=kill"); }

TEST(FaultPoints, ByAFile) {
  char path[] = "/tmp/bsp-faults-XXXXXX";
  const std::filesystem::path directory = ::mkdtemp(path);
  std::ofstream(directory / "test.point") << "kill";
  expect_struck_if_compiled_in("BSP_FAULT_DIRECTORY", directory);
  std::filesystem::remove_all(directory);
}

TEST(FaultPoints, AFailureThatIsAskedFor) {
  const auto ask = [] {
    ::setenv("BSP_FAULTS", "test.point=fail", 1);
    ::_exit(fault_fails("test.point") ? 1 : 0);
  };
  EXPECT_EXIT(ask(), testing::ExitedWithCode(kHasThem ? 1 : 0), "");
}

}  // namespace
}  // namespace bsp
