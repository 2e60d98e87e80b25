// Several ranks in a pod: what they share, and what they must not.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <format>
#include <fstream>
#include <string>
#include <vector>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

// The mappings of MPI's shared segments in a process, by name.
std::vector<std::string> segments_of(pid_t pid) {
  std::vector<std::string> found;
  std::ifstream maps(std::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);)
    if (const auto at = line.find("/dev/shm/sm_segment."); at != std::string::npos) found.push_back(line.substr(at));
  return found;
}

// What a rank shares, it shares until the epoch closes: nothing is left that a dump would meet, and no file.
TEST(Shim, RanksOfAPodShareMemoryWhileAnEpochIsOpen) {
  constexpr std::uint32_t kSeats = 2;
  Job job({.ranks = 4, .seats = kSeats, .program = "shim_halo", .arguments = {kMany}, .environment = {}});
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  std::vector<std::string> before;
  for (int epoch = 0; epoch < 4; ++epoch) {
    std::vector<std::string> names;
    for (Process& program : job.programs) {
      const auto segments = segments_of(program.pid());
      EXPECT_EQ(segments.size(), kSeats) << "its own and its neighbour's";
      names.insert(names.end(), segments.begin(), segments.end());
    }
    ASSERT_EQ(job.gate(), Job::Gate::kStopped) << job.reasons();
    for (Process& program : job.programs) EXPECT_TRUE(segments_of(program.pid()).empty());
    for (const std::string& name : names) EXPECT_FALSE(std::filesystem::exists(name)) << name;
    job.next_epoch();
    ASSERT_TRUE(job.reach(job.completed() + 2));
  }
  job.finish_ok();
}

// As in containers of a pod, each of which numbers its processes from 1. Open MPI compares PIDs to recognise its own segment.
TEST(Shim, RanksOfAPodMayHaveTheSamePid) {
  Job job({.ranks = 4,
           .seats = 4,
           .program = "shim_p2p",
           .arguments = {"100"},
           .environment = {},
           .wrapper = {"/usr/bin/unshare", "--pid", "--fork", "--kill-child"}});
  job.expect_ok();
}

// Each has a cgroup of its own, so that yielding alone doesn't give its core to the others.
TEST(Shim, RanksSleepInMpiWhileTheyWaitIfTheyAreToYield) {
  Job job({.ranks = 2,
           .seats = 2,
           .program = "shim_idle",
           .arguments = {},
           .environment = {"OMPI_MCA_mpi_yield_when_idle=1"}});
  job.expect_ok();
}

const std::vector<std::string> kUndecided = {"/usr/bin/env", "-u", "OMPI_MCA_mpi_yield_when_idle"};

TEST(Shim, RanksOfAPodYieldWhereTheNodeHasFewerCpus) {
  const auto cpus = static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  if (cpus > 16) GTEST_SKIP() << "it would need " << cpus + 1 << " ranks";
  const std::uint32_t ranks = std::max(cpus + 1, 2u);
  Job job({.ranks = ranks,
           .seats = ranks,
           .program = "shim_idle",
           .arguments = {},
           .environment = {},
           .wrapper = kUndecided});
  job.expect_ok();
}

TEST(Shim, RanksOfAPodDontYieldWhereEachMayHaveACpu) {
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "this machine has one CPU";
  Job job({.ranks = 2,
           .seats = 2,
           .program = "shim_idle",
           .arguments = {"awake"},
           .environment = {},
           .wrapper = kUndecided});
  job.expect_ok();
}

// The program may set what it likes: reading another process by its PID would read a stranger's in a container.
TEST(Shim, NothingIsReadByPid) {
  Job job({.ranks = 2,
           .seats = 2,
           .program = "shim_p2p",
           .arguments = {kMany},
           .environment = {"OMPI_MCA_smsc=cma", "OMPI_MCA_smsc_base_verbose=100"}});
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  EXPECT_FALSE(job.stderr_of(0).contains("component cma")) << job.stderr_of(0);
  job.finish_ok();
}

}  // namespace
}  // namespace bsp::test
