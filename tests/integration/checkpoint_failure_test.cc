// Failing moves: the program still exists, stopped, and continues on request; a broken copy never runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/core/read_file.h"
#include "sidecar/init/files.h"
#include "tests/integration/checkpoint_harness.h"

namespace bsp::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::vector<std::string> kSmall{"/gated", "steps=6", "mb=8"};
const std::vector<std::string> kMiddle{"/gated", "steps=6", "mb=64"};

class BrokenMove : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    ASSERT_NE(test_image(&why), "") << why;
  }

  // The program must be stopped, continue on request, be movable at its next gate and end successfully.
  static void expect_alive(Pod& source) {
    // A pending stop takes effect when the program is next scheduled.
    for (int i = 0; i < 1000 && source.program_state() != 'T'; ++i) ::usleep(10'000);
    EXPECT_EQ(source.program_state(), 'T');
    EXPECT_EQ(source.errors_with("checked 2\n"), "checked 1\nchecked 2\n");  // it has not run meanwhile
    source.send(control::Continue::kVerb);
    ASSERT_TRUE(source.expect(control::Stopped::kVerb));
    Pod target({});
    move(source, target, "afterwards");
    ASSERT_FALSE(HasFatalFailure());
    const auto exited = target.expect(control::Exited::kVerb);
    ASSERT_TRUE(exited);
    EXPECT_EQ(exited->number("code"), 0) << target.errors();
    target.send(control::Bye::kVerb);
    EXPECT_EQ(target.wait(), 0);
    EXPECT_EQ(source.errors() + target.errors(), "checked 1\nchecked 2\nchecked 3\nchecked 4\nchecked 5\nchecked 6\n");
  }

  static std::size_t left_of(Pod& target) { return init::list_dir_if_any(target.images()).value().size(); }
};

TEST_F(BrokenMove, TargetIsFull) {
  Pod source({.command = kMiddle});
  Pod target({.run_size = "20m"});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  const MoveResult moved = dump_into(source, target, "full");
  EXPECT_EQ(moved.verdict.verb, control::DumpFailed::kVerb);
  ASSERT_TRUE(moved.receive_error);
  EXPECT_EQ(moved.receive_error->code, ErrorCode::kNoSpace);
  EXPECT_THAT(moved.receive_error->message, HasSubstr("No space left on device"));
  EXPECT_EQ(left_of(target), 0U);  // what was received is removed, so its space is free again
  expect_alive(source);
}

TEST_F(BrokenMove, TargetLacksAGroupOfTheProgram) {
  Pod source({.command = kSmall, .more = {"--group-add", "2222", "--group-add", "3333"}});
  Pod target({.more = {"--group-add", "2222"}});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  ASSERT_EQ(dump_into(source, target, "groups").verdict.verb, control::Dumped::kVerb);
  target.send(control::Restore::kVerb, {{"migration", "groups"}});
  const auto failed = target.expect(control::RestoreFailed::kVerb);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->text("message"), "the program has the supplementary groups 0 2222 3333, this pod has only 0 2222");
  EXPECT_EQ(failed->text("cause"), "refused");
  EXPECT_EQ(target.program_state(), '-');
}

// As the directory of a hostPath on another node. The shim holds MPI's files open for this check (sidecar/shim/objects/files.h).
TEST_F(BrokenMove, TargetHasOtherFilesOnAVolume) {
  const std::vector<std::string> volume{"--mount", "type=tmpfs,destination=/data,tmpfs-mode=0777"};
  std::vector<std::string> command = kSmall;
  command.emplace_back("file=/data/log");
  Pod source({.command = command, .more = volume});
  Pod target({.more = volume});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  ASSERT_EQ(dump_into(source, target, "volume").verdict.verb, control::Dumped::kVerb);
  target.send(control::Restore::kVerb, {{"migration", "volume"}});
  const auto failed = target.expect(control::RestoreFailed::kVerb);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->text("message"), HasSubstr("data/log"));
  EXPECT_EQ(source.program_state(), 'T');
  source.send(control::Continue::kVerb);
  EXPECT_TRUE(source.expect(control::Stopped::kVerb));
}

// PTRACE_O_SUSPEND_SECCOMP needs CAP_SYS_ADMIN outside of all user namespaces, whatever the filter lets through.
TEST_F(BrokenMove, SeccompFilterRunsButCantMove) {
  Pod source({.command = kSmall, .seccomp = true});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  EXPECT_THAT(source.program_identity(), ::testing::Contains("status Seccomp:\t2"));
  const MoveResult moved = dump_into(source, target, "filtered");
  EXPECT_EQ(moved.verdict.verb, control::DumpFailed::kVerb);
  EXPECT_EQ(moved.verdict.text("message"),
            "not migratable now: the program runs under a seccomp filter, which criu can't suspend");
  source.send(control::Continue::kVerb);
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
}

