// Hundreds of epoch changes, or thousands: what one leaves behind by itself, in the program's process and in the sidecar's, has a limit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <fstream>
#include <string>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

namespace fs = std::filesystem;

struct Held {
  double resident = 0;  // bytes
  double mappings = 0, descriptors = 0;

  static Held by(const Process& process) {
    std::ifstream maps("/proc/" + std::to_string(process.pid()) + "/maps");
    return {.resident = 1024.0 * static_cast<double>(process.resident_kib()),
            .mappings = static_cast<double>(
                std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n')),
            .descriptors = static_cast<double>(process.open_descriptors())};
  }
};

// Files of MPI and PMIx: segments in shared memory, and the directories of namespaces.
std::size_t files_of_epochs() {
  std::size_t count = 0;
  for (const fs::path& directory : {fs::path("/dev/shm"), fs::temp_directory_path()})
    for (const auto& entry : fs::directory_iterator(directory)) {
      const std::string name = entry.path().filename().string();
      count += name.starts_with("sm_segment") || name.starts_with("ompi.") || name.starts_with("pmix") ||
               name.starts_with("prte");
    }
  return count;
}

unsigned number_in(const char* name, unsigned usual) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<unsigned>(std::strtoul(text, nullptr, 10)) : usual;
}

// BSP_SEED chooses the program and whether its ranks share memory. An epoch's first changes load what later ones use again.
TEST(Epochs, LeaveNothingBehind) {
  const unsigned seed = number_in("BSP_SEED", 20261128);
  const unsigned epochs = number_in("BSP_EPOCHS", 150);
  constexpr unsigned kWarm = 30;
  const char* const programs[] = {"shim_cxx", "shim_many_objects", "shim_windows", "shim_p2p"};
  const std::string program = programs[seed % std::size(programs)];
  const std::uint32_t seats = seed / std::size(programs) % 2 + 1;
  SCOPED_TRACE(std::format("BSP_SEED={} BSP_EPOCHS={}: {}, {} ranks a pod", seed, epochs, program, seats));
  Job job({.ranks = 2, .seats = seats, .program = program, .arguments = {"100000000"}, .environment = {}});
  job.go_through(kWarm, 1);
  const std::size_t files = files_of_epochs();
  const Process& of_program = job.programs[0];
  const Process& sidecar = job.cluster.sidecars[0];
  const Held program_before = Held::by(of_program), sidecar_before = Held::by(sidecar);
  job.go_through(static_cast<int>(epochs) + 1, 1);
  ASSERT_FALSE(HasFailure());
  const auto expect_bounded = [&](const char* who, const Held& before, const Held& now, double bytes) {
    const double changes = epochs;
    std::printf("%s: %.0f bytes, %.3f mappings, %.3f descriptors an epoch\n", who,
                (now.resident - before.resident) / changes, (now.mappings - before.mappings) / changes,
                (now.descriptors - before.descriptors) / changes);
    EXPECT_LT(now.resident - before.resident, changes * bytes + (4 << 20)) << who;
    EXPECT_LT(now.mappings - before.mappings, 0.02 * changes + 10) << who;
    EXPECT_LE(now.descriptors, before.descriptors) << who;
  };
  // Open MPI loses 25 to 60 KiB in each session.
  expect_bounded("program", program_before, Held::by(of_program), 64 << 10);
  expect_bounded("sidecar", sidecar_before, Held::by(sidecar), 12 << 10);
  EXPECT_LE(files_of_epochs(), files) << "in /dev/shm and the directory of temporary files";
  job.finish_ok();
}

// Communicators' lists of ranks, of which the program makes ever new ones.
TEST(Epochs, ForgetListsOfRanks) {
  Job job({.ranks = 6, .program = "shim_passing_lists", .arguments = {"100000000"}, .environment = {}});
  job.go_through(2);
  for (int phase = 0; phase < 3; ++phase) {
    ASSERT_TRUE(job.turn()) << job.stderr_of(0);
    job.programs[0].signal(SIGUSR2);
    ASSERT_TRUE(job.reach(job.completed() + 4)) << job.stderr_of(0);
  }
  job.finish_ok();
}

}  // namespace
}  // namespace bsp::test
