// Programs that take MPI's functions from libmpi's own handle, where a preloaded library isn't found first.
#include <gtest/gtest.h>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

class Opened : public testing::TestWithParam<const char*> {};

TEST_P(Opened, GoesThroughEpochs) {
  Job job({.ranks = 2,
           .program = GetParam(),
           .arguments = {"1000000", BSP_BINARY_DIR "/bin/libshim_plugin.so"},
           .environment = {}});
  job.go_through(4);
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, Opened, testing::Values("shim_opened", "shim_linked"),
                         [](const auto& tested) { return std::string(tested.param + 5); });

}  // namespace
}  // namespace bsp::test
