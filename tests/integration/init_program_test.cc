// bsp-init as PID 1: how it starts a program, what it forwards, and its errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstddef>
#include <format>
#include <fstream>
#include <thread>

#include "base/core/cpu_features.h"
#include "base/core/read_file.h"
#include "crds/names.h"
#include "sidecar/init/files.h"
#include "sidecar/ring/ring.h"
#include "tests/integration/checkpoint_harness.h"

namespace bsp::test {
namespace {

using ::testing::HasSubstr;

class InitProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    ASSERT_NE(test_image(&why), "") << why;
  }
};

struct Bad {
  std::string name;
  std::vector<std::string> command;
  int status;
  std::string message;
  std::string user = "1000";
  std::string carry{};
};
void PrintTo(const Bad& bad, std::ostream* out) { *out << bad.name; }

class BadProgram : public InitProgram, public ::testing::WithParamInterface<Bad> {};

TEST_P(BadProgram, IsReportedToTheSidecarAndInTheLog) {
  const Bad& bad = GetParam();
  Pod pod({.command = bad.command, .user = bad.user, .carry_paths = bad.carry});
  const auto exited = pod.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->number("code"), bad.status);
  EXPECT_THAT(exited->text("message"), HasSubstr(bad.message));
  pod.send(control::Bye::kVerb);
  EXPECT_EQ(pod.wait(), bad.status);
  EXPECT_THAT(pod.errors(), HasSubstr(bad.message));
  EXPECT_EQ(pod.logs(), "");
}

INSTANTIATE_TEST_SUITE_P(
    Programs, BadProgram,
    ::testing::Values(
        Bad{"Missing", {"no-such-program", "x"}, 127, "command not found in the image: no-such-program"},
        Bad{"MissingPath", {"/opt/none"}, 127, "command not found in the image: /opt/none"},
        Bad{"NotExecutable", {"/etc/passwd"}, 126, "/etc/passwd is not executable for uid 1000"},
        Bad{"Static", {"/static_hello"}, 126, "/static_hello is statically linked"},
        Bad{"UnknownUser", {"/gated"}, 125, "user 'nobody-here' is not in the image's /etc/passwd", "nobody-here"},
        Bad{"RefusedByTheShim",
            {"/bin/sh", "-c", "umask 077; echo another MPI >&2; echo another MPI >/run/bsp/refused; exit 1"},
            1,
            "another MPI"},
        Bad{"CarryProc", {"/gated"}, 125, "'/proc/self' cannot be carried", "1000", "/proc/self"}),
    [](const auto& bad) { return bad.param.name; });

TEST_F(InitProgram, HasNoPrivilegesAndACleanEnvironment) {
  Pod pod({.command =
               {"/bin/sh", "-c",
                "while read -r line; do case $line in Cap*|NoNewPrivs*|Uid*|Gid*|Groups*|"
                "SigBlk*|SigIgn*) echo \"$line\";; esac; done </proc/self/status;"
                "read -r nothing || echo no input; echo init $BSP_INIT_PID is $PPID; echo home $HOME; kill -STOP $$"},
           .user = "user",
           .env = {{"STUB_SHIM_SPEAKS", "1"}, {"LD_PRELOAD", ""}, {"HOME", "/root"}}});
  ASSERT_TRUE(pod.expect(control::Stopped::kVerb));
  const std::string log = pod.logs_with("home ");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_THAT(log, HasSubstr(std::string(set) + ":\t0000000000000000\n"));
  }
  EXPECT_THAT(log, HasSubstr("NoNewPrivs:\t1\n"));
  EXPECT_THAT(log, HasSubstr("Uid:\t1001\t1001\t1001\t1001\n"));
  EXPECT_THAT(log, HasSubstr("Gid:\t100\t100\t100\t100\n"));
  EXPECT_THAT(log, HasSubstr("SigBlk:\t0000000000000000\n"));
  EXPECT_THAT(log, HasSubstr("SigIgn:\t0000000000000000\n"));
  EXPECT_THAT(log, HasSubstr("no input\n"));
  EXPECT_THAT(log, HasSubstr("init 1 is 1\n"));
  EXPECT_THAT(log, HasSubstr("home /home/user\n"));
  EXPECT_THAT(pod.errors_with("stub shim"), HasSubstr("stub shim loaded by LD_PRELOAD=/bsp/libbspmpi.so\n"));
}

