// MPI files that stay open while epochs change.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/mpi/shim/directory.h"
#include "tests/mpi/shim/job.h"

namespace bsp::test::open_files {
namespace {

namespace fs = std::filesystem;

// Names of the files that aren't in both, or differ.
std::vector<std::string> differences(const Directory& a, const Directory& b) {
  std::vector<std::string> names;
  auto left = a.contents();
  for (auto& [name, content] : b.contents())
    if (auto found = left.find(name); found == left.end() || found->second != content)
      names.push_back(name);
    else
      left.erase(found);
  for (const auto& [name, content] : left) names.push_back(name);
  return names;
}

// Open MPI has two implementations of files, and one of them several of shared pointers.
struct Case {
  std::uint32_t ranks;
  const char* parameter;
  const char* value;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.value << " " << c.ranks; }

class Files : public testing::TestWithParam<Case> {};

std::vector<std::string> arguments(const Directory& directory, const std::string& how) {
  std::vector<std::string> all{"200", directory.path().string()};
  if (!how.empty()) all.push_back(how);
  return all;
}

// Runs the program with plain Open MPI and through epochs. Names the files that aren't the same in the end, byte for byte.
void go_through_epochs(std::uint32_t ranks, const std::string& setting, std::vector<std::string>& differing,
                       const std::string& how = "") {
  const Directory plain;
  const Directory moved;
  std::string command = setting + " " BSP_SOURCE_DIR "/tests/mpi/mpirun.sh " + std::to_string(ranks) +
                        " " BSP_BINARY_DIR "/bin/shim_files";
  for (const std::string& argument : arguments(plain, how)) command += " " + argument;
  ASSERT_EQ(std::system(command.c_str()), 0);

  Job job({.ranks = ranks, .program = "shim_files", .arguments = arguments(moved, how), .environment = {setting}});
  ASSERT_TRUE(job.reach(3));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(job.turn()) << job.stderr_of(0) << job.stderr_of(1);
    ASSERT_TRUE(job.reach(job.completed() + 2)) << job.stderr_of(0) << job.stderr_of(1);
  }
  job.expect_ok();
  EXPECT_EQ(job.epoch(), 4u);
  differing = differences(plain, moved);
}

TEST_P(Files, GoThroughEpochs) {
  std::vector<std::string> differing;
  go_through_epochs(GetParam().ranks, std::string("OMPI_MCA_") + GetParam().parameter + "=" + GetParam().value,
                    differing);
  EXPECT_THAT(differing, testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Shim, Files,
                         testing::Values(Case{2, "io", "ompio"}, Case{5, "io", "ompio"}, Case{2, "io", "romio341"},
                                         Case{3, "sharedfp", "lockedfile"}),
                         [](const auto& tested) { return tested.param.value + std::to_string(tested.param.ranks); });

TEST(Shim, FilesLeftOpenAreClosedByFinalize) {
  std::vector<std::string> differing;
  go_through_epochs(2, "OMPI_MCA_io=ompio", differing, "leave");
  EXPECT_THAT(differing, testing::IsEmpty());
  // ROMIO alone doesn't close them: it leaves the file that is to be deleted, and hidden ones with shared pointers.
  go_through_epochs(2, "OMPI_MCA_io=romio341", differing, "leave");
  EXPECT_THAT(differing, testing::Each(testing::AnyOf(testing::StartsWith("."), "passing")));
}

// The file system of one pod has lost the file.
TEST(Shim, FileThatIsGoneInTheNextEpochEndsTheRank) {
  const Directory directory;
  const std::vector<std::string> arguments{"1000000", directory.path().string()};
  Job job({.ranks = 2, .program = "shim_files", .arguments = arguments, .environment = {}});
  ASSERT_TRUE(job.reach(3));
  ASSERT_EQ(job.gate(), Job::Gate::kStopped) << job.reasons();
  const std::string path = directory.path() / "many-1-7";
  fs::remove(path);
  job.next_epoch();
  const int status = job.wait(1);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  const std::string message = job.stderr_of(1);
  EXPECT_TRUE(message.contains("MPI file " + path + " can't be opened again (MPI_ERR_NO_SUCH_FILE")) << message;
  EXPECT_TRUE(message.contains("keep it on a volume that the pods of all ranks mount")) << message;
}

// A shared pointer that the next epoch's Open MPI can't hold ends the rank before it is used, so nothing is overwritten.
class LostPointer : public testing::TestWithParam<const char*> {
 protected:
  LostPointer() {
    EXPECT_TRUE(job_.reach(3));
    EXPECT_TRUE(job_.turn()) << job_.stderr_of(0);
  }

  void expect_end() {
    bool told = false;  // by one of them at least: the other may be ended by its loss
    for (std::uint32_t r = 0; r < 2; ++r) {
      EXPECT_NE(job_.wait(r), 0);
      told = told || job_.stderr_of(r).contains("the shared pointer of MPI file " + path_ + " is lost");
    }
    EXPECT_TRUE(told) << job_.stderr_of(0) << job_.stderr_of(1);
    EXPECT_TRUE(directory_.contents()["log"].starts_with(kBefore));
  }

  static std::string write_log(const Directory& directory) {
    const std::string path = directory.path() / "log";
    std::ofstream(path) << kBefore;
    return path;
  }

  static constexpr const char* kBefore = "what is there before";
  Directory directory_;
  std::string path_ = write_log(directory_);
  Job job_{
      {.ranks = 2, .program = "shim_lost_pointer", .arguments = {"1000000", path_, GetParam()}, .environment = {}}};
};
using UsedLostPointer = LostPointer;
using LaterLostPointer = LostPointer;
using UnusedLostPointer = LostPointer;

TEST_P(UsedLostPointer, EndsTheRank) { expect_end(); }

TEST_P(LaterLostPointer, EndsTheRankBeforeItIsUsed) {
  ASSERT_TRUE(job_.reach(job_.completed() + 3)) << job_.stderr_of(0);
  job_.programs[0].signal(SIGUSR1);
  expect_end();
}

TEST_P(UnusedLostPointer, IsNoLoss) {
  ASSERT_TRUE(job_.reach(job_.completed() + 3)) << job_.stderr_of(0);
  job_.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, UsedLostPointer, testing::Values("used"));
INSTANTIATE_TEST_SUITE_P(Shim, LaterLostPointer, testing::Values("later"));
INSTANTIATE_TEST_SUITE_P(Shim, UnusedLostPointer, testing::Values("never", "view"));

// Files that can't be closed at a gate.
class BlockedFiles : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(BlockedFiles, AreNamed) {
  expect_postponed_until_released("shim_blocked_files", GetParam().first, GetParam().second);
}

constexpr const char* kUntold = "an MPI file whose shared pointer Open MPI can't tell: /tmp/bsp-shim-blocked-";
constexpr const char* kUnsaved = "an MPI file whose data couldn't be written to its storage: /tmp/bsp-shim-blocked-";
constexpr const char* kReplaced = "an MPI file that was removed, renamed or replaced: /tmp/bsp-shim-blocked-";
INSTANTIATE_TEST_SUITE_P(
    Shim, BlockedFiles,
    testing::Values(
        std::pair{"split", "an MPI file in a split collective (MPI_File_write_at_all_begin): /tmp/bsp-shim-blocked-"},
        std::pair{"untold", kUntold}, std::pair{"sequence_viewed", kUntold}, std::pair{"sequence_appended", kUntold},
        std::pair{"unsaved", kUnsaved}, std::pair{"unsaved_by_romio", kUnsaved},
        std::pair{"locked", "an MPI file with an fcntl lock of the program: /tmp/bsp-shim-blocked-"},
        std::pair{"locks_unread",
                  "an MPI file whose locks can't be read (Cannot allocate memory): /tmp/bsp-shim-blocked-"},
        std::pair{"descriptors", "no free file descriptor"}, std::pair{"removed", kReplaced},
        std::pair{"replaced", kReplaced},
        std::pair{"forbidden", "an MPI file open with access that its mode no longer permits: /tmp/bsp-shim-blocked-"},
        std::pair{"half_started", "a communicator, window or file that not all of its ranks have freed or closed"}),
    [](const auto& tested) { return std::string(tested.param.first); });

// Of files that aren't MPI's.
TEST(OpenFiles, KeepTheNumbersThatTellWhichTheyAre) {
  const Directory directory;
  Job job({.ranks = 2,
           .program = "shim_same_files",
           .arguments = {"1000000", directory.path().string()},
           .environment = {}});
  job.go_through(4);
  job.finish_ok();
}

}  // namespace
}  // namespace bsp::test::open_files
