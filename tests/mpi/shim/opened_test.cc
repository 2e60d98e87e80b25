// Programs that take MPI's functions from libmpi's own handle, where a preloaded library isn't found first.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

class Opened : public testing::TestWithParam<const char*> {};

TEST_P(Opened, GoesThroughEpochs) {
  Job job({.ranks = 2,
           .program = GetParam(),
           .arguments = {"1000000", BSP_BINARY_DIR "/bin/libshim_plugin.so"},
           .environment = {}});
  job.go_through(4);
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, Opened, testing::Values("shim_opened", "shim_linked"),
                         [](const auto& tested) { return std::string(tested.param + 5); });

bool has_socket(const Process& process) {
  const std::filesystem::directory_iterator descriptors("/proc/" + std::to_string(process.pid()) + "/fd");
  return std::ranges::any_of(descriptors, [](const auto& descriptor) {
    return std::filesystem::read_symlink(descriptor.path()).string().starts_with("socket:");
  });
}

constexpr const char* kDeepPlugin = BSP_BINARY_DIR "/bin/libshim_deep_plugin.so";

class OpenedDeeply : public testing::TestWithParam<std::vector<std::string>> {};

// libmpi comes with the plug-in, whose calls lead there before the shim is asked for anything.
TEST_P(OpenedDeeply, GoesThroughEpochs) {
  std::vector<std::string> arguments{"1000000"};
  arguments.insert(arguments.end(), GetParam().begin(), GetParam().end());
  Job job({.ranks = 2,
           .program = "shim_deep",
           .arguments = arguments,
           .environment = {"LD_LIBRARY_PATH=" BSP_BINARY_DIR "/bin"}});
  for (int epoch = 0; epoch < 4; ++epoch) {
    ASSERT_TRUE(job.reach(job.completed() + 2)) << job.stderr_of(0);
    ASSERT_EQ(job.gate(), Job::Gate::kStopped) << job.reasons() << job.stderr_of(0);
    EXPECT_FALSE(has_socket(job.programs[0])) << "CRIU couldn't take it";
    job.next_epoch();
  }
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, OpenedDeeply,
                         testing::Values(std::vector<std::string>{kDeepPlugin, "now"},
                                         std::vector<std::string>{kDeepPlugin, "lazy"},
                                         std::vector<std::string>{kDeepPlugin, "lazy", "unasked"},
                                         std::vector<std::string>{"libshim_deep_plugin.so", "lazy"},
                                         std::vector<std::string>{"libshim_deep_plugin.so", "now"}));

// Nothing can be redirected before it runs. The results are those of single ranks, so the job must not succeed.
TEST(Shim, AConstructorThatPassesByIsRefused) {
  Job job({.ranks = 2,
           .program = "shim_deep",
           .arguments = {"3", kDeepPlugin, "now"},
           .environment = {"DEEP_PLUGIN_INITIALIZES=1"}});
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const int status = job.wait(rank);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
    EXPECT_TRUE(job.refusal_of(rank).contains("opened with RTLD_DEEPBIND")) << job.stderr_of(rank);
  }
}

}  // namespace
}  // namespace bsp::test
