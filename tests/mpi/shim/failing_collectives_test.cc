// Collectives that don't succeed, or aren't the same, on all ranks: the ranks still agree where a superstep ends, or say that they don't.
#include <gtest/gtest.h>

#include "tests/mpi/shim/job.h"

namespace bsp::test::failing_collectives {
namespace {

using namespace std::chrono_literals;

struct Case {
  const char* how;
  const char* edge;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.how << " " << c.edge; }

class FailingCollectives : public testing::TestWithParam<Case> {};

TEST_P(FailingCollectives, AreEdgesOnAllRanks) {
  Job job({.ranks = 2,
           .program = "shim_failing_collectives",
           .arguments = {"1000000", GetParam().how},
           .environment = {std::string("BSP_SUPERSTEP=") + GetParam().edge}});
  job.go_through(5, 20);
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, FailingCollectives,
                         testing::Values(Case{"returns", "MPI_Bcast:1"}, Case{"goes on", "MPI_Bcast:3"},
                                         Case{"leaves", "MPI_Bcast:1"}, Case{"returns", "MPI_Barrier:1"},
                                         Case{"leaves", "Auto"}),
                         [](const auto& tested) { return "Case" + std::to_string(tested.index); });

// Each rank would find another edge. No gate can close then, and the status says why.
TEST(Shim, RanksThatDisagreeHaveNoEdge) {
  Job job({.ranks = 3, .program = "shim_disagreeing", .arguments = {"1000000"}, .environment = {"BSP_SUPERSTEP=Auto"}});
  for (std::uint32_t r = 0; r < 3; ++r) {
    std::string reason;
    for (const auto deadline = std::chrono::steady_clock::now() + 60s;
         reason.empty() && std::chrono::steady_clock::now() < deadline; usleep(20'000))
      reason = job.status(r)["blocked_reason"].get<std::string>();
    EXPECT_TRUE(reason.contains("haven't called the same collectives") && reason.contains("spec.superstep")) << reason;
    EXPECT_EQ(job.cluster.call(r, wire::kReport, {{"since", 0}}).header.value("edge_call", ""), "");
  }
  job.finish_ok();
}

}  // namespace
}  // namespace bsp::test::failing_collectives
