// Many consecutive MPI epochs with the same sidecar processes and the same programs: real Open MPI on real PMIx
// servers, on loopback. Each epoch's results are correct, and neither descriptors nor memory grow.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/integration/relay/fake_init.h"
#include "tests/mpi/epochs/cluster.h"

namespace bsp::test {
namespace {

using namespace std::chrono_literals;

struct Line {
  int epoch = -1;
  long sum = 0;
  long open_us = 0;
  long close_us = 0;
  int fds = 0;
  int shared = 0;
};

Line parse(const std::string& text) {
  Line line;
  if (std::sscanf(text.c_str(), "epoch %d sum %ld open_us %ld close_us %ld fds %d shared %d", &line.epoch, &line.sum,
                  &line.open_us, &line.close_us, &line.fds, &line.shared) != 6)
    return {};
  return line;
}

// Ranks of one pod share memory, all others use TCP.
Process start_rank(const Cluster& cluster, std::uint32_t rank, int epochs, const char* hold = nullptr, uid_t uid = 0) {
  std::vector<std::string> command{BSP_BINARY_DIR "/bin/epochs_rank", cluster.run_dir(rank), std::to_string(epochs)};
  if (hold) command.emplace_back(hold);
  return Process(std::move(command),
                 {"OMPI_MCA_btl=sm,tcp,self", "OMPI_MCA_smsc=^cma", "OMPI_MCA_btl_tcp_if_include=lo",
                  "OMPI_MCA_mpi_yield_when_idle=1"},  // more ranks than cores
                 cluster.run_dir(rank) + ".program.log", uid);
}

struct Case {
  std::uint32_t ranks;
  int epochs;
  std::uint32_t seats = 1;  // ranks of a pod
};

class Epochs : public testing::TestWithParam<Case> {};

TEST_P(Epochs, GiveCorrectResultsWithoutGrowth) {
  const auto [ranks, epochs, seats] = GetParam();
  Cluster cluster(ranks, seats);
  std::vector<Process> programs;
  for (std::uint32_t pod = 0; pod < cluster.pods(); ++pod) cluster.start_sidecar(pod);
  for (std::uint32_t r = 0; r < ranks; ++r) programs.push_back(start_rank(cluster, r, epochs));

  std::vector<int> program_fds(ranks), sidecar_fds(ranks);
  std::vector<long> sidecar_kib(ranks);
  const int settled = 4;  // the first epochs fill caches and establish connections
  double open_us = 0, close_us = 0;
  for (int e = 0; e < epochs; ++e) {
    cluster.prepare(static_cast<std::uint64_t>(e));
    cluster.open(static_cast<std::uint64_t>(e));
    for (std::uint32_t r = 0; r < ranks; ++r) {
      Line line = parse(programs[r].read_line(60s));
      ASSERT_EQ(line.epoch, e) << "rank " << r << "\n" << cluster.log(r);
      long once = ranks * (ranks + 1) / 2 + static_cast<long>(ranks) * e;
      EXPECT_EQ(line.sum, 10 * once);
      // Each rank has a segment, and those of its pod's others.
      const auto local = static_cast<int>(cluster.ranks_of(cluster.pod_of(r)).size());
      EXPECT_EQ(line.shared, local > 1 ? local : 0) << "rank " << r << ", epoch " << e;
      if (e == settled) {
        program_fds[r] = line.fds;
        sidecar_fds[r] = cluster.sidecars[cluster.pod_of(r)].open_descriptors();
        sidecar_kib[r] = cluster.sidecars[cluster.pod_of(r)].resident_kib();
      }
      EXPECT_TRUE(e <= settled || line.fds == program_fds[r]) << line.fds << " descriptors";
      open_us += static_cast<double>(line.open_us);
      close_us += static_cast<double>(line.close_us);
    }
  }
  double n = static_cast<double>(ranks) * epochs;
  std::printf("%u ranks: open %.1f ms, close %.1f ms; sidecar of rank 0: %ld KiB after %d epochs, %ld after %d\n",
              ranks, open_us / n / 1e3, close_us / n / 1e3, sidecar_kib[0], settled, cluster.sidecars[0].resident_kib(),
              epochs);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    EXPECT_EQ(programs[r].wait(30s), 0);
    // One connection may be in progress or just closed.
    EXPECT_LE(cluster.sidecars[cluster.pod_of(r)].open_descriptors(), sidecar_fds[r] + 2);
    EXPECT_LE(cluster.sidecars[cluster.pod_of(r)].resident_kib(), sidecar_kib[r] + 1024);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Epochs,
                         testing::Values(Case{2, 40}, Case{4, 20}, Case{8, 8}, Case{2, 24, 2}, Case{4, 24, 2},
                                         Case{4, 24, 4}, Case{7, 12, 3}),
                         [](const auto& tested) {
                           const Case& c = tested.param;
                           return std::format("{}ranks{}", c.ranks, c.seats > 1 ? std::format("in{}s", c.seats) : "");
                         });

// A sidecar is killed while its rank computes in an open epoch, and restarted: the program continues, closes its
// session without its PMIx server, and opens the next epoch with the new one.
TEST(Epochs, SurviveASidecarKilledInAnOpenEpoch) {
  constexpr std::uint32_t kRanks = 3;
  Cluster cluster(kRanks);
  std::vector<Process> programs;
  for (std::uint32_t r = 0; r < kRanks; ++r) cluster.start_sidecar(r);
  for (std::uint32_t r = 0; r < kRanks; ++r) programs.push_back(start_rank(cluster, r, 3, "hold"));
  for (int e = 0; e < 3; ++e) {
    cluster.prepare(static_cast<std::uint64_t>(e));
    cluster.open(static_cast<std::uint64_t>(e));
    for (std::uint32_t r = 0; r < kRanks; ++r)
      ASSERT_EQ(programs[r].read_line(60s), std::format("holding {}", e)) << cluster.log(r);
    if (e == 1) {
      // Rank 0's is the root of the collectives, rank 1's a member.
      for (std::uint32_t victim : {0u, 1u}) {
        cluster.sidecars[victim].signal(SIGKILL);
        cluster.sidecars[victim].wait(10s);
        cluster.start_sidecar(victim);
      }
    }
    for (std::uint32_t r = 0; r < kRanks; ++r) std::ofstream(std::format("{}/go.{}", cluster.run_dir(r), e)) << "go";
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      Line line = parse(programs[r].read_line(60s));
      ASSERT_EQ(line.epoch, e) << "rank " << r << "\n" << cluster.log(r) << programs[r].wait(1s);
      std::printf("rank %u closes epoch %d in %.1f ms\n", r, e, static_cast<double>(line.close_us) / 1e3);
    }
  }
  for (std::uint32_t r = 0; r < kRanks; ++r) EXPECT_EQ(programs[r].wait(30s), 0);
}

// Epoch 0 is open, but the program has not reached MPI_Init when its sidecar is killed: it finds a new descriptor.
TEST(Epochs, SurviveASidecarKilledBeforeMpiInit) {
  Cluster cluster(2);
  for (std::uint32_t r : {0u, 1u}) cluster.start_sidecar(r);
  cluster.prepare(0);
  cluster.open(0);
  cluster.sidecars[1].signal(SIGKILL);
  cluster.sidecars[1].wait(10s);
  std::filesystem::rename(cluster.run_dir(1) + "/epoch", cluster.run_dir(1) + "/epoch.old");
  cluster.start_sidecar(1);
  FakeInit init(cluster.run_dir(1), control::ProgramState::kRunning);  // the descriptor needs the program's uid
  std::vector<Process> programs;
  for (std::uint32_t r : {0u, 1u}) programs.push_back(start_rank(cluster, r, 1));
  for (std::uint32_t r : {0u, 1u}) ASSERT_EQ(parse(programs[r].read_line(60s)).epoch, 0) << cluster.log(r);
}

// The program has its own uid, which the sidecar learns from bsp-init: neither needs the other's permissions.
TEST(Epochs, AllowAProgramWithAnotherUid) {
  constexpr uid_t kUnprivileged = 65534;
  Cluster cluster(2);
  std::vector<FakeInit> inits;
  std::vector<Process> programs;
  for (std::uint32_t r : {0u, 1u}) {
    cluster.start_sidecar(r);
    inits.emplace_back(cluster.run_dir(r), control::ProgramState::kRunning, kUnprivileged);
    programs.push_back(start_rank(cluster, r, 2, nullptr, kUnprivileged));
  }
  for (std::uint32_t r : {0u, 1u}) {
    bool connected = false;  // the hello was received
    for (int i = 0; i < 1000 && !connected; ++i)
      connected = cluster.call(r, wire::kStatus).header["init_connected"].get<bool>();
    ASSERT_TRUE(connected);
  }
  for (int e = 0; e < 2; ++e) {
    cluster.prepare(static_cast<std::uint64_t>(e));
    cluster.open(static_cast<std::uint64_t>(e));
    for (std::uint32_t r : {0u, 1u}) ASSERT_EQ(parse(programs[r].read_line(60s)).epoch, e) << cluster.log(r);
  }
  for (std::uint32_t r : {0u, 1u}) EXPECT_EQ(programs[r].wait(30s), 0);
}

// A restarted sidecar may hear from the operator before bsp-init has connected again, and doesn't know the program's
// user then: an epoch opened for another would refuse the program.
TEST(Epochs, OpenOnlyOnceTheProgramsUserIsKnown) {
  constexpr uid_t kUnprivileged = 65534;
  Cluster cluster(2);
  cluster.without_init = false;
  for (std::uint32_t r : {0u, 1u}) cluster.start_sidecar(r);
  cluster.prepare(0);
  for (std::uint32_t r : {0u, 1u}) {
    const auto refused = cluster.try_call(r, wire::kOpenEpoch, {{"epoch", 0}});
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().retryable) << refused.error().message;
    EXPECT_FALSE(std::filesystem::exists(cluster.run_dir(r) + "/epoch"));
  }
  std::vector<FakeInit> inits;
  std::vector<Process> programs;
  for (std::uint32_t r : {0u, 1u}) {
    inits.emplace_back(cluster.run_dir(r), control::ProgramState::kRunning, kUnprivileged);
    programs.push_back(start_rank(cluster, r, 1, nullptr, kUnprivileged));
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (!cluster.try_call(r, wire::kOpenEpoch, {{"epoch", 0}}) && std::chrono::steady_clock::now() < deadline)
      ::poll(nullptr, 0, 5);
  }
  for (std::uint32_t r : {0u, 1u}) ASSERT_EQ(parse(programs[r].read_line(60s)).epoch, 0) << cluster.log(r);
  for (std::uint32_t r : {0u, 1u}) EXPECT_EQ(programs[r].wait(30s), 0);
}

