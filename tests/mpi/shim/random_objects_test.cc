// Random sets of MPI objects that are alive together at random edges. The result is the same as with plain Open MPI.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <format>
#include <set>
#include <string_view>

#include "tests/mpi/shim/directory.h"
#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

int asked(const char* name, int usual) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : usual;
}

using Lines = std::multiset<std::string>;

// What the ranks print with plain Open MPI.
Lines without_gates(std::uint32_t ranks, const std::string& supersteps, const std::string& seed) {
  const Directory directory;
  const std::string command =
      std::format("RANDOM_OBJECTS_UNPARTITIONED=1 OMPI_MCA_mpi_yield_when_idle=1 " BSP_SOURCE_DIR
                  "/tests/mpi/mpirun.sh {} " BSP_BINARY_DIR "/bin/shim_random_objects {} {} {} 2>&1",
                  ranks, supersteps, seed, directory.path().string());
  Lines lines;
  std::FILE* out = ::popen(command.c_str(), "r");
  if (out == nullptr) return lines;
  for (char line[4096]; std::fgets(line, sizeof line, out) != nullptr;)
    if (!std::string_view(line).starts_with("superstep ")) lines.insert(line);
  EXPECT_EQ(::pclose(out), 0) << command;
  return lines;
}

void compare(int seed, int epochs) {
  const Directory directory;
  const std::string text = std::to_string(seed);
  const std::uint32_t ranks = 2 + static_cast<std::uint32_t>(seed) % 6;
  SCOPED_TRACE("seed " + text);
  Job job({.ranks = ranks,
           .program = "shim_random_objects",
           .arguments = {"1000000", text, directory.path().string()},
           .environment = {}});
  const auto errors = [&] {
    std::string all;
    for (std::uint32_t r = 0; r < ranks; ++r)
      all += std::format("rank {}, wait status {}\n{}", r, job.wait(r, std::chrono::milliseconds(0)), job.stderr_of(r));
    return all;
  };
  for (int i = 1; i < epochs; ++i) {
    ASSERT_NE(job.commit(), 0u) << errors();
    // Some objects postpone a gate for a while, such as a thread inside MPI.
    ASSERT_EQ(job.wait_for_gate(kForever), Job::Gate::kStopped) << job.reasons() << errors();
    job.next_epoch();
    ASSERT_TRUE(job.reach(job.completed() + 1)) << errors();
  }
  job.programs[0].signal(SIGUSR1);
  Lines moved;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    ASSERT_EQ(job.wait(r), 0) << errors();
    moved.insert(job.last_line(r) + "\n");
  }
  const std::string& line = *moved.begin();
  ASSERT_TRUE(line.starts_with("ok random objects ")) << line;
  const std::string supersteps = std::to_string(std::atoi(line.c_str() + std::string("ok random objects ").size()));
  EXPECT_EQ(moved, without_gates(ranks, supersteps, text));
}

class RandomObjects : public testing::TestWithParam<int> {};

TEST_P(RandomObjects, AreCarriedTogether) { compare(GetParam(), 12); }

INSTANTIATE_TEST_SUITE_P(Shim, RandomObjects, testing::Range(0, 6));

// With a seed that nobody has tried, or BSP_SEED: tests/soak runs it again and again.
TEST(Shim, RandomObjectsOfAnySeedAreCarried) { compare(asked("BSP_SEED", 6), asked("BSP_OBJECTS_EPOCHS", 12)); }

}  // namespace
}  // namespace bsp::test
