// How programs begin and end under libbspmpi.so: MPI_Abort, fatal errors, calls after MPI_Finalize, sessions without
// MPI_Init, and programs that are refused.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "crds/names.h"
#include "crds/refusal.h"
#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

using namespace std::chrono_literals;

void one_turn(Job& job) {
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  ASSERT_TRUE(job.turn()) << job.stderr_of(0);
}

TEST(Endings, ProgramContinuesAfterFinalize) {
  Job job(
      {.ranks = 2, .program = "shim_lifecycle", .arguments = {"100", "finalize"}, .environment = {}, .paced = true});
  one_turn(job);
  job.expect_ok();
}

TEST(Endings, SessionOutlivesFinalize) {
  Job job({.ranks = 3, .program = "shim_lifecycle", .arguments = {"100", "session"}, .environment = {}, .paced = true});
  one_turn(job);
  job.expect_ok();
}

TEST(Endings, ProgramExitsWithoutFinalize) {
  Job job({.ranks = 2, .program = "shim_lifecycle", .arguments = {"100", "exit"}, .environment = {}, .paced = true});
  one_turn(job);
  ASSERT_TRUE(job.reach(100)) << job.stderr_of(0);
  // No rank may be in MPI any more: there, a connection that closes without MPI_Finalize is an error.
  for (Process& program : job.programs) EXPECT_EQ(program.read_line(60s), "said before the end");
  for (Process& program : job.programs) program.signal(SIGUSR2);
  job.expect_ok();
}

// bsp-init sees only its own child stop: the program would stop for ever.
TEST(Endings, RankThatAShellStartedStays) {
  const std::string shell = std::filesystem::relative("/bin/sh", BSP_BINARY_DIR "/bin").string();
  Job job({.ranks = 2,
           .program = shell,
           .arguments = {"-c", BSP_BINARY_DIR "/bin/shim_allreduce 100; exit $?"},
           .environment = {std::string(names::kEnvInitPid) + "=" + std::to_string(getpid())},
           .paced = true});
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  ASSERT_EQ(job.gate(), Job::Gate::kPostponed) << job.stderr_of(0);
  EXPECT_TRUE(job.reasons().contains("a program that a shell or another process started")) << job.reasons();
  EXPECT_TRUE(job.status(0).value("blocked_for_good", false));
  job.drop_gate(0);
  job.expect_ok();
}

// CRIU would take the process for a dead one.
TEST(Endings, RankWhoseMainThreadHasEndedStays) {
  Job job({.ranks = 2, .program = "shim_without_main", .arguments = {"1000000"}, .environment = {}});
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  ASSERT_EQ(job.gate(), Job::Gate::kPostponed) << job.stderr_of(0);
  EXPECT_TRUE(job.reasons().contains("a main thread that has ended (pthread_exit)")) << job.reasons();
  EXPECT_TRUE(job.status(0).value("blocked_for_good", false));
  job.drop_gate(0);
  job.finish_ok();
}

// Nobody can take a Landlock ruleset off.
TEST(Endings, RankThatHasConfinedItselfStays) {
  Job job({.ranks = 2, .program = "shim_blocked", .arguments = {"5", "landlock"}, .environment = {}});
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  ASSERT_EQ(job.gate(), Job::Gate::kPostponed) << job.stderr_of(0);
  EXPECT_TRUE(job.reasons().contains("a Landlock ruleset (landlock_restrict_self)")) << job.reasons();
  EXPECT_TRUE(job.status(0).value("blocked_for_good", false));
  job.drop_gate(0);
  job.finish_ok();
}

// Its destructor calls MPI after main() has returned, when the shim's own objects may be gone.
TEST(Endings, LibraryEndsMpiInADestructor) {
  Job job({.ranks = 2, .program = "shim_outlasting", .arguments = {}, .environment = {}});
  one_turn(job);
  job.finish_ok();
}

TEST(Endings, AbortEndsTheRankWithItsCode) {
  Job job(
      {.ranks = 2, .program = "shim_lifecycle", .arguments = {"100", "abort", "42"}, .environment = {}, .paced = true});
  one_turn(job);
  const int status = job.wait(1);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
  EXPECT_TRUE(job.stderr_of(1).contains("rank 1: the program called MPI_Abort(42)")) << job.stderr_of(1);
  EXPECT_TRUE(job.refusal_of(1).contains(names::kAborted)) << "every attempt would end so";
  EXPECT_EQ(job.last_line(1), "said before the end");
}

// It may have lost a rank, of which the operator hears later.
TEST(Endings, AbortAfterAnErrorOfMpiIsNoVerdict) {
  Job job({.ranks = 2,
           .program = "shim_lifecycle",
           .arguments = {"100", "failed", "42"},
           .environment = {},
           .paced = true});
  one_turn(job);
  const int status = job.wait(1);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
  EXPECT_TRUE(job.stderr_of(1).contains("rank 1: the program called MPI_Abort(42)")) << job.stderr_of(1);
  EXPECT_EQ(job.refusal_of(1), "");
}

TEST(Endings, FatalErrorEndsTheRankAndIsReported) {
  Job job({.ranks = 2, .program = "shim_lifecycle", .arguments = {"100", "fatal"}, .environment = {}, .paced = true});
  one_turn(job);
  const int status = job.wait(1);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << status;
  EXPECT_TRUE(job.stderr_of(1).contains("MPI_ERR_RANK")) << job.stderr_of(1);
}

