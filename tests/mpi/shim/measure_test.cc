// What a rank reports of its supersteps: calls, bytes, and whom it hears from.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

TEST(Shim, ReportsTheMostCalledCollective) {
  Job job({.ranks = 2, .program = "shim_allreduce", .arguments = {"100"}, .environment = {}, .paced = true});
  job.go_through(1);
  job.expect_ok();
  EXPECT_EQ(job.status(1)["completed"], 100) << "barriers";
  EXPECT_EQ(job.status(1)["collective"], "MPI_Allreduce") << "five to each barrier";
}

// Each rank of shim_p2p hears from its left neighbour, the same in every superstep; also in another epoch.
TEST(Shim, ReportsWhomARankHearsFrom) {
  Job job({.ranks = 4, .program = "shim_p2p", .arguments = {kMany}, .environment = {}});
  for (int epoch = 0; epoch < 2; ++epoch) {
    ASSERT_TRUE(job.reach(job.completed() + 4));
    for (std::uint32_t r = 0; r < 4; ++r) {
      const nlohmann::json report = job.cluster.call(r, wire::kReport, {{"since", 0}}).header;
      ASSERT_EQ(report.value("partners", nlohmann::json()), (nlohmann::json{(r + 3) % 4})) << report.dump();
      double received = 0;
      for (const auto& bytes : report["supersteps"].back()["recv_bytes"]) received += bytes.get<double>();
      EXPECT_GT(received, 320'000) << "40,000 numbers";
      EXPECT_NEAR(report["partner_bytes"][0].get<double>(), received, 4);
      const auto all = report["completed"].get<std::uint64_t>() + 1'000'000;
      EXPECT_FALSE(job.cluster.call(r, wire::kReport, {{"since", all}}).header.contains("partners"));
    }
    ASSERT_TRUE(job.turn());
  }
  job.finish_ok();
}

// Also of what the ranks of a communicator send each other alike.
TEST(Shim, ReportsWhomARankIsInATeamWith) {
  Job job({.ranks = 4, .program = "shim_teams", .arguments = {kMany}, .environment = {}});
  for (int epoch = 0; epoch < 2; ++epoch) {
    ASSERT_TRUE(job.reach(job.completed() + 8));
    for (std::uint32_t r = 0; r < 4; ++r) {
      const nlohmann::json report = job.cluster.call(r, wire::kReport, {{"since", 0}}).header;
      ASSERT_EQ(report.value("partners", nlohmann::json()), (nlohmann::json{r ^ 1})) << report.dump();
      double received = 0;
      for (const auto& bytes : report["supersteps"].back()["recv_bytes"]) received += bytes.get<double>();
      EXPECT_GE(received, 40'000) << "5,000 numbers";
      EXPECT_NEAR(report["partner_bytes"][0].get<double>(), 40'000, 4) << "not what all ranks sum";
    }
    ASSERT_TRUE(job.turn());
  }
  job.finish_ok();
}

TEST(Shim, AMessageRightBeforeTheEdgeIsOfItsSuperstep) {
  Job job({.ranks = 2, .program = "shim_last_message", .arguments = {kMany}, .environment = {}});
  ASSERT_TRUE(job.reach(20));
  const nlohmann::json report = job.cluster.call(1, wire::kReport, {{"since", 0}}).header;
  ASSERT_GE(report["supersteps"].size(), 4u) << report.dump();
  for (const nlohmann::json& record : report["supersteps"]) {
    double received = 0;
    for (const auto& bytes : record["recv_bytes"]) received += bytes.get<double>();
    EXPECT_EQ(received >= 40'000, record["superstep"].get<int>() % 2 == 1) << record.dump();
  }
  job.finish_ok();
}

// What a collective brings every rank alike makes no partners.
TEST(Shim, NoRankIsAPartnerForAnAllreduce) {
  Job job({.ranks = 3, .program = "shim_allreduce", .arguments = {"100"}, .environment = {}, .paced = true});
  ASSERT_TRUE(job.reach(20));
  const nlohmann::json report = job.cluster.call(0, wire::kReport, {{"since", 0}}).header;
  EXPECT_FALSE(report.contains("partners")) << report.dump();
  EXPECT_FALSE(report["supersteps"].back()["recv_bytes"].empty());
  job.expect_ok();
}

}  // namespace
}  // namespace bsp::test
