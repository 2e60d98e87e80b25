// A program's changes to the files of its container are present after a move, or its rank stays with a reason.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "tests/integration/checkpoint_harness.h"

namespace bsp::test {
namespace {

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    ASSERT_NE(test_image(&why), "") << why;
    const CommandResult made = podman({"volume", "create", volume_});
    ASSERT_EQ(made.status, 0) << made.output;
  }
  void TearDown() override { podman({"volume", "rm", "-f", volume_}); }

  // With a world-writable /shared and a group that the program may give its files to.
  [[nodiscard]] PodOptions options(const std::vector<std::string>& command = {}) const {
    const bool small = command.size() > 1 && command[1] == "too-much";
    return {.command = command,
            .user = user_,
            .run_size = small ? "32m" : "128m",
            .env = {{"BSP_POD_VOLUMES", "/tmp"}},
            .more = {"--workdir", "/work", "--group-add", "2222", "-v", volume_ + ":/shared"}};
  }

  std::string user_ = "1000:1000";
  std::string volume_ = "bsp-checkpoint-test-" + std::to_string(::getpid());
};

class FilesMove : public Files, public ::testing::WithParamInterface<std::string> {};

TEST_P(FilesMove, ArePresentAfterTwoMoves) {
  if (GetParam() == "root") user_ = "0";
  move_twice(options({"/files", GetParam()}), options());
}

INSTANTIATE_TEST_SUITE_P(Groups, FilesMove,
                         ::testing::Values("closed", "opened", "mapped", "tree", "image", "large", "root"),
                         [](const auto& tested) { return tested.param; });

struct Held {
  std::string name;
  std::string reason;
};
void PrintTo(const Held& held, std::ostream* out) { *out << held.name; }
class UnmovableFile : public Files, public ::testing::WithParamInterface<Held> {};

TEST_P(UnmovableFile, IsReportedWithItsRemedyAndTheProgramContinues) {
  stay_for(GetParam().reason, options({"/files", GetParam().name}), options());
}

INSTANTIATE_TEST_SUITE_P(
    Groups, UnmovableFile,
    ::testing::Values(
        Held{"unreadable",
             "/work/unreadable, which the program has written in its pod, can't be moved: the "
             "program's user can't read it; make it readable, or write it to a volume"},
        Held{"sealed", "/work/sealed, is open with access that the file's mode no longer permits; change"},
        Held{"linked", "/work/first (deleted), is a file whose name was removed while another link to it remains"},
        Held{"unenterable", "the working directory, /work/shut, is one that the program's user may not read and enter"},
        Held{"unlistable", "the working directory, /work/shut, is one that the program's user may not read and enter"},
        Held{"too-much",
             "/work/too-much, which the program has written in its pod, can't be moved: "
             "the program has written 40.0 MiB there, which with "}),
    [](const auto& tested) { return tested.param.name == "too-much" ? "too_much" : tested.param.name; });

}  // namespace
}  // namespace bsp::test
