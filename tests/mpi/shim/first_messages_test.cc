// Short programs that end, or stop at a gate, right after unusual first messages: both ranks must still exist when
// late messages arrive. Each seed gives another program (programs/first_messages.c).
//
// ctest runs 40 of them; BSP_FIRST_MESSAGES=1000 in the environment of shim_test runs 1000.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

int programs() {
  const char* text = std::getenv("BSP_FIRST_MESSAGES");
  return text != nullptr ? std::atoi(text) : 40;
}

class FirstMessages : public testing::TestWithParam<int> {};

TEST_P(FirstMessages, MayAlsoBeTheLast) {
  const int seed = GetParam();
  const bool steps = seed % 3 == 2;
  Job job({.ranks = 2 + static_cast<std::uint32_t>(seed) % 8,
           .program = "shim_first_messages",
           .arguments = {std::to_string(seed), steps ? "steps" : "end"},
           .environment = {"BSP_SUPERSTEP=MPI_Bcast:1"}});
  for (int turn = 0; steps && turn < 1 + seed % 2; ++turn) ASSERT_TRUE(job.turn()) << job.stderr_of(0);
  if (steps)
    job.finish_ok();
  else
    job.expect_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, FirstMessages, testing::Range(0, programs()));

}  // namespace
}  // namespace bsp::test
