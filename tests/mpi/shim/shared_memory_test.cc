// Memory that ranks of a pod share through MPI, when one of them moves away.
#include <gtest/gtest.h>
#include <signal.h>

#include <format>
#include <nlohmann/json.hpp>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

constexpr const char* kLong = "1000000";  // supersteps

class SharedMemory : public testing::Test {
 protected:
  void start(std::uint32_t ranks, std::uint32_t seats, const std::string& thing) {
    job_ = std::make_unique<Job>(Job::Options{.ranks = ranks,
                                              .seats = seats,
                                              .program = "shim_shared_memory",
                                              .arguments = {kLong, thing},
                                              .environment = {}});
    ASSERT_TRUE(job_->reach(3)) << job_->stderr_of(0);
  }
  std::uint32_t a_pod(const std::vector<std::uint32_t>& seats) {
    const std::uint32_t pod = job_->cluster.add_pod(seats);
    job_->cluster.start_sidecar(pod);
    return pod;
  }
  void move(const std::vector<std::uint32_t>& ranks, std::uint32_t pod) {
    job_->prepare_move(ranks, pod);
    ASSERT_EQ(job_->gate(), Job::Gate::kStopped) << job_->reasons();
    job_->next_epoch();
    ASSERT_TRUE(job_->reach(job_->completed() + 3)) << job_->stderr_of(0);
  }
  void expect_together(const std::vector<std::uint32_t>& ranks, std::uint32_t pod) {
    job_->prepare_move(ranks, pod);
    ASSERT_EQ(job_->gate(2), Job::Gate::kPostponed);
    EXPECT_TRUE(job_->reasons().contains("whose ranks share memory (MPI_COMM_TYPE_SHARED) and would part"))
        << job_->reasons();
    job_->drop_gate(0);
    for (const std::uint32_t rank : ranks) job_->cluster.plan_move(rank, job_->cluster.pod_of(rank));
  }
  void expect_sizes(const std::vector<std::string>& of_ranks) {
    job_->programs[0].signal(SIGUSR1);
    for (std::uint32_t r = 0; r < of_ranks.size(); ++r) {
      EXPECT_EQ(job_->wait(r), 0) << job_->stderr_of(r);
      EXPECT_EQ(job_->last_line(r), "ok shared_memory" + of_ranks[r]) << "rank " << r;
    }
  }
  std::unique_ptr<Job> job_;
};

TEST_F(SharedMemory, IsWhatTheEpochHas) {
  ASSERT_NO_FATAL_FAILURE(start(4, 4, "nothing"));
  const std::uint32_t other = a_pod({1, 3});
  ASSERT_NO_FATAL_FAILURE(move({1}, other));
  ASSERT_NO_FATAL_FAILURE(move({3}, other));
  ASSERT_NO_FATAL_FAILURE(move({1, 3}, 0));
  expect_sizes({" 4 3 2 4", " 4 1 2 4", " 4 3 2 4", " 4 3 2 4"});
}

TEST_F(SharedMemory, IsWhatTheEpochHasInPodsOfTwo) {
  ASSERT_NO_FATAL_FAILURE(start(4, 2, "nothing"));
  ASSERT_NO_FATAL_FAILURE(move({3}, a_pod({3})));
  expect_sizes({" 2", " 2", " 2 1", " 2 1"});
}

// They move together, and others as they like; freed, it holds nobody.
TEST_F(SharedMemory, ThatACommunicatorPromisesHoldsRanksTogether) {
  ASSERT_NO_FATAL_FAILURE(start(4, 2, "comm"));
  const std::uint32_t one = a_pod({1}), both = a_pod({0, 1});
  ASSERT_NO_FATAL_FAILURE(expect_together({1}, one));
  ASSERT_NO_FATAL_FAILURE(expect_together({0}, both));
  ASSERT_NO_FATAL_FAILURE(move({0, 1}, both));
  ASSERT_NO_FATAL_FAILURE(expect_together({0}, 0));
  job_->programs[0].signal(SIGUSR2);
  ASSERT_TRUE(job_->reach(job_->completed() + 3));
  ASSERT_NO_FATAL_FAILURE(move({1}, one));
  expect_sizes({" 2 1", " 2 1", " 2", " 2"});
}

TEST_F(SharedMemory, ThatADerivedCommunicatorPromisesHoldsRanksTogether) {
  ASSERT_NO_FATAL_FAILURE(start(4, 4, "derived"));
  const std::uint32_t one = a_pod({2}), all = a_pod({0, 1, 2, 3});
  ASSERT_NO_FATAL_FAILURE(expect_together({2}, one));
  ASSERT_NO_FATAL_FAILURE(move({0, 1, 2, 3}, all));
  expect_sizes({" 4", " 4", " 4", " 4"});
}

// Nobody has asked MPI which ranks share memory, but the program goes by it.
TEST_F(SharedMemory, ThatAWindowOfTheWorldHadHoldsRanksTogether) {
  ASSERT_NO_FATAL_FAILURE(start(2, 2, "window"));
  ASSERT_NO_FATAL_FAILURE(expect_together({1}, a_pod({1})));
  ASSERT_NO_FATAL_FAILURE(move({1}, 0)) << "nobody parts";
  expect_sizes({" 2", " 2"});
}

// Without MPI: the copy that moves would be another memory.
TEST(OwnMemory, OfRanksOfOnePodPostponesEveryGate) {
  Job job({.ranks = 2, .seats = 2, .program = "shim_own_memory", .arguments = {kLong, "common"}, .environment = {}});
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  ASSERT_EQ(job.gate(2), Job::Gate::kPostponed) << job.stderr_of(0);
  EXPECT_TRUE(job.reasons().contains("/dev/shm/bsp-own-memory-")) << job.reasons();
  EXPECT_TRUE(job.reasons().contains("memory that another rank of this pod has mapped, too")) << job.reasons();
  job.drop_gate(0);
  job.finish_ok();
}

TEST(OwnMemory, OfOneRankHoldsNobody) {
  Job job({.ranks = 2, .seats = 2, .program = "shim_own_memory", .arguments = {kLong, "own"}, .environment = {}});
  job.go_through(2);
  job.finish_ok();
}

}  // namespace
}  // namespace bsp::test
