// What the program changes after MPI_Init, and MPI's next session would fail for, or reset.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/mpi/shim/directory.h"
#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

class FirstMoves : public testing::TestWithParam<const char*> {};

// Each epoch finds an empty directory for temporary files, as in another pod.
TEST_P(FirstMoves, LeaveTheProgramAsItIs) {
  ::umask(022);
  const Directory directory;
  const std::string what = GetParam();
  std::vector<std::string> environment;
  if (what != "tmpdir") environment.push_back("TMPDIR=" + directory.path().string());
  const std::uint32_t seats = what == "files" ? 2 : 1;  // ranks of a pod share memory in files
  Job job({.ranks = 2,
           .seats = seats,
           .program = "shim_first_moves",
           .arguments = {"1000000", what},
           .environment = environment});
  ASSERT_TRUE(job.reach(3));
  for (int epoch = 1; epoch < 4; ++epoch) {
    ASSERT_EQ(job.gate(), Job::Gate::kStopped) << job.reasons() << job.stderr_of(0);
    for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
      std::filesystem::remove_all(entry.path());
    job.next_epoch();
    ASSERT_TRUE(job.reach(job.completed() + 2)) << job.stderr_of(0) << job.stderr_of(1);
  }
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, FirstMoves,
                         testing::Values("umask", "tmpdir", "processes", "files", "death", "dumpable", "clearenv"),
                         [](const auto& tested) { return std::string(tested.param); });

// Limits that can't be raised again: no epoch could open.
struct Lacking {
  const char* what;
  const char* reason;
};
class LowLimit : public testing::TestWithParam<Lacking> {};

TEST_P(LowLimit, PostponesTheGateByName) {
  ::umask(022);
  Job job({.ranks = 2, .program = "shim_first_moves", .arguments = {"1000000", GetParam().what}, .environment = {}});
  ASSERT_TRUE(job.reach(3));
  ASSERT_EQ(job.gate(), Job::Gate::kPostponed) << job.stderr_of(0);
  EXPECT_TRUE(job.reasons().contains(GetParam().reason)) << job.reasons();
  job.drop_gate(1);
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(
    Shim, LowLimit,
    testing::Values(Lacking{"no processes",
                            "no thread can be started (Resource temporarily unavailable; RLIMIT_NPROC is 1)"},
                    Lacking{"locked", "mlockall(MCL_FUTURE) would lock its stack, and RLIMIT_MEMLOCK is 65536)"},
                    Lacking{"no files", "a hard RLIMIT_FSIZE of 4096 bytes, too few for MPI's files"}),
    [](const auto& tested) {
      std::string name = tested.param.what;
      std::ranges::replace(name, ' ', '_');
      return name;
    });

// The machine's clock is set while the program waits for its first epoch, and at each later reading. How long an epoch took to open isn't
// read from it either.
TEST(Shim, AClockThatIsSetEndsNoWait) {
  Job job({.ranks = 2,
           .program = "shim_set_clock",
           .arguments = {"1000000"},
           .environment = {},
           .first_epoch_after = std::chrono::milliseconds(500)});
  job.go_through(3);
  const std::uint64_t opened_in = job.status(0)["open_ns"].get<std::uint64_t>();
  EXPECT_LT(opened_in, 600'000'000'000u);
  job.finish_ok();
}

// TMPDIR is of the image, perhaps, and isn't there.
TEST(Shim, MpiFindsADirectoryOfItsOwn) {
  Job job({.ranks = 2, .program = "shim_cxx", .arguments = {"1000000"}, .environment = {"TMPDIR=/proc/nowhere/dir"}});
  job.go_through(3);
  job.finish_ok();
}

}  // namespace
}  // namespace bsp::test