// spec.cpu: Common.
TEST_F(InitProgram, WaitsForItsCpuFeaturesAndSeesThemInItsLibrariesVariables) {
  Pod pod({.command = {"/bin/sh", "-c", "echo mask $GLIBC_TUNABLES; echo blas $OPENBLAS_CORETYPE; kill -STOP $$"},
           .env = {{std::string(names::kEnvCpu), "Common"},
                   {std::string(names::kEnvCpuFeatures), "pni,avx,fma,avx2,avx512f"}}});
  const auto first = pod.expect(control::Hello::kVerb);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->text("state"), "waiting");
  EXPECT_EQ(pod.logs(), "");
  const CpuFeatures level = *CpuFeatures::from_names("pni,avx,fma,avx2,bmi2");
  pod.send(control::Start::kVerb, {{"features", std::to_string(level.bits())}});
  const auto running = pod.expect(control::Hello::kVerb);
  ASSERT_TRUE(running);
  EXPECT_EQ(running->text("state"), "running");
  EXPECT_EQ(running->text("features"), std::to_string(CpuFeatures::from_names("pni,avx,fma,avx2")->bits()))
      << "of the level, those that the CPU has";
  ASSERT_TRUE(pod.expect(control::Stopped::kVerb));
  const std::string log = pod.logs_with("blas ");
  EXPECT_THAT(log, HasSubstr("mask glibc.cpu.hwcaps=-SSSE3,"));
  EXPECT_THAT(log, HasSubstr(",-AVX512F,"));
  EXPECT_THAT(log, HasSubstr("blas Haswell\n"));
}

TEST_F(InitProgram, ExitStatusIsThePrograms) {
  Pod pod({.command = {"/gated", "steps=1", "exit=42"}});
  const auto exited = pod.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->number("code"), 42);
  EXPECT_EQ(exited->number("signal"), 0);
  pod.send(control::Bye::kVerb);
  EXPECT_EQ(pod.wait(), 42);
}

// Where no sidecar is left that could say so. The program writes what the shim writes into the ring.
TEST_F(InitProgram, LeavesBehindThatMpiWasFinalized) {
  Pod pod({.command = {"/bin/sh", "-c",
                       "umask 0; cd /run/bsp; i=0; while [ $i -lt 40 ]; do printf '\\0'; i=$((i+1)); done >ring;"
                       "printf '\\5\\0\\0\\0' >>ring; echo no space left >said; exit 3"},
           .env = {{"BSP_TERMINATION_LOG", "/run/bsp/said"}}});
  static_assert(offsetof(bsp_ring, state) == 40 && BSP_RANK_FINALIZED == 5);
  ASSERT_TRUE(pod.expect(control::Exited::kVerb));
  EXPECT_EQ(read_file(pod.path("/run/bsp/said")).value_or(""),
            std::format("no space left\n\n{}\n", names::kFinalizedNote));
  pod.send(control::Bye::kVerb);
  EXPECT_EQ(pod.wait(), 3);
}

TEST_F(InitProgram, StaysWhileItsSidecarAsksItTo) {
  Pod pod({.command = {"/gated", "steps=1", "exit=42"}});
  ASSERT_TRUE(pod.expect(control::Exited::kVerb));
  for (int i = 0; i < 4; ++i) {
    pod.send(control::Stay::kVerb);                        // after 5 s bsp-init would be gone
    std::this_thread::sleep_for(std::chrono::seconds(2));  // the passing of time is what is tested
  }
  pod.send(control::Bye::kVerb);
  EXPECT_EQ(pod.wait(), 42);
}

