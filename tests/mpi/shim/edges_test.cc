// What ends a superstep: a collective that the user names, or that the ranks find.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

using namespace std::chrono_literals;

TEST(Shim, AnotherCollectiveWithAStrideIsTheEdge) {
  Job job({.ranks = 2,
           .program = "shim_allreduce",
           .arguments = {"100"},
           .environment = {"BSP_SUPERSTEP=MPI_Allreduce:5"},
           .paced = true});
  job.go_through(3);
  job.expect_ok();
  EXPECT_EQ(job.status(0)["completed"], 100);
  EXPECT_EQ(job.status(1)["completed"], 100);
}

using Edge = std::pair<std::string, int>;  // call and stride

Edge edge_of(Job& job, std::uint32_t rank) {
  const nlohmann::json report = job.cluster.call(rank, wire::kReport, {{"since", 0}}).header;
  return {report.value("edge_call", ""), report.value("edge_stride", 0)};
}

Edge wait_for_edge(Job& job, const std::function<bool(const Edge&)>& wanted) {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  Edge edge;
  while (!wanted(edge = edge_of(job, 0)) && std::chrono::steady_clock::now() < deadline) usleep(20'000);
  return edge;
}

// The ranks find what ends a superstep, and find it again when the program enters another phase.
TEST(Shim, RanksFindWhatEndsASuperstep) {
  Job job({.ranks = 3, .program = "shim_auto_edge", .arguments = {kMany}, .environment = {"BSP_SUPERSTEP=Auto"}});
  const Edge found = wait_for_edge(job, [](const Edge& edge) { return edge.first == "MPI_Allreduce"; });
  EXPECT_EQ(found.first, "MPI_Allreduce");
  EXPECT_GE(found.second, 2);
  job.go_through(4);
  EXPECT_EQ(edge_of(job, 0), edge_of(job, 1));
  EXPECT_EQ(edge_of(job, 0), edge_of(job, 2));
  job.finish_ok();
}

// Pods start at different times. Were that time shared out among the first calls, calls of 1 ms would be supersteps.
TEST(Shim, TheWaitForTheFirstEpochIsNoPeriod) {
  Job job({.ranks = 2,
           .program = "shim_auto_edge",
           .arguments = {kMany},
           .environment = {"BSP_SUPERSTEP=Auto"},
           .first_epoch_after = 4s});
  const Edge first = wait_for_edge(job, [](const Edge& edge) { return !edge.first.empty(); });
  EXPECT_NE(first.first, "");
  EXPECT_GE(first.second, 2) << first.first;
  wait_for_edge(job, [](const Edge& edge) { return edge.first == "MPI_Allreduce"; });
  job.finish_ok();
}

TEST(Shim, InvalidSuperstepIsReported) {
  Job job(
      {.ranks = 2, .program = "shim_allreduce", .arguments = {"300"}, .environment = {"BSP_SUPERSTEP=MPI_Alreduce:5"}});
  for (std::uint32_t r : {0u, 1u}) {
    int status = job.wait(r);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
    EXPECT_TRUE(job.stderr_of(r).contains("BSP_SUPERSTEP is \"MPI_Alreduce:5\"")) << job.stderr_of(r);
  }
}

}  // namespace
}  // namespace bsp::test