TEST_F(BrokenMove, NetworkBreaksDuringTheStream) {
  Pod source({.command = kMiddle});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  std::size_t seen = 0;
  const MoveResult moved = dump_into(source, target, "broken", [&](std::span<const std::byte> bytes) -> Result<void> {
    seen += bytes.size();
    if (seen > (8U << 20)) return fail(ErrorCode::kUnavailable, "connection reset");
    return {};
  });
  EXPECT_EQ(moved.verdict.verb, control::DumpFailed::kVerb);
  EXPECT_THAT(moved.verdict.text("message"), HasSubstr("criu dump failed: "));
  EXPECT_EQ(left_of(target), 0U);
  expect_alive(source);
}

TEST_F(BrokenMove, CriuIsKilledDuringTheDump) {
  Pod source({.command = kMiddle});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  std::size_t seen = 0;
  const MoveResult moved = dump_into(source, target, "killed", [&](std::span<const std::byte> bytes) -> Result<void> {
    seen += bytes.size();
    if (seen > (8U << 20)) {
      for (const int pid : source.find("criu")) ::kill(pid, SIGKILL);
    }
    return {};
  });
  EXPECT_EQ(moved.verdict.verb, control::DumpFailed::kVerb);
  EXPECT_THAT(moved.verdict.text("message"), HasSubstr("killed by signal 9"));
  EXPECT_FALSE(moved.sent);  // no End was sent, so the target can't take it for complete
  EXPECT_EQ(left_of(target), 0U);
  expect_alive(source);
}

TEST_F(BrokenMove, AbandonedByTheSidecar) {
  Pod source({.command = kMiddle});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  auto session = transfer::CaptureSession::open(source.images(), "abandoned");
  ASSERT_TRUE(session);
  // The capture socket is not read: criu hangs in the middle of its first larger file.
  source.send(control::Dump::kVerb, {{"migration", "abandoned"}});
  ASSERT_TRUE(source.expect(control::Dumping::kVerb));
  source.send(control::Abandon::kVerb, {{"migration", "abandoned"}});
  const auto failed = source.expect(control::DumpFailed::kVerb);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->text("message"), HasSubstr("abandoned"));
  session->reset();
  expect_alive(source);
}

// The epoch that lets the program run here was opened during its dump: the dump ends, then the program continues.
TEST_F(BrokenMove, ContinuedDuringTheDump) {
  Pod source({.command = kMiddle});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  auto session = transfer::CaptureSession::open(source.images(), "overtaken");
  ASSERT_TRUE(session);
  source.send(control::Dump::kVerb, {{"migration", "overtaken"}});
  ASSERT_TRUE(source.expect(control::Dumping::kVerb));
  source.send(control::Continue::kVerb);
  ASSERT_TRUE(source.expect(control::DumpFailed::kVerb));
  session->reset();
  ASSERT_TRUE(source.expect(control::Running::kVerb));
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  EXPECT_EQ(source.errors_with("checked 4\n"), "checked 1\nchecked 2\nchecked 3\nchecked 4\n");
}

