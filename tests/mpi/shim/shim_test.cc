// Unmodified MPI programs through several MPI epochs under libbspmpi.so. Each program checks its own results; the
// test plays the operator: it sets gates, sees all ranks stop, and opens the next epoch.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <format>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

using namespace std::chrono_literals;

struct Case {
  const char* program;
  std::uint32_t ranks;
  int epochs;
  std::uint32_t seats = 1;  // ranks of a pod
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.program << " " << c.ranks << " in pods of " << c.seats; }

class Programs : public testing::TestWithParam<Case> {};

TEST_P(Programs, GoThroughEpochs) {
  const auto& [program, ranks, epochs, seats] = GetParam();
  Job job({.ranks = ranks, .seats = seats, .program = program, .arguments = {kMany}, .environment = {}});
  job.go_through(epochs);
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(
    Shim, Programs,
    testing::Values(Case{"shim_p2p", 2, 4}, Case{"shim_p2p", 4, 3}, Case{"shim_collectives", 3, 4},
                    Case{"shim_communicators", 4, 4}, Case{"shim_datatypes", 3, 4}, Case{"shim_attributes", 2, 4},
                    Case{"shim_cxx", 2, 4}, Case{"shim_halo", 3, 4}, Case{"shim_threads", 3, 4},
                    Case{"shim_intercomms", 4, 4}, Case{"shim_neighbours", 4, 4}, Case{"shim_sample_sort", 3, 4},
                    Case{"shim_messages", 2, 4}, Case{"shim_errors", 2, 4}, Case{"shim_profiled", 3, 4},
                    Case{"shim_particles", 3, 4}, Case{"shim_descriptors", 2, 20}, Case{"shim_topologies", 6, 3},
                    Case{"shim_ignored", 4, 3}, Case{"shim_ignored", 5, 2}, Case{"shim_order", 4, 3},
                    Case{"shim_any_time", 2, 3}, Case{"shim_dynamic", 2, 3}, Case{"shim_attribute_threads", 2, 3},
                    Case{"shim_rules", 4, 4}, Case{"shim_mpif", 3, 4}, Case{"shim_partitions", 3, 12},
                    Case{"shim_small_stack", 2, 4}, Case{"shim_truncated", 2, 20}, Case{"shim_extensions", 3, 4},
                    Case{"shim_tool_variables", 3, 4}, Case{"shim_windows", 2, 6}, Case{"shim_windows", 5, 4},
                    Case{"shim_exhausted", 7, 3}, Case{"shim_local_calls", 2, 6}, Case{"shim_talking_threads", 3, 8},
                    Case{"shim_out_of_step", 3, 12}, Case{"shim_threads_out_of_step", 3, 6},
                    Case{"shim_late_errors", 3, 4}, Case{"shim_repeated", 3, 5}, Case{"shim_generalised", 2, 4},
                    Case{"shim_nothing", 2, 4}, Case{"shim_empty_groups", 2, 4}, Case{"shim_surroundings", 2, 6},
                    Case{"shim_blocking_calls", 2, 12}, Case{"shim_undelivered", 2, 12}, Case{"shim_undelivered", 7, 6},
                    Case{"shim_random_messages", 4, 25}, Case{"shim_accumulate", 3, 3},
                    // Several ranks of a pod share memory.
                    Case{"shim_p2p", 4, 4, 2}, Case{"shim_p2p", 4, 4, 4}, Case{"shim_collectives", 3, 4, 2},
                    Case{"shim_communicators", 4, 4, 2}, Case{"shim_datatypes", 3, 4, 3}, Case{"shim_halo", 4, 4, 2},
                    Case{"shim_threads", 4, 4, 2}, Case{"shim_intercomms", 4, 4, 4}, Case{"shim_neighbours", 4, 4, 2},
                    Case{"shim_descriptors", 2, 20, 2}, Case{"shim_topologies", 6, 3, 4},
                    Case{"shim_partitions", 4, 12, 2}, Case{"shim_windows", 5, 4, 2}, Case{"shim_local_calls", 2, 6, 2},
                    Case{"shim_out_of_step", 3, 12, 2}, Case{"shim_late_errors", 4, 4, 2},
                    Case{"shim_accumulate", 4, 3, 2}),
    [](const auto& tested) {
      const Case& c = tested.param;
      return std::format("{}{}{}", c.program + 5, c.ranks, c.seats > 1 ? std::format("in{}s", c.seats) : "");
    });

TEST(Shim, WaitsForTransfersUnderWay) {
  Job job({.ranks = 2, .program = "shim_undelivered", .arguments = {kMany, "huge"}, .environment = {}});
  job.go_through(4);
  job.finish_ok();
}

TEST(Shim, AHandlerOfTheProgramInterruptsItsCalls) {
  Job job({.ranks = 2, .program = "shim_blocking_calls", .arguments = {"handler"}, .environment = {}});
  job.go_through(3);
  job.finish_ok();
}

// Threads that never pause, in every call that MPI answers from internal state: 2,400 rounds here, hours with
// BSP_STORM_EPOCHS and BSP_STORM_ROUNDS (epochs, and rounds in each of their supersteps).
TEST(Shim, ThreadsCallMpiConstantlyAcrossEpochs) {
  const auto asked = [](const char* name, int usual) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::atoi(text) : usual;
  };
  const std::string rounds = std::to_string(asked("BSP_STORM_ROUNDS", 100));
  Job job({.ranks = 3, .program = "shim_thread_storm", .arguments = {kMany, rounds}, .environment = {}});
  job.go_through(asked("BSP_STORM_EPOCHS", 6));
  job.finish_ok();
}

