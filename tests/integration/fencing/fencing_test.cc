// Three real sidecars with a limit of five seconds: which programs end when their pods are no longer heard, and which
// don't. A stopped sidecar (SIGSTOP) stands for a node that is cut off.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "crds/fencing.h"
#include "sidecar/agent/collect/ring_file.h"
#include "sidecar/ring/ring_access.h"
#include "tests/integration/relay/fake_init.h"
#include "tests/mpi/epochs/cluster.h"

namespace bsp::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr auto kShortLimit = 5s;

class Fencing : public testing::Test {
 protected:
  void start_all() {
    for (std::uint32_t rank = 0; rank < cluster.ranks(); ++rank) {
      cluster.start_sidecar(rank,
                            {std::format("{}={}", fencing::kEnvLimit, std::chrono::milliseconds(kShortLimit).count())});
      auto ring = collect::RingFile::open(cluster.run_dir(rank) + "/ring");
      BSP_RING_STORE((*ring)->state, BSP_RANK_RUNNING);
      inits.push_back(std::make_unique<FakeInit>(cluster.run_dir(rank), control::ProgramState::kRunning));
    }
    spoke = std::chrono::steady_clock::now();
    cluster.prepare(1);
    cluster.open(1);
  }

  Cluster cluster{3};
  std::vector<std::unique_ptr<FakeInit>> inits;
  std::chrono::steady_clock::time_point spoke;  // when the operator last spoke, or a little earlier
};

TEST_F(Fencing, EndsEveryProgramThatIsCutOff) {
  start_all();
  cluster.sidecars[2].signal(SIGSTOP);
  const std::string root = inits[0]->expect(control::Kill::kVerb).text("reason");
  EXPECT_THAT(root, HasSubstr("the operator has been silent for"));
  EXPECT_THAT(root, HasSubstr("rank 2 (job-r2-g1) does not answer"));
  // It hears rank 0 all the time, which is cut off with it.
  EXPECT_THAT(inits[1]->expect(control::Kill::kVerb).text("reason"), HasSubstr("rank 0 (job-r0-g1)"));
  EXPECT_GE(std::chrono::steady_clock::now() - spoke, kShortLimit);
  // A node that was paused as a whole: its deadline passed long ago.
  cluster.sidecars[2].signal(SIGCONT);
  EXPECT_THAT(inits[2]->expect(control::Kill::kVerb).text("reason"), HasSubstr("cut off"));
}

TEST_F(Fencing, LeavesAJobRunningWhoseOperatorIsAbsent) {
  start_all();
  std::this_thread::sleep_for(5 * kShortLimit / 2);  // the passing of time is what is tested
  // The first kill that any bsp-init gets is the operator's own, which has no reason.
  for (std::uint32_t rank = 0; rank < cluster.ranks(); ++rank) {
    cluster.call(rank, wire::kKill);
    EXPECT_EQ(inits[rank]->expect(control::Kill::kVerb).text("reason"), "");
  }
}

// The others ask rank 0; rank 2 is one of those that it asks.
class OneFinishes : public Fencing, public testing::WithParamInterface<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Rank, OneFinishes, testing::Values(0, 2), testing::PrintToStringParamName());

TEST_P(OneFinishes, StaysForTheOthersWhileTheOperatorIsAbsent) {
  start_all();
  std::this_thread::sleep_for(kShortLimit / 4);  // the passing of time is what is tested
  FakeInit& finished = *inits[GetParam()];
  finished.say(control::Exited::kVerb, {{"code", "0"}, {"signal", "0"}, {"message", ""}});
  for (const auto until = spoke + 3 * kShortLimit; std::chrono::steady_clock::now() < until;)
    finished.expect(control::Stay::kVerb);
  for (std::uint32_t rank = 0; rank < cluster.ranks(); ++rank) {
    if (rank == GetParam()) continue;
    cluster.call(rank, wire::kKill);
    EXPECT_EQ(inits[rank]->expect(control::Kill::kVerb).text("reason"), "") << "the operator's own word, and the first";
  }
  finished.expect(control::Stay::kVerb);
  cluster.call(GetParam(), wire::kStatus);
  finished.expect(control::Bye::kVerb);
}

TEST_F(Fencing, FinishedRanksStayForEachOtherOnlyForALimitedTime) {
  start_all();
  std::this_thread::sleep_for(kShortLimit / 4);
  for (const auto& init : inits) init->say(control::Exited::kVerb, {{"code", "0"}, {"signal", "0"}, {"message", ""}});
  const auto until = std::chrono::steady_clock::now() + 4 * kShortLimit;
  for (const auto& init : inits) {
    std::string verb(control::Stay::kVerb);
    while (verb == control::Stay::kVerb && std::chrono::steady_clock::now() < until) verb = init->next().verb;
    EXPECT_EQ(verb, control::Bye::kVerb);
  }
}

TEST_F(Fencing, FailedRankOrOneWithAnOperatorEndsAtOnce) {
  start_all();
  cluster.call(0, wire::kStatus);
  inits[0]->say(control::Exited::kVerb, {{"code", "0"}, {"signal", "0"}, {"message", ""}});
  inits[0]->expect(control::Bye::kVerb);
  std::this_thread::sleep_for(kShortLimit / 4);
  inits[1]->say(control::Exited::kVerb, {{"code", "3"}, {"signal", "0"}, {"message", ""}});
  inits[1]->expect(control::Bye::kVerb);
}

// The request of an operator that doesn't hear rank 2: is the rank lost, or the operator's own network?
TEST_F(Fencing, ReportsToTheOperatorWhichRanksARankHears) {
  start_all();
  auto heard_by_rank_0 = [&] {
    const auto answer =
        cluster.call(0, fencing::kHears,
                     {{fencing::kPods, {cluster.pod(2), cluster.pod(1), cluster.pod(2), "job-r7-g1", 5, nullptr}}});
    EXPECT_EQ(answer.header.at(fencing::kHeard).size() + answer.header.at(fencing::kUnheard).size(), 2u)
        << "each once, and no stranger: " << answer.header.dump();
    return answer.header;
  };
  const std::string two = cluster.pod(2);
  EXPECT_TRUE(std::ranges::contains(heard_by_rank_0().at(fencing::kHeard), nlohmann::json(two)));
  cluster.sidecars[2].signal(SIGKILL);
  cluster.sidecars[2].wait(10s);
  EXPECT_TRUE(std::ranges::contains(heard_by_rank_0().at(fencing::kUnheard), nlohmann::json(two)));
  cluster.call(1, wire::kStatus);
  const auto none = cluster.call(0, fencing::kHears, {{fencing::kPods, nlohmann::json::array()}});
  EXPECT_TRUE(none.header.at(fencing::kHeard).empty() && none.header.at(fencing::kUnheard).empty());
  EXPECT_TRUE(cluster.call(0, fencing::kHears, {{fencing::kPods, "all"}}).header.at(fencing::kHeard).empty());
  net::Link peer(cluster.identity(cluster.pod(1)), {cluster.address(0), cluster.pod(0)});
  const auto refused = peer.call(fencing::kHears, {{fencing::kPods, {two}}}, 5s);
  ASSERT_FALSE(refused) << "only the operator";
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
}

TEST_F(Fencing, RefusesReportsToAStranger) {
  start_all();
  net::Link link(cluster.identity("job-r7-g1"), {cluster.address(0), cluster.pod(0)});
  const auto answer = link.call(fencing::kAlive, nlohmann::json::object(), 5s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kRefused);
}

}  // namespace
}  // namespace bsp::test