TEST_F(BrokenMove, BitFlipsInTransit) {
  Pod source({.command = kSmall});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  auto session = transfer::CaptureSession::open(source.images(), "flipped");
  auto receiver = transfer::Receiver::open(target.images(), "flipped");
  ASSERT_TRUE(session && receiver);
  std::optional<Error> refused;
  bool flipped = false;
  std::jthread relay([&] {
    (void)(*session)->run([&](std::span<const std::byte> bytes) -> Result<void> {
      std::vector<std::byte> copy(bytes.begin(), bytes.end());
      if (copy.size() > 60'000 && !flipped) {
        copy[50'000] ^= std::byte{0x10};
        flipped = true;
      }
      auto fed = (*receiver)->feed(copy);
      if (!fed) refused = fed.error();
      if (!fed) return std::unexpected(fed.error());
      return {};
    });
  });
  source.send(control::Dump::kVerb, {{"migration", "flipped"}});
  const auto verdict = source.expect_any({control::Dumped::kVerb, control::DumpFailed::kVerb});
  ASSERT_TRUE(verdict);
  (*session)->finish();
  relay.join();
  ASSERT_TRUE(refused);
  EXPECT_THAT(refused->message, HasSubstr("has the wrong checksum"));
  EXPECT_FALSE((*receiver)->done());
  session->reset();
  expect_alive(source);
}

struct Blocker {
  std::string name;
  std::string argument;
  std::string reason;
};
class NotMigratable : public BrokenMove, public ::testing::WithParamInterface<Blocker> {};

TEST_P(NotMigratable, IsReportedAndTheProgramContinues) {
  std::vector<std::string> command = kSmall;
  command.push_back(GetParam().argument);
  Pod source({.command = command});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  const MoveResult moved = dump_into(source, target, "blocked");
  EXPECT_EQ(moved.verdict.verb, control::DumpFailed::kVerb);
  EXPECT_THAT(moved.verdict.text("message"), HasSubstr("not migratable now: "));
  EXPECT_THAT(moved.verdict.text("message"), HasSubstr(GetParam().reason));
  EXPECT_EQ(source.program_state(), 'T');
  source.send(control::Continue::kVerb);
  EXPECT_TRUE(source.expect(control::Stopped::kVerb));
}

INSTANTIATE_TEST_SUITE_P(Things, NotMigratable,
                         ::testing::Values(Blocker{"Socket", "socket=1", "is an open socket"},
                                           Blocker{"Child", "child=1", "another process"}),
                         [](const auto& tested) { return tested.param.name; });

TEST_F(BrokenMove, OnlyAStoppedProgramIsDumped) {
  Pod source({.command = {"/bin/sh", "-c", "while :; do :; done"}});
  ASSERT_TRUE(source.expect(control::Running::kVerb));
  source.send(control::Dump::kVerb, {{"migration", "early"}});
  const auto failed = source.expect(control::DumpFailed::kVerb);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->text("message"), HasSubstr("not stopped at a gate"));
}

// A waiting pod survives a broken checkpoint and accepts the next one.
TEST_F(BrokenMove, RetryAfterAFailedRestore) {
  Pod source({.command = kSmall});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  ASSERT_TRUE(dump_into(source, target, "damaged").sent);
  const std::string inventory = target.images() + "/damaged/pstree.img";
  std::filesystem::resize_file(inventory, 10);
  target.send(control::Restore::kVerb, {{"migration", "damaged"}});
  const auto failed = target.expect(control::RestoreFailed::kVerb);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->text("message"), HasSubstr("criu restore failed: "));
  EXPECT_EQ(failed->text("cause"), "image");
  EXPECT_THAT(target.find("gated"), IsEmpty());
  EXPECT_THAT(target.find("criu"), IsEmpty());
  EXPECT_EQ(source.program_state(), 'T');
  move(source, target, "sound");
  EXPECT_TRUE(target.expect(control::Stopped::kVerb));
}

TEST_F(BrokenMove, CriuIsKilledDuringTheRestore) {
  Pod source({.command = kMiddle});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  ASSERT_TRUE(dump_into(source, target, "one").sent);
  ASSERT_TRUE(target.expect(to_string(control::ProgramState::kWaiting)));
  for (int attempt = 0; attempt < 5; ++attempt) {
    target.send(control::Restore::kVerb, {{"migration", "one"}});
    // It may end before it is seen here; then there is nothing to kill.
    for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
         target.find("criu").empty() && std::chrono::steady_clock::now() < until;) {
    }
    for (int i = 0; i < attempt * 200'000; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
    for (const int pid : target.find("criu")) ::kill(pid, SIGKILL);
    const auto verdict = target.expect_any({control::RestoreFailed::kVerb, control::Restored::kVerb});
    ASSERT_TRUE(verdict);
    EXPECT_EQ(verdict->text("cause"), "") << "an accident: " << verdict->text("message");
    if (verdict->verb == control::Restored::kVerb) {  // it finished before criu could be killed
      EXPECT_EQ(target.program_state(), 'T');
      target.send(control::Discard::kVerb, {{"migration", "one"}});
      ASSERT_TRUE(target.expect(control::Discarded::kVerb));
    }
    EXPECT_THAT(target.find("gated"), IsEmpty());
  }
  target.send(control::Restore::kVerb, {{"migration", "one"}});
  ASSERT_TRUE(target.expect(control::Restored::kVerb));
  EXPECT_EQ(target.program_state(), 'T');
}