TEST_F(InitProgram, ReportsDeathBySignal) {
  Pod pod({.command = {"/bin/sh", "-c", "kill -SEGV $$"}});
  const auto exited = pod.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->number("signal"), SIGSEGV);
  EXPECT_THAT(exited->text("message"), HasSubstr("killed by SIGSEGV"));
  pod.send(control::Bye::kVerb);
  EXPECT_EQ(pod.wait(), 128 + SIGSEGV);
}

TEST_F(InitProgram, ReportsWhyTheSidecarKilledIt) {
  Pod pod({.command = {"/bin/sh", "-c", "kill -STOP $$"}});
  ASSERT_TRUE(pod.expect(control::Stopped::kVerb));
  pod.send(control::Kill::kVerb, {{"reason", "this pod is cut off: 34 s"}});
  const auto exited = pod.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->number("signal"), SIGKILL);
  EXPECT_EQ(exited->text("message"), "killed by SIGKILL: this pod is cut off: 34 s");
  pod.send(control::Bye::kVerb);
  EXPECT_EQ(pod.wait(), 128 + SIGKILL);
  EXPECT_THAT(pod.errors(), HasSubstr("the program was killed: this pod is cut off: 34 s\n"));
}

TEST_F(InitProgram, ForwardsSignals) {
  Pod pod({.command = {"/bin/sh", "-c",
                       "trap 'echo usr1' USR1; trap 'echo term; exit 9' TERM; echo ready;"
                       "kill -STOP $$; while :; do :; done"}});
  ASSERT_TRUE(pod.expect(control::Stopped::kVerb));
  ::kill(pod.init_pid(), SIGUSR1);
  pod.send(control::Continue::kVerb);
  ASSERT_TRUE(pod.expect(control::Running::kVerb));
  while (pod.logs() != "ready\nusr1\n") {
  }
  ::kill(pod.init_pid(), SIGTERM);
  const auto exited = pod.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->number("code"), 9);
  EXPECT_EQ(pod.logs(), "ready\nusr1\nterm\n");
}

// Uses its grace period until the test lets it end.
const std::vector<std::string> kTakesItsTime{
    "/bin/sh", "-c",
    "trap 'echo term; until [ -e /run/bsp/go ]; do :; done; echo saved; exit 5' TERM; echo ready; while :; do :; done"};

TEST_F(InitProgram, ProgramThatHandlesSigtermHasItsGracePeriod) {
  Pod pod({.command = kTakesItsTime, .env = {{"BSP_GRACE_SECONDS", "1000"}}});
  ASSERT_TRUE(pod.expect(control::Running::kVerb));
  while (pod.logs() != "ready\n") {
  }
  ::kill(pod.init_pid(), SIGTERM);
  while (pod.logs() != "ready\nterm\n") {
  }
  // Longer than the fixed limit that preceded the pod's own grace period.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  EXPECT_EQ(pod.logs(), "ready\nterm\n");
  std::ofstream(pod.path("/run/bsp/go")) << "go";
  const auto exited = pod.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->number("code"), 5);
  pod.send(control::Stay::kVerb);  // too late
  EXPECT_EQ(pod.wait(), 5);
  EXPECT_EQ(pod.logs(), "ready\nterm\nsaved\n");
}

TEST_F(InitProgram, ProgramThatOutlivesTheGracePeriodIsKilledWithinIt) {
  Pod pod({.command = kTakesItsTime, .env = {{"BSP_GRACE_SECONDS", "4"}}});
  ASSERT_TRUE(pod.expect(control::Running::kVerb));
  while (pod.logs() != "ready\n") {
  }
  ::kill(pod.init_pid(), SIGTERM);
  const auto exited = pod.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->text("message"),
            "killed by SIGKILL: it did not end within the pod's terminationGracePeriodSeconds (4)");
  pod.send(control::Bye::kVerb);
  EXPECT_EQ(pod.wait(), 128 + SIGKILL);
  EXPECT_EQ(pod.logs(), "ready\nterm\n");
}

