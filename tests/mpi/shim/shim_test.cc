// Unmodified MPI programs through several MPI epochs under libbspmpi.so. Each program checks its own results;
// the test is the operator: it sets gates, sees all ranks stop, and opens the next epoch.
#include <gtest/gtest.h>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

struct Case {
  const char* program;
  std::uint32_t ranks;
  int turns;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.program << " " << c.ranks; }

class Programs : public testing::TestWithParam<Case> {};

TEST_P(Programs, GoThroughEpochs) {
  const auto& [program, ranks, turns] = GetParam();
  Job job({.ranks = ranks, .program = program, .arguments = {"600"}, .environment = {}});
  ASSERT_TRUE(job.reach(3));
  for (int i = 0; i < turns; ++i) {
    ASSERT_TRUE(job.turn()) << "epoch " << job.epoch() << "\n" << job.stderr_of(0) << job.stderr_of(1);
    ASSERT_TRUE(job.reach(job.status(0)["completed"].get<std::uint64_t>() + 2));
  }
  job.expect_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, Programs,
                         testing::Values(Case{"shim_p2p", 2, 3}, Case{"shim_p2p", 4, 3}),
                         [](const auto& tested) {
                           return std::string(tested.param.program + 5) + std::to_string(tested.param.ranks);
                         });

}  // namespace
}  // namespace bsp::test