// The same under the thread sanitizer, which sees the shim's own accesses and every lock.
TEST(Shim, ThreadsDoNotRaceInTheShim) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a program can't have both sanitizers";
#endif
  // The sanitizer's address-space layout doesn't cover every randomised address.
  personality(ADDR_NO_RANDOMIZE);
  Job job(
      {.ranks = 2,
       .program = "shim_thread_storm",
       .arguments = {kMany, "40"},
       .environment = {"TSAN_OPTIONS=exitcode=66:halt_on_error=0:second_deadlock_stack=1:suppressions=" BSP_SOURCE_DIR
                       "/tests/sanitizers/shim.supp"},
       .preload = BSP_BINARY_DIR "/bin/libbspmpi_tsan.so libtsan.so.2"});
  job.go_through(4);
  job.finish_ok();
}

// No descriptor that MPI leaks when a session closes remains; all of the program's do.
TEST(Shim, DescriptorsDoNotAccumulate) {
  Job job({.ranks = 2, .program = "shim_cxx", .arguments = {kMany}, .environment = {}});
  job.go_through(5);
  const int few = job.programs[0].open_descriptors();
  job.go_through(56);
  EXPECT_EQ(job.epoch(), 59);
  EXPECT_EQ(job.programs[0].open_descriptors(), few);
  job.finish_ok();
}

// 40 epochs add less memory than one more copy of the program's objects in each would, by far.
TEST(Shim, MemoryOfObjectsDoesNotAccumulate) {
  Job job({.ranks = 2, .program = "shim_many_objects", .arguments = {kMany}, .environment = {}});
  job.go_through(5);
  const long before = job.programs[0].resident_kib();
  job.go_through(40);
  EXPECT_LT(job.programs[0].resident_kib(), before + 10 * 1024);
  job.finish_ok();
}

// A pod with two network interfaces, as btl/tcp sees it.
TEST(Shim, ThreadsWorkWithSeveralInterfaces) {
  Job job({.ranks = 3, .program = "shim_threads", .arguments = {kMany}, .environment = {"OMPI_MCA_btl_tcp_links=2"}});
  job.go_through(3);
  job.finish_ok();
}

TEST(Shim, ThreadLevelComesFromTheEnvironment) {
  Job job({.ranks = 2,
           .program = "shim_threads",
           .arguments = {kMany, "init"},
           .environment = {"OMPI_MPI_THREAD_LEVEL=3"}});
  job.go_through(2);
  job.finish_ok();
}

struct Thing {
  const char* name;
  const char* reason;
};

void PrintTo(const Thing& thing, std::ostream* out) { *out << thing.name; }

// Past the point at which a gate can be postponed, the rank must not continue as if there were nothing.
class Unreadable : public testing::TestWithParam<Thing> {};

