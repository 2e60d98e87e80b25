// A running program is dumped in one container and continues in another, with all its state.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <format>
#include <fstream>
#include <string>
#include <thread>

#include "tests/integration/checkpoint_harness.h"

namespace bsp::test {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Checkpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    ASSERT_NE(test_image(&why), "") << why;
  }
};

std::string steps(int first, int last, int pid) {
  std::string out;
  for (int i = first; i <= last; ++i) {
    out += "step " + std::to_string(i) + " of pid " + std::to_string(pid) + "\n";
  }
  return out;
}

std::string checks(int first, int last) {
  std::string out;
  for (int i = first; i <= last; ++i) out += "checked " + std::to_string(i) + "\n";
  return out;
}

struct Kind {
  std::string name;
  std::string user;
  std::vector<std::string> arguments;
  std::string carry;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class Moves : public Checkpoint, public ::testing::WithParamInterface<Kind> {};

// Three pods in turn; the program checks its own memory, threads and files in each step.
TEST_P(Moves, TwiceAndContinues) {
  const Kind& kind = GetParam();
  std::vector<std::string> command{"/gated", "steps=6", "exit=7"};
  command.insert(command.end(), kind.arguments.begin(), kind.arguments.end());
  Pod first({.command = command, .user = kind.user, .carry_paths = kind.carry});
  const auto stopped = first.expect(control::Stopped::kVerb);
  ASSERT_TRUE(stopped);
  const auto pid = stopped->number("pid");
  EXPECT_GE(pid, 300);
  Pod second({.user = kind.user, .carry_paths = kind.carry});
  Pod third({.user = kind.user, .carry_paths = kind.carry});
  move(first, second, "move-1");
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(second.expect(control::Stopped::kVerb));
  EXPECT_EQ(first.wait(), 137);
  move(second, third, "move-2");
  ASSERT_FALSE(HasFatalFailure());
  const auto exited = third.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited) << third.logs() << third.errors();
  EXPECT_EQ(exited->number("code"), 7) << third.errors();
  third.send(control::Bye::kVerb);
  EXPECT_EQ(third.wait(), 7);
  const int p = static_cast<int>(pid);
  EXPECT_EQ(first.logs(), steps(1, 2, p));
  EXPECT_EQ(second.logs(), steps(3, 4, p));
  EXPECT_EQ(third.logs(), steps(5, 6, p));
  EXPECT_EQ(first.errors() + second.errors() + third.errors(), checks(1, 6));
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Moves,
    ::testing::Values(Kind{"Small", "1000", {"mb=8"}, ""}, Kind{"Root", "0", {"mb=8"}, ""},
                      Kind{"Middle", "1000:100", {"mb=64"}, ""}, Kind{"Large", "1000", {"mb=256"}, ""},
                      Kind{"Threads", "1000", {"mb=8", "threads=6"}, ""},
                      Kind{"SharedMemory", "1000", {"shm=/dev/shm/grid"}, ""},
                      Kind{"DeletedFile", "1000", {"deleted=/tmp/gone"}, ""},
                      Kind{"CarriedFile", "user", {"dir=/tmp/out", "file=/tmp/out/log", "lock=1"}, "/tmp/out"},
                      Kind{"Epoll", "1000", {"epoll=1"}, ""}),
    [](const auto& kind) { return kind.param.name; });

// Daemons close all three; a program that logs to a file may close one.
class Streams : public Checkpoint, public ::testing::WithParamInterface<std::string> {};

TEST_P(Streams, MayHaveBeenClosed) {
  const std::string& closed = GetParam();
  Pod first({.command = {"/gated", "steps=6", "exit=5", "closed=" + closed}});
  Pod second({});
  Pod third({});
  const auto stopped = first.expect(control::Stopped::kVerb);
  ASSERT_TRUE(stopped);
  const int pid = static_cast<int>(stopped->number("pid"));
  move(first, second, "move-1");
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(second.expect(control::Stopped::kVerb));
  move(second, third, "move-2");
  ASSERT_FALSE(HasFatalFailure());
  const auto exited = third.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->number("code"), 5);
  third.send(control::Bye::kVerb);
  EXPECT_EQ(third.wait(), 5);
  EXPECT_EQ(first.logs() + second.logs() + third.logs(), closed.contains('1') ? "" : steps(1, 6, pid));
  EXPECT_EQ(first.errors() + second.errors() + third.errors(), closed.contains('2') ? "" : checks(1, 6));
}

INSTANTIATE_TEST_SUITE_P(Programs, Streams, ::testing::Values("0", "1", "2", "01", "012"),
                         [](const auto& closed) { return "Closed" + closed.param; });

// The pod of a source that has moved away ends at once, whatever grace period the template specifies.
TEST_F(Checkpoint, DumpedSourceIgnoresTheGracePeriod) {
  Pod source({.command = {"/gated", "steps=4"}, .env = {{"BSP_GRACE_SECONDS", "1000"}}});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  ASSERT_EQ(dump_into(source, target, "move-1").verdict.verb, control::Dumped::kVerb);
  ::kill(source.init_pid(), SIGTERM);
  const auto exited = source.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(exited->number("signal"), SIGKILL);
  EXPECT_EQ(exited->text("message"),
            "killed by SIGKILL: its pod ended after its checkpoint was taken, as in every move");
}

