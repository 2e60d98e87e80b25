// The messages of the shim's own, which no receive of the program may match.
#include <gtest/gtest.h>

#include "tests/mpi/shim/directory.h"
#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

class OwnMessages : public testing::TestWithParam<const char*> {};

TEST_P(OwnMessages, NeverReachAReceiveOfTheProgram) {
  const Directory directory;
  Job job({.ranks = 3,
           .program = "shim_any_message",
           .arguments = {"1000000", GetParam(), directory.path().string()},
           .environment = {}});
  job.go_through(6, 5);
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, OwnMessages,
                         testing::Values("nothing", "window", "file", "communicators", "intercommunicator", "all"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace bsp::test
