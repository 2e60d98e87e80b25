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
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  for (int epoch = 1; epoch < 4; ++epoch) {
    ASSERT_TRUE(job.turn()) << "epoch " << job.epoch() << "\n" << job.stderr_of(0) << job.stderr_of(1);
    ASSERT_TRUE(job.reach(job.status(0)["completed"].get<std::uint64_t>() + 2));
  }
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, Opened, testing::Values("shim_opened", "shim_linked"),
                         [](const auto& tested) { return std::string(tested.param + 5); });

}  // namespace
}  // namespace bsp::test