// Everything on which the kernel bases decisions: before the dump, at the gate and in the next two pods.
class Identity : public Checkpoint, public ::testing::WithParamInterface<std::string> {};

TEST_P(Identity, IsUnchangedAfterAMove) {
  const std::vector<std::string> command{"/gated", "steps=6", "own=1", "threads=2"};
  // As a kubelet does for fsGroup and supplementalGroups.
  const std::vector<std::string> groups{"--group-add", "2222", "--group-add", "3333"};
  Pod first({.command = command, .user = GetParam(), .more = groups});
  ASSERT_TRUE(first.expect(control::Stopped::kVerb));
  const std::vector<std::string> before = first.program_identity();
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    EXPECT_THAT(before, Contains("status " + std::string(set) + ":\t0000000000000000"));
  EXPECT_THAT(before, Contains("status NoNewPrivs:\t1"));
  EXPECT_THAT(before, Contains("status Umask:\t0027"));
  EXPECT_THAT(before, Contains("cwd /tmp"));
  EXPECT_THAT(before, Contains(std::format("nice {}", ::getpriority(PRIO_PROCESS, 0) + 3)));
  EXPECT_THAT(before, Contains("oom_score_adj 700"));
  EXPECT_THAT(before, Contains(AllOf(StartsWith("status Groups:"), HasSubstr("2222 3333"), Not(HasSubstr(" 0 ")))));
  Pod second({.user = GetParam(), .more = groups});
  move(first, second, "move-1");
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(second.expect(control::Stopped::kVerb));
  EXPECT_EQ(second.program_identity(), before);
  Pod third({.user = GetParam(), .more = groups});
  move(second, third, "move-2");
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(third.expect(control::Exited::kVerb)) << third.logs() << third.errors();
}

// criu's warm-up forks; a child that outlived it would run beside the program for ever.
TEST(WarmUp, HoldsNoRankAfterARestoreInterruptedIt) {
  const std::string criu = testing::TempDir() + "criu-that-forks";
  std::ofstream(criu)
      << "#!/bin/sh\n[ \"$1\" = check ] && { (while :; do :; done) & wait; }\nexec /bsp/bin/criu \"$@\"\n";
  ASSERT_EQ(::chmod(criu.c_str(), 0755), 0);
  Pod first({.command = {"/gated", "steps=6"}});
  ASSERT_TRUE(first.expect(control::Stopped::kVerb));
  Pod second({.env = {{"BSP_CRIU", "/criu"}}, .more = {"-v", criu + ":/criu:ro"}});
  for (int i = 0; i < 1000 && second.find("criu").size() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_EQ(second.find("criu").size(), 2u) << "the warm-up has forked";
  move(first, second, "move-1");
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(second.expect(control::Stopped::kVerb));
  Pod third({});
  move(second, third, "move-2");
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(third.expect(control::Exited::kVerb)) << third.logs() << third.errors();
}

// Nodes differ in the limits that they give a container.
std::vector<std::string> ulimits(const std::string& limit) {
  // Podman's own defaults, which these replace, may exceed this machine's limits.
  return {"--ulimit", "nproc=4096:4096",
          "--ulimit", limit.starts_with("nofile") ? limit : "nofile=1024:1024",
          "--ulimit", limit};
}

struct Elsewhere {
  std::string name;
  std::vector<std::string> source;
  std::vector<std::string> target;
};
void PrintTo(const Elsewhere& elsewhere, std::ostream* out) { *out << elsewhere.name; }
class OtherNode : public Checkpoint, public ::testing::WithParamInterface<Elsewhere> {};

TEST_P(OtherNode, DoesNotCauseAFailure) {
  Pod first({.command = {"/gated", "steps=4"}, .more = GetParam().source});
  ASSERT_TRUE(first.expect(control::Stopped::kVerb));
  Pod second({.more = GetParam().target});
  move(first, second, "move-1");
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(second.expect(control::Exited::kVerb)) << second.logs() << second.errors();
}

INSTANTIATE_TEST_SUITE_P(
    Differs, OtherNode,
    ::testing::Values(Elsewhere{"OomScoreHigher", {"--oom-score-adj", "500"}, {"--oom-score-adj", "700"}},
                      Elsewhere{"OomScoreLower", {"--oom-score-adj", "700"}, {"--oom-score-adj", "500"}},
                      Elsewhere{"FewerFiles", ulimits("nofile=4096:4096"), ulimits("nofile=1024:1024")},
                      Elsewhere{"LessLockedMemory", ulimits("memlock=65536:65536"), ulimits("memlock=32768:32768")}),
    [](const auto& elsewhere) { return elsewhere.param.name; });

INSTANTIATE_TEST_SUITE_P(User, Identity, ::testing::Values("1000", "user", "0"),
                         [](const auto& user) { return "Is_" + user.param; });

}  // namespace
}  // namespace bsp::test