TEST_F(InitProgram, StoppedProgramCantUseTheGracePeriod) {
  Pod pod({.command = {"/gated", "steps=6"}, .env = {{"BSP_GRACE_SECONDS", "1000"}}});
  ASSERT_TRUE(pod.expect(control::Stopped::kVerb));
  ::kill(pod.init_pid(), SIGTERM);
  const auto exited = pod.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->text("message"), "killed by SIGKILL: its pod had to end while it was stopped");
  pod.send(control::Bye::kVerb);
  EXPECT_EQ(pod.wait(), 128 + SIGKILL);
}

TEST_F(InitProgram, StoppedProgramContinuedInTimeUsesTheGracePeriod) {
  Pod pod({.command = {"/bin/sh", "-c", "trap 'exit 9' TERM; kill -STOP $$; while :; do :; done"},
           .env = {{"BSP_GRACE_SECONDS", "1000"}}});
  ASSERT_TRUE(pod.expect(control::Stopped::kVerb));
  ::kill(pod.init_pid(), SIGTERM);
  pod.send(control::Continue::kVerb);
  const auto exited = pod.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->number("code"), 9);
}

// The operator may start a rank elsewhere once it knows of its end.
TEST_F(InitProgram, ChildrenEndBeforeTheExitIsReported) {
  Pod pod({.command = {"/bin/sh", "-c", "(while :; do :; done) & (while :; do :; done) & echo ready; wait"}});
  while (pod.logs() != "ready\n") {
  }
  ASSERT_EQ(pod.find("sh").size(), 3U);
  pod.send(control::Kill::kVerb);
  ASSERT_TRUE(pod.expect(control::Exited::kVerb));
  EXPECT_EQ(pod.find("sh").size(), 0U);
  pod.send(control::Bye::kVerb);
  EXPECT_EQ(pod.wait(), 128 + SIGKILL);
}

TEST_F(InitProgram, ReapsOrphans) {
  Pod pod({.command = {"/bin/sh", "-c", "(/bin/sh -c 'exit 0' & ) ; kill -STOP $$"}});
  ASSERT_TRUE(pod.expect(control::Stopped::kVerb));
  bool zombie = true;
  for (int i = 0; zombie && i < 1000; ++i) {
    zombie = false;
    for (const int pid : pod.find("sh")) {
      const auto stat = init::process_stat(pid);
      zombie = zombie || (stat && stat->state == 'Z');
    }
  }
  EXPECT_FALSE(zombie);
}

TEST_F(InitProgram, WaitingPodEndsAtOnce) {
  Pod pod({});
  ASSERT_TRUE(pod.expect(to_string(control::ProgramState::kWaiting)));
  ::kill(pod.init_pid(), SIGTERM);
  EXPECT_EQ(pod.wait(), 128 + SIGTERM);
}

TEST_F(InitProgram, QuitsOnRequest) {
  Pod pod({.command = {"/bin/sh", "-c", "while :; do :; done"}});
  ASSERT_TRUE(pod.expect(control::Running::kVerb));
  pod.send(control::Quit::kVerb, {{"code", "3"}});
  EXPECT_EQ(pod.wait(), 3);
}

// More than a pipe holds, from a program that stops with its pipe full of unread output.
TEST_F(InitProgram, OutputIsVerbatim) {
  Pod pod({.command = {"/gated", "steps=3", "noise=200000"}});
  ASSERT_TRUE(pod.expect(control::Stopped::kVerb));
  pod.send(control::Continue::kVerb);
  ASSERT_TRUE(pod.expect(control::Exited::kVerb));
  pod.send(control::Bye::kVerb);
  EXPECT_EQ(pod.wait(), 0);
  std::string expected;
  for (int step = 1; step <= 3; ++step) {
    for (int i = 0; i < 200000; ++i) {
      expected += i % 64 == 63 ? '\n' : static_cast<char>('a' + i % 26);
    }
    expected += "step " + std::to_string(step) + " of pid 300\n";
  }
  const std::string got = pod.logs();
  EXPECT_EQ(got.size(), expected.size());
  EXPECT_TRUE(got == expected);
}

}  // namespace
}  // namespace bsp::test