// A session isn't carried over, but the program finds its job.
TEST(Endings, ProgramUsesOnlySessions) {
  Job job({.ranks = 2, .program = "shim_sessions", .arguments = {"300"}, .environment = {}, .paced = true});
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  ASSERT_EQ(job.gate(), Job::Gate::kPostponed) << job.stderr_of(0);
  EXPECT_TRUE(job.reasons().contains("an MPI session of the program's own")) << job.reasons();
  job.drop_gate(0);
  job.expect_ok();
}

// Windows, files and communicators come and go with the phases; the program can be moved in each of them.
TEST(Endings, ProgramWithPhasesMoves) {
  Job job({.ranks = 3, .program = "shim_phases", .arguments = {"1000000"}, .environment = {}});
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  for (int i = 0; i < 4; ++i) {
    ASSERT_NE(job.commit(), 0u);
    ASSERT_EQ(job.wait_for_gate(kForever), Job::Gate::kStopped) << job.reasons() << job.stderr_of(0);
    job.next_epoch();
  }
  job.finish_ok();
}

void expect_refused(const char* program, const char* message, std::vector<std::string> environment = {}) {
  Job job({.ranks = 1, .program = program, .arguments = {}, .environment = std::move(environment)});
  const int status = job.wait(0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_TRUE(job.stderr_of(0).contains(message)) << job.stderr_of(0);
  EXPECT_TRUE(job.refusal_of(0).contains(message)) << "or the job would be restarted";
}

TEST(Endings, ProgramWithAnotherMpiIsRefused) {
  expect_refused("shim_other_mpi", "the program's MPI library is \"MPICH Version:");
}

// As in Debian's unstable distribution of 2026-11, with Open MPI 6.0.0~rc2.
TEST(Endings, PmixWithOtherGroupsIsRefused) {
  expect_refused(
      "shim_other_mpi", "Open MPI uses \"OpenPMIx 7.0.0rc1\" in this image; PMIx up to 5 is supported",
      {"TEST_MPI_VERSION=Open MPI v6.0.0rc2, package", "TEST_PMIX_VERSION=OpenPMIx 7.0.0rc1, repo rev: unknown"});
}

TEST(Endings, ThreadMultipleIsRefusedWithoutMpiSupport) {
  expect_refused("shim_other_mpi", "its MPI library does not export ompi_mpi_thread_multiple",
                 {"TEST_MPI_VERSION=Open MPI v5.0.99, a build without symbols", "OMPI_MPI_THREAD_LEVEL=3"});
}

// What is there and can't be opened, by anyone: a symbolic link to itself.
void replace_by_loop(const std::string& path) {
  std::filesystem::remove_all(path);
  std::filesystem::create_symlink(path, path);
}

void expect_ended(Process& program, const std::string& log, const std::string& path) {
  const int status = program.wait(60s);
  ASSERT_NE(status, -1) << "it waits for ever";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(text.contains(path + " can't be read: Too many levels of symbolic links")) << text;
}

// It would run as a job of its own.
TEST(Endings, RankWhoseRunDirectoryCantBeReadEnds) {
  Cluster cluster(1);
  const std::string log = cluster.run_dir(0) + ".program.log";
  replace_by_loop(cluster.run_dir(0));
  Process program({BSP_BINARY_DIR "/bin/shim_cxx", "10"},
                  {"LD_PRELOAD=" BSP_BINARY_DIR "/bin/libbspmpi.so", "BSP_RUN_DIR=" + cluster.run_dir(0)}, log);
  expect_ended(program, log, cluster.run_dir(0));
}

TEST(Endings, RankWhoseFirstEpochCantBeReadEnds) {
  Cluster cluster(1);
  cluster.start_sidecar(0);
  const std::string log = cluster.run_dir(0) + ".program.log";
  replace_by_loop(cluster.run_dir(0) + "/epoch");
  Process program({BSP_BINARY_DIR "/bin/shim_cxx", "10"},
                  {"LD_PRELOAD=" BSP_BINARY_DIR "/bin/libbspmpi.so", "BSP_RUN_DIR=" + cluster.run_dir(0)}, log);
  expect_ended(program, log, cluster.run_dir(0) + "/epoch");
}

// It has been continued, and nobody would continue it again.
TEST(Endings, RankWhoseNextEpochCantBeReadEnds) {
  Job job({.ranks = 2, .program = "shim_cxx", .arguments = {"1000000"}, .environment = {}});
  ASSERT_TRUE(job.reach(3)) << job.stderr_of(0);
  ASSERT_EQ(job.gate(), Job::Gate::kStopped);
  const std::string epoch = job.cluster.home(0) + "/epoch";
  replace_by_loop(epoch);
  job.programs[0].signal(SIGCONT);
  const int status = job.programs[0].wait(60s);
  ASSERT_NE(status, -1) << "it has stopped again";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_TRUE(job.stderr_of(0).contains(epoch + " can't be read: ")) << job.stderr_of(0);
}

// They have no peers whose end a close could wait for.
TEST(Shim, WaitsForNothingOfListeningSockets) {
  Job job({.ranks = 1, .program = "shim_listening", .arguments = {"1000000"}, .environment = {}});
  job.go_through(3);
  job.finish_ok();
}

}  // namespace
}  // namespace bsp::test