TEST_P(Unreadable, EndsTheRankByName) {
  Job job({.ranks = 2, .program = "shim_unreadable", .arguments = {kMany, GetParam().name}, .environment = {}});
  ASSERT_TRUE(job.reach(3));
  EXPECT_EQ(job.gate(), Job::Gate::kEnded) << job.reasons();
  const int status = job.wait(0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  const std::string message = job.stderr_of(0);
  EXPECT_TRUE(message.contains(GetParam().reason) && message.contains("can't be read: Cannot allocate memory"))
      << message;
}

INSTANTIATE_TEST_SUITE_P(Shim, Unreadable,
                         testing::Values(Thing{"descriptors", "/proc/self/fd can't"},
                                         Thing{"threads", "/proc/self/task can't"},
                                         Thing{"timer", "/proc/self/fdinfo/"}),
                         [](const auto& tested) { return std::string(tested.param.name); });

// The solver's field after several epochs equals that of the sequential program, bit for bit.
class LatticeBoltzmann : public testing::TestWithParam<std::uint32_t> {};

TEST_P(LatticeBoltzmann, EqualsTheSequentialProgramBitForBit) {
  Job job({.ranks = GetParam(),
           .program = "lattice_boltzmann",
           .arguments = {"--width", "67", "--height", "33", "--supersteps", "100", "--substeps", "2", "--ballast", "2",
                         "--work-factor", "0=2", "--check"},
           .environment = {},
           .paced = true});
  job.go_through(5);
  for (std::uint32_t r = 0; r < GetParam(); ++r) EXPECT_EQ(job.wait(r), 0) << job.stderr_of(r);
  std::string line = job.last_line(0);
  EXPECT_TRUE(line.contains("OK field") && line.contains("equal to the sequential program")) << line;
  EXPECT_EQ(job.status(0)["epoch"], 4);
}

INSTANTIATE_TEST_SUITE_P(Shim, LatticeBoltzmann, testing::Values(2u, 4u),
                         [](const auto& tested) { return std::to_string(tested.param) + "ranks"; });

// What can't be carried over an epoch postpones the gate, by name.
class Blocked : public testing::TestWithParam<Thing> {};

TEST_P(Blocked, IsNotMigratableWhileItLasts) {
  expect_postponed_until_released("shim_blocked", GetParam().name, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Shim, Blocked,
    testing::Values(
        Thing{"exposed", "an open RMA exposure epoch"}, Thing{"accessing", "an open RMA access epoch"},
        Thing{"alltoallw", "a persistent request (MPI_Alltoallw_init)"},
        Thing{"orphaned", "a persistent request (MPI_Send_init)"},
        Thing{"generalised", "a pending request (MPI_Grequest_start)"},
        Thing{"half_freed", "a communicator, window or file that not all of its ranks have freed"},
        Thing{"half_begun", "a collective that not all of its ranks have begun"},
        Thing{"request_half_freed", "a persistent one that not all have freed"},
        Thing{"thread", "another thread inside MPI"}, Thing{"session", "an MPI session of the program's own"},
        Thing{"probed", "a message that was probed on a communicator since freed"},
        Thing{"unknown", "1 message(s) sent to this rank and not received"},
        Thing{"large", "9 message(s) sent to this rank and not received (of more than 64 MiB)"},
        Thing{"unlisted", "a list of file descriptors that can't be read (Cannot allocate memory)"},
        Thing{"revoked", "a revoked communicator"},
        Thing{"unenterable", "a working directory that the program's user may not read and enter (/tmp/blocked-"},
        Thing{"unlistable", "a working directory that the program's user may not read and enter (/tmp/blocked-"},
        Thing{"key", "a key in a keyring of the process or its session"},
        Thing{"deep", "a working directory whose name has 50"},
        Thing{"tools", "MPI's tool interface (MPI_T_init_thread)"}, Thing{"socket", "an open socket"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(Shim, NewGateClosesAfterADroppedOne) {
  Job job({.ranks = 3, .program = "shim_cxx", .arguments = {kMany}, .environment = {}});
  job.go_through(2);
  // All vote at once, while some may close already: either all have stopped or all have dropped it.
  std::uint64_t target = job.commit();
  for (std::uint32_t r = 0; r < 3; ++r) job.cluster.call(r, wire::kCancelGate, {{"superstep", target}});
  if (job.settle_gate() == Job::Gate::kStopped) job.next_epoch();
  ASSERT_TRUE(job.reach(target + 3));
  ASSERT_TRUE(job.turn());
  job.finish_ok();
}

// Fortran programs compiled with gfortran. Without it (images/dev.packages) shim_mpif stands in for them.
class Fortran : public testing::TestWithParam<const char*> {};

TEST_P(Fortran, GoesThroughEpochs) {
  const std::string program = std::string("shim_fortran_") + GetParam();
  if (!std::filesystem::exists(std::string(BSP_BINARY_DIR "/bin/") + program)) GTEST_SKIP() << "no gfortran";
  Job job({.ranks = 3, .program = program, .arguments = {}, .environment = {}});
  job.go_through(4);
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, Fortran, testing::Values("MPIF", "USE", "F08"),
                         [](const auto& tested) { return std::string(tested.param); });

// MPI files have two implementations; each keeps static state and calls MPI internally.
class EveryProcedure : public testing::TestWithParam<const char*> {};

TEST_P(EveryProcedure, Exists) {
  Job job({.ranks = 4,
           .program = "shim_every_procedure",
           .arguments = {kMany},
           .environment = {"BSP_SUPERSTEP=MPI_Exscan:1", std::string("OMPI_MCA_io=") + GetParam()}});
  job.go_through(2);
  job.finish_ok();
}

INSTANTIATE_TEST_SUITE_P(Shim, EveryProcedure, testing::Values("ompio", "romio341"),
                         [](const auto& tested) { return std::string(tested.param); });

// bsp-init preloads the user's libraries before the shim, so a tool finds the shim where it expects MPI.
TEST(Shim, PreloadedToolSeesEveryCall) {
  Job job({.ranks = 2,
           .program = "shim_tooled",
           .arguments = {kMany},
           .environment = {},
           .preload = BSP_BINARY_DIR "/bin/libshim_tool.so:" BSP_BINARY_DIR "/bin/libbspmpi.so"});
  job.go_through(3);
  job.programs[0].signal(SIGUSR1);
  for (std::uint32_t r : {0u, 1u}) {
    EXPECT_EQ(job.wait(r), 0) << job.stderr_of(r);
    const std::string line = job.last_line(r);
    ASSERT_TRUE(line.starts_with("ok tooled ")) << line;
    const std::string seen =
        std::format("tool: rank {} saw MPI_Init 1, MPI_Barrier {}, MPI_Get_version 1, MPI_Comm_dup 1\n", r,
                    line.substr(std::string_view("ok tooled ").size()));
    EXPECT_TRUE(job.stderr_of(r).contains(seen)) << seen << job.stderr_of(r);
  }
}

TEST(Shim, ProgramThatNeverCallsMpiIsUnaffected) {
  Job job({.ranks = 2, .program = "shim_without_mpi", .arguments = {"600"}, .environment = {}});
  job.expect_ok();
  EXPECT_EQ(job.status(0)["mpi_initialized"], false);
}

// A rank outlives its sidecar: it keeps computing without it, and closes and opens with the next one.
TEST(Shim, SurvivesASidecarKilledInAnOpenEpoch) {
  Job job({.ranks = 3, .program = "shim_cxx", .arguments = {kMany}, .environment = {}});
  job.go_through(2);
  for (std::uint32_t victim : {0u, 1u}) {
    job.kill_sidecar(victim);
    std::uint64_t before = job.completed(2);
    for (auto deadline = std::chrono::steady_clock::now() + 30s; job.completed(2) < before + 20;)
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << job.stderr_of(victim);
    job.start_sidecar(victim);
  }
  ASSERT_TRUE(job.turn()) << job.stderr_of(0);
  ASSERT_TRUE(job.turn());
  job.finish_ok();
}

// Open MPI itself would wait for ever.
TEST(Shim, EndsARankThatCantConnectToItsSidecar) {
  Cluster cluster(1);
  cluster.start_sidecar(0);
  cluster.prepare(0);
  cluster.open(0);
  cluster.sidecars[0].signal(SIGKILL);
  ASSERT_NE(cluster.sidecars[0].wait(10s), -1);
  Process program({BSP_BINARY_DIR "/bin/shim_cxx", "10"},
                  {"LD_PRELOAD=" BSP_BINARY_DIR "/bin/libbspmpi.so", "BSP_RUN_DIR=" + cluster.run_dir(0)},
                  cluster.run_dir(0) + ".program.log");
  const int status = program.wait(60s);
  ASSERT_NE(status, -1) << "it hangs";
  EXPECT_NE(status, 0);
  std::ifstream log(cluster.run_dir(0) + ".program.log");
  const std::string text{std::istreambuf_iterator<char>(log), {}};
  EXPECT_NE(text.find("epoch 0: can't connect to the sidecar's PMIx server"), std::string::npos) << text;
}

}  // namespace
}  // namespace bsp::test
