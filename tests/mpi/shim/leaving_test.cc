// Programs that leave an MPI call out of their error handler.
#include <gtest/gtest.h>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

double mean_compute_seconds(Job& job, std::uint32_t rank) {
  const nlohmann::json report = job.cluster.call(rank, wire::kReport, {{"since", 0}}).header;
  double sum = 0;
  for (const nlohmann::json& record : report["supersteps"]) sum += 1e-9 * record["compute_ns"].get<double>();
  return sum / static_cast<double>(report["supersteps"].size());
}

class Leaving : public testing::TestWithParam<const char*> {};

TEST_P(Leaving, GoesThroughEpochsAndIsMeasured) {
  Job job({.ranks = 2, .program = "shim_leaving", .arguments = {"1000000", GetParam()}, .environment = {}});
  job.go_through(4, 4);
  // The program computes for 10 ms of CPU time on rank 0; the other one only waits for it.
  EXPECT_GE(mean_compute_seconds(job, 0), 0.0095);
  EXPECT_LT(mean_compute_seconds(job, 1), 0.5 * mean_compute_seconds(job, 0));
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, Leaving, testing::Values("exception", "longjmp", "threads"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace bsp::test