// Its successor would take an older epoch for the open one, and might continue what is stopped there.
TEST(Epochs, OpenOnlyOnceTheStateIsSaved) {
  Cluster cluster(2);
  for (std::uint32_t r : {0u, 1u}) cluster.start_sidecar(r);
  cluster.prepare(0);
  // No file can take this place.
  const std::string state = cluster.run_dir(0) + "/sidecar/state";
  const auto obstruct = [&](const std::string& in_place) {
    std::filesystem::remove_all(in_place);
    std::filesystem::create_directories(in_place + "/obstacle");
  };
  const auto expect_refused = [](const Result<net::Answer>& answer) {
    ASSERT_FALSE(answer);
    EXPECT_TRUE(answer.error().retryable && answer.error().message.contains("the sidecar can't save its state"))
        << answer.error().message;
  };
  obstruct(state);
  FakeInit init(cluster.run_dir(0), control::ProgramState::kStopped);
  for (int attempt = 0; attempt < 2; ++attempt) expect_refused(cluster.try_call(0, wire::kOpenEpoch, {{"epoch", 0}}));
  expect_refused(cluster.try_call(0, wire::kPrepareEpoch, wire::EpochPlan(cluster.plan(1))));
  std::filesystem::remove_all(state);
  cluster.prepare(1);
  cluster.open(1);
  EXPECT_TRUE(std::filesystem::is_regular_file(state));
}

// A rank's program never comes: ranks that wait for it get an error once its sidecar reports that it has ended.
TEST(Epochs, FailAFenceWithADeadMember) {
  Cluster cluster(2);
  for (std::uint32_t r : {0u, 1u}) cluster.start_sidecar(r);
  cluster.prepare(0);
  cluster.open(0);
  Process alone = start_rank(cluster, 0, 1);
  cluster.sidecars[1].signal(SIGKILL);
  cluster.sidecars[1].wait(10s);
  int status = alone.wait(40s);
  ASSERT_NE(status, -1) << "it hangs";
  EXPECT_NE(status, 0) << "it cannot have opened an epoch alone";
}

}  // namespace
}  // namespace bsp::test