// Both copies exist between restore and commit; neither runs.
TEST_F(BrokenMove, RolledBackAfterTheRestore) {
  Pod source({.command = kSmall});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  ASSERT_TRUE(dump_into(source, target, "undone").sent);
  target.send(control::Restore::kVerb, {{"migration", "undone"}});
  ASSERT_TRUE(target.expect(control::Restored::kVerb));
  EXPECT_EQ(source.program_state(), 'T');
  EXPECT_EQ(target.program_state(), 'T');
  target.send(control::Discard::kVerb, {{"migration", "undone"}});
  ASSERT_TRUE(target.expect(control::Discarded::kVerb));
  EXPECT_THAT(target.find("gated"), IsEmpty());
  EXPECT_EQ(target.logs(), "");
  expect_alive(source);
}

// Of two copies that compute, one would be too many. A program that waits for its next epoch would stop again by itself, this one doesn't.
TEST_F(BrokenMove, SourceThatIsContinuedFromOutsideStopsAgain) {
  Pod source({.command = {"/bin/sh", "-c", "kill -STOP $$; while :; do :; done"}});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  ASSERT_EQ(dump_into(source, target, "continued").verdict.verb, control::Dumped::kVerb);
  ASSERT_EQ(source.find("sh").size(), 1U);
  const int program = source.find("sh").front();
  ::kill(program, SIGCONT);
  EXPECT_THAT(source.errors_with("stopped again"), HasSubstr("SIGCONT from outside has continued the program"));
  EXPECT_THAT(read_file("/proc/" + std::to_string(program) + "/status").value_or(""), HasSubstr("State:\tT"));
  source.disconnect();
  const auto hello = source.expect(control::Hello::kVerb);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->text("state"), to_string(control::ProgramState::kDumped));
  source.send(control::Continue::kVerb);
  EXPECT_TRUE(source.expect(control::Running::kVerb)) << "its move is rolled back";
}

TEST_F(BrokenMove, PidIsInUseInTheTarget) {
  Pod source({.command = kSmall});
  Pod target({});
  const auto stopped = source.expect(control::Stopped::kVerb);
  ASSERT_TRUE(stopped);
  ASSERT_TRUE(target.expect(to_string(control::ProgramState::kWaiting)));
  target.exec({"/bin/sh", "-c", "/occupy " + stopped->text("pid") + " </dev/null >/dev/null 2>&1 &"});
  const auto holds_it = [&](int pid) {
    const std::string status = read_file("/proc/" + std::to_string(pid) + "/status").value_or("");
    return status.find("NSpid:\t" + std::to_string(pid) + "\t" + stopped->text("pid") + "\n") != std::string::npos;
  };
  for (bool held = false; !held;) {
    for (const int pid : target.find("occupy")) held = held || holds_it(pid);
  }
  ASSERT_TRUE(dump_into(source, target, "taken").sent);
  target.send(control::Restore::kVerb, {{"migration", "taken"}});
  const auto failed = target.expect(control::RestoreFailed::kVerb);
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->text("message"),
              HasSubstr("PID " + stopped->text("pid") + " is already in use in this container"));
  EXPECT_EQ(failed->text("cause"), "") << "an accident";
  for (const int pid : target.find("occupy")) ::kill(pid, SIGKILL);
  while (!target.find("occupy").empty()) {
  }
  move(source, target, "taken-again");
}

// A sidecar may die and come back at any time: bsp-init reports the complete state to the new one.
TEST_F(BrokenMove, SidecarComesBack) {
  Pod source({.command = kSmall});
  Pod target({});
  ASSERT_TRUE(source.expect(control::Stopped::kVerb));
  ASSERT_TRUE(dump_into(source, target, "reported").sent);
  source.disconnect();
  const auto source_hello = source.expect(control::Hello::kVerb);
  ASSERT_TRUE(source_hello);
  EXPECT_EQ(source_hello->text("state"), to_string(control::ProgramState::kDumped));
  EXPECT_EQ(source_hello->text("migration"), "reported");
  target.send(control::Restore::kVerb, {{"migration", "reported"}});
  ASSERT_TRUE(target.expect(control::Restored::kVerb));
  target.disconnect();
  const auto target_hello = target.expect(control::Hello::kVerb);
  ASSERT_TRUE(target_hello);
  EXPECT_EQ(target_hello->text("state"), to_string(control::ProgramState::kRestored));
  EXPECT_EQ(target_hello->text("mode"), "restore");
  EXPECT_EQ(target_hello->text("pid"), source_hello->text("pid"));
  EXPECT_EQ(target.program_state(), 'T');
  // A repeated request has no effect.
  target.send(control::Restore::kVerb, {{"migration", "reported"}});
  EXPECT_TRUE(target.expect(control::Restored::kVerb));
}

}  // namespace
}  // namespace bsp::test
