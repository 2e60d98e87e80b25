// Two real sidecars and a checkpoint between them; the test plays bsp-init and the operator. What arrives is
// complete, and after every broken stream both ends can continue. Also tests who may send which verb.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "crds/fencing.h"
#include "crds/names.h"
#include "sidecar/agent/collect/ring_file.h"
#include "sidecar/ring/ring_access.h"
#include "sidecar/transfer/capture_client.h"
#include "tests/integration/relay/fake_init.h"
#include "tests/mpi/epochs/cluster.h"

namespace bsp::test {
namespace {

using namespace std::chrono_literals;
using wire::TransferPhase;

// As criu and bsp-init: sends one file after the other into the source's capture socket.
class Capture {
 public:
  explicit Capture(const std::string& run_dir) : client_(transfer::CaptureClient::connect(run_dir + "/images")) {}

  // Writes `size` bytes; false if the reader has closed the socket or the pipe.
  bool file(std::string_view name, std::size_t size, char fill) {
    if (!client_) return false;
    const auto pipe = client_->open_file(name);
    if (!pipe) return false;
    const std::string block(1 << 20, fill);
    while (size > 0) {
      const ssize_t n = ::write(pipe->get(), block.data(), std::min(size, block.size()));
      if (n <= 0) return false;
      size -= static_cast<std::size_t>(n);
    }
    return true;
  }

 private:
  Result<transfer::CaptureClient> client_;
};

class Relay : public testing::Test {
 protected:
  static constexpr std::uint32_t kSource = 0, kTarget = 1;

  void start(std::vector<std::string> source_faults = {}, std::vector<std::string> target_faults = {}) {
    ::signal(SIGPIPE, SIG_IGN);  // an abandoned capture closes its pipes
    cluster.start_sidecar(kSource, std::move(source_faults));
    cluster.start_sidecar(kTarget, std::move(target_faults));
    auto ring = collect::RingFile::open(cluster.run_dir(kSource) + "/ring");
    BSP_RING_STORE((*ring)->state, BSP_RANK_CLOSING);
    source.emplace(cluster.run_dir(kSource), control::ProgramState::kStopped);
    target.emplace(cluster.run_dir(kTarget), control::ProgramState::kWaiting);
    wait_for(kSource, [](const wire::RankStatus& s) { return s.phase == wire::RankPhase::kStopped; });
  }

  // The source's program computes; the target expects its checkpoint and restores it by itself.
  void start_computing() {
    ::signal(SIGPIPE, SIG_IGN);
    cluster.start_sidecar(kSource);
    cluster.start_sidecar(kTarget);
    set_state(BSP_RANK_RUNNING);
    source.emplace(cluster.run_dir(kSource), control::ProgramState::kRunning);
    target.emplace(cluster.run_dir(kTarget), control::ProgramState::kWaiting);
    wait_for(kSource, [](const wire::RankStatus& s) { return s.phase == wire::RankPhase::kRunning; });
    wait_for(kTarget, [](const wire::RankStatus& s) { return s.init_connected; });
    cluster.call(kTarget, wire::kReceive, {{"migration", "m1"}, {"from_pod", cluster.pod(kSource)}, {"restore", true}});
  }
  // The gate at superstep 5, with the order to move.
  void commit_with_order() {
    cluster.call(
        kSource, wire::kCommitGate,
        {{"superstep", 5},
         {"send", {{"migration", "m1"}, {"to_pod", cluster.pod(kTarget)}, {"to_address", cluster.address(kTarget)}}}});
  }
  // Acts as the shim and bsp-init; true once the sidecar has noticed it.
  wire::RankStatus stop_source() {
    set_state(BSP_RANK_CLOSING);
    source->say(control::Stopped::kVerb, {{"pid", "4711"}});
    return wait_for(kSource, [](const wire::RankStatus& s) { return s.phase == wire::RankPhase::kStopped; });
  }
  // The source's program is opening epoch 0 when its sidecar is killed; another one takes over.
  void lose_sidecar_while_opening() {
    start();
    for (std::uint32_t r : {kSource, kTarget}) cluster.call(r, wire::kPrepareEpoch, cluster.plan(0));
    cluster.call(kSource, wire::kOpenEpoch, {{"epoch", 0}});
    source->expect(control::Continue::kVerb);
    set_state(BSP_RANK_OPENING);
    cluster.sidecars[kSource].signal(SIGKILL);
    cluster.sidecars[kSource].wait(10s);
    cluster.start_sidecar(kSource);
    source.emplace(cluster.run_dir(kSource), control::ProgramState::kRunning);
  }
  void set_state(bsp_rank_state state) {
    auto ring = collect::RingFile::open(cluster.run_dir(kSource) + "/ring");
    BSP_RING_STORE((*ring)->state, static_cast<std::uint32_t>(state));
  }

  wire::RankStatus wait_for(std::uint32_t rank, const std::function<bool(const wire::RankStatus&)>& want) {
    auto deadline = std::chrono::steady_clock::now() + 30s;
    std::uint64_t version = 0;
    while (std::chrono::steady_clock::now() < deadline) {
      auto answer = cluster.call(rank, wire::kWatch, {{"version", version}, {"wait_ms", 1000}});
      auto status = wire::rank_status_from_json(answer.header);
      if (want(*status)) return *status;
      version = status->version;
    }
    ADD_FAILURE() << "rank " << rank << " did not get there\n" << cluster.log(rank);
    return {};
  }
  wire::RankStatus wait_for(std::uint32_t rank, TransferPhase phase) {
    return wait_for(rank, [=](const wire::RankStatus& s) { return s.transfer.phase == phase; });
  }

  void announce() { cluster.call(kTarget, wire::kReceive, {{"migration", "m1"}, {"from_pod", cluster.pod(kSource)}}); }
  void send() {
    cluster.call(kSource, wire::kSend,
                 {{"migration", "m1"}, {"to_pod", cluster.pod(kTarget)}, {"to_address", cluster.address(kTarget)}});
  }
  std::string received(const std::string& name) const { return cluster.run_dir(kTarget) + "/images/m1/" + name; }

  Cluster cluster{2};
  std::optional<FakeInit> source, target;
};

TEST_F(Relay, CheckpointArrivesCompleteAndIsRestored) {
  constexpr std::size_t kPages = 256u << 20;
  start();
  announce();
  announce();  // a repeated request has no effect
  send();
  send();
  source->expect(control::Dump::kVerb);
  auto begun = std::chrono::steady_clock::now();
  {
    Capture capture(cluster.run_dir(kSource));
    EXPECT_TRUE(capture.file("core-1.img", 1000, 'c'));
    EXPECT_TRUE(capture.file("pages-1.img", kPages, 'p'));
  }
  source->say(control::Dumped::kVerb, {{"migration", "m1"}, {"ns", "5000"}});
  auto sent = wait_for(kSource, TransferPhase::kSent);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf("%.0f MB/s\n", static_cast<double>(kPages) / took.count() / 1e6);
  EXPECT_EQ(sent.transfer.bytes, kPages + 1000);
  EXPECT_EQ(sent.transfer.files, 2u);
  EXPECT_EQ(sent.transfer.dump_ns, 5000u);
  wait_for(kTarget, TransferPhase::kReceived);
  EXPECT_EQ(std::filesystem::file_size(received("pages-1.img")), kPages);

  cluster.call(kTarget, wire::kRestore, {{"migration", "m1"}});
  EXPECT_EQ(target->expect(control::Restore::kVerb).text("migration"), "m1");
  target->say(control::Restored::kVerb, {{"migration", "m1"}, {"pid", "4711"}, {"ns", "7"}});
  auto restored = wait_for(kTarget, TransferPhase::kRestored);
  EXPECT_EQ(restored.phase, wire::RankPhase::kStopped);

  // In the next epoch only the pod that the plan names gets rank 0.
  auto plan = cluster.plan(1);
  plan.members[0].pod = "job-r0-g2";
  cluster.call(kSource, wire::kPrepareEpoch, plan);
  auto refused = cluster.try_call(kSource, wire::kOpenEpoch, {{"epoch", 1}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kRefused);
  // The target's pod is in the plan: it continues, once.
  cluster.call(kTarget, wire::kPrepareEpoch, cluster.plan(1));
  cluster.call(kTarget, wire::kOpenEpoch, {{"epoch", 1}});
  EXPECT_EQ(target->expect(control::Continue::kVerb).text("epoch"), "1");
  target->say(control::Running::kVerb, {{"pid", "4711"}});
  EXPECT_EQ(wait_for(kTarget, [](const auto& s) { return s.phase == wire::RankPhase::kOpening; }).phase,
            wire::RankPhase::kOpening);
  // A running copy can't be discarded.
  auto late = cluster.try_call(kTarget, wire::kDiscard, {{"migration", "m1"}});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kConflict);
}

// The copy dies after its epoch is committed, so another epoch names the source. Whoever has prepared that one
// doesn't open the previous one any more, though its openEpoch may still be in flight.
TEST_F(Relay, SourceContinuesInTheEpochAfterItsCopys) {
  start();
  announce();
  send();
  source->expect(control::Dump::kVerb);
  {
    Capture capture(cluster.run_dir(kSource));
    EXPECT_TRUE(capture.file("pages-1.img", 1 << 20, 'p'));
  }
  source->say(control::Dumped::kVerb, {{"migration", "m1"}, {"ns", "5000"}});
  wait_for(kSource, TransferPhase::kSent);
  EXPECT_EQ(wait_for(kSource, [](const auto&) { return true; }).admitted_epoch, 0u);
  // Epoch 1 gives rank 0 to the copy; the source may or may not hear of it.
  auto to_copy = cluster.plan(1);
  to_copy.members[0].pod = "job-r0-g2";
  cluster.call(kTarget, wire::kPrepareEpoch, to_copy);
  for (std::uint32_t rank : {kSource, kTarget}) cluster.call(rank, wire::kPrepareEpoch, cluster.plan(2));
  const auto promised = wait_for(kTarget, [](const auto& s) { return s.prepared_epoch == 2; });
  EXPECT_EQ(promised.admitted_epoch, 0u);
  const auto late = cluster.try_call(kTarget, wire::kOpenEpoch, {{"epoch", 1}});
  ASSERT_FALSE(late) << "it was on the way for long";
  EXPECT_EQ(late.error().code, ErrorCode::kConflict);
  EXPECT_THAT(late.error().message, testing::HasSubstr("epoch 2 has been prepared"));
  // Neither does one that doesn't remember who sent it.
  cluster.sidecars[kTarget].signal(SIGKILL);
  cluster.sidecars[kTarget].wait(10s);
  cluster.start_sidecar(kTarget);
  target.emplace(cluster.run_dir(kTarget), control::ProgramState::kWaiting);
  cluster.call(kTarget, wire::kPrepareEpoch, to_copy);
  EXPECT_FALSE(cluster.try_call(kTarget, wire::kOpenEpoch, {{"epoch", 1}}));

  cluster.call(kSource, wire::kOpenEpoch, {{"epoch", 2}});
  EXPECT_EQ(source->expect(control::Continue::kVerb).text("epoch"), "2");
  source->say(control::Running::kVerb, {{"pid", "4711"}});
  EXPECT_EQ(wait_for(kSource, [](const auto& s) { return s.phase == wire::RankPhase::kOpening; }).admitted_epoch, 2u);
  EXPECT_TRUE(cluster.try_call(kSource, wire::kOpenEpoch, {{"epoch", 2}})) << "a repeated request has no effect";
}

TEST_F(Relay, OrderedRankIsSentWhenItStopsAndRestoredWhenVerified) {
  start_computing();
  commit_with_order();
  commit_with_order();  // a repeated request has no effect
  EXPECT_EQ(wait_for(kSource, [](const auto&) { return true; }).transfer.phase, TransferPhase::kIdle) << "it computes";
  EXPECT_EQ(stop_source().transfer.phase, TransferPhase::kDumping);
  EXPECT_EQ(source->expect(control::Dump::kVerb).text("migration"), "m1");
  send();  // an operator that doesn't know of it
  {
    Capture capture(cluster.run_dir(kSource));
    EXPECT_TRUE(capture.file("pages-1.img", 1 << 20, 'p'));
  }
  source->say(control::Dumped::kVerb, {{"migration", "m1"}, {"ns", "5000"}});
  EXPECT_EQ(target->expect(control::Restore::kVerb).text("migration"), "m1");
  EXPECT_EQ(wait_for(kTarget, TransferPhase::kRestoring).transfer.bytes, 1u << 20);
  cluster.call(kTarget, wire::kRestore, {{"migration", "m1"}});
  target->say(control::Restored::kVerb, {{"migration", "m1"}, {"pid", "4711"}, {"ns", "7"}});
  EXPECT_EQ(wait_for(kTarget, TransferPhase::kRestored).phase, wire::RankPhase::kStopped)
      << "it continues only with an epoch";
  EXPECT_EQ(wait_for(kSource, TransferPhase::kSent).phase, wire::RankPhase::kStopped);
}

TEST_F(Relay, CancelledGateCancelsItsOrder) {
  start_computing();
  commit_with_order();
  cluster.call(kSource, wire::kCancelGate, {{"superstep", 5}});
  EXPECT_EQ(stop_source().transfer.phase, TransferPhase::kIdle) << "the ranks had agreed to stop before they heard";
  send();
  source->expect(control::Dump::kVerb);
}

TEST_F(Relay, NextGateWithoutAnOrderEndsThePreviousOrder) {
  start_computing();
  commit_with_order();
  cluster.call(kSource, wire::kCommitGate, {{"superstep", 5}});
  EXPECT_EQ(stop_source().transfer.phase, TransferPhase::kIdle);
}

TEST_F(Relay, OrderIsLostWithItsSidecar) {
  start_computing();
  commit_with_order();
  cluster.sidecars[kSource].signal(SIGKILL);
  cluster.sidecars[kSource].wait(10s);
  cluster.start_sidecar(kSource);
  source.emplace(cluster.run_dir(kSource), control::ProgramState::kRunning);
  EXPECT_EQ(stop_source().transfer.phase, TransferPhase::kIdle);
  send();
  source->expect(control::Dump::kVerb);
}

TEST_F(Relay, InvalidOrderCommitsNothing) {
  start_computing();
  auto answer = cluster.try_call(kSource, wire::kCommitGate, {{"superstep", 5}, {"send", {{"migration", "m1"}}}});
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("to_pod"), std::string::npos) << answer.error().message;
  EXPECT_EQ(cluster.call(kSource, wire::kStatus).header["gate_superstep"], 0);
}

TEST_F(Relay, FailedDumpFailsAtBothEnds) {
  start();
  announce();
  send();
  source->expect(control::Dump::kVerb);
  {
    Capture capture(cluster.run_dir(kSource));
    EXPECT_TRUE(capture.file("pages-1.img", 1 << 20, 'p'));
  }
  source->say(control::DumpFailed::kVerb, {{"migration", "m1"}, {"message", "criu has met an io_uring"}});
  EXPECT_NE(wait_for(kSource, TransferPhase::kFailed).transfer.error.find("io_uring"), std::string::npos);
  EXPECT_NE(wait_for(kTarget, TransferPhase::kFailed).transfer.error.find("io_uring"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(received("pages-1.img")));
  EXPECT_EQ(wait_for(kSource, [](const auto&) { return true; }).phase, wire::RankPhase::kStopped);
  // The same move may be retried.
  announce();
  send();
  source->expect(control::Dump::kVerb);
}

TEST_F(Relay, TargetRefusesAnUnexpectedCheckpoint) {
  start();
  send();
  EXPECT_NE(wait_for(kSource, TransferPhase::kFailed).transfer.error.find("no checkpoint of migration m1"),
            std::string::npos);
}

TEST_F(Relay, KilledTargetMakesCriuDetach) {
  start({}, {"BSP_FAULTS=transfer.receiving=kill"});
  announce();
  send();
  source->expect(control::Dump::kVerb);
  Capture capture(cluster.run_dir(kSource));
  (void)capture.file("pages-1.img", 256u << 20, 'p');
  source->expect(control::Abandon::kVerb);
  EXPECT_EQ(wait_for(kSource, [](const auto&) { return true; }).transfer.phase, TransferPhase::kDumping)
      << "failed is reported only when criu has detached";
  source->say(control::DumpFailed::kVerb, {{"migration", "m1"}, {"message", "killed"}});
  wait_for(kSource, TransferPhase::kFailed);
}

// The source notices it before criu has opened its first file.
TEST_F(Relay, KilledTargetBeforeTheDumpMakesCriuDetach) {
  start({"BSP_FAULTS=transfer.sending=stop:500"}, {"BSP_FAULTS=transfer.receiving=kill"});
  announce();
  send();
  source->expect(control::Dump::kVerb);
  source->expect(control::Abandon::kVerb);
  Capture capture(cluster.run_dir(kSource));
  EXPECT_FALSE(capture.file("pages-1.img", 1 << 20, 'p'));
  source->say(control::DumpFailed::kVerb, {{"migration", "m1"}, {"message", "killed"}});
  wait_for(kSource, TransferPhase::kFailed);
}

TEST_F(Relay, KilledSourceLeavesNoFiles) {
  start({"BSP_FAULTS=transfer.streaming=kill"});
  announce();
  send();
  source->expect(control::Dump::kVerb);
  Capture capture(cluster.run_dir(kSource));
  (void)capture.file("pages-1.img", 64u << 20, 'p');
  wait_for(kTarget, TransferPhase::kFailed);
  EXPECT_FALSE(std::filesystem::exists(received("pages-1.img")));
  // The source's sidecar comes back and knows that the stream is lost and that its program is still stopped.
  cluster.sidecars[kSource].wait(10s);
  cluster.start_sidecar(kSource);
  FakeInit again(cluster.run_dir(kSource), control::ProgramState::kDumping);
  again.expect(control::Abandon::kVerb);
  again.say(control::DumpFailed::kVerb, {{"migration", "m1"}, {"message", "killed"}});
  auto status = wait_for(kSource, [](const auto& s) { return s.phase == wire::RankPhase::kStopped; });
  EXPECT_EQ(status.transfer.phase, TransferPhase::kFailed);
}

TEST_F(Relay, DiscardEndsAnActiveStream) {
  start();
  announce();
  send();
  source->expect(control::Dump::kVerb);
  Capture capture(cluster.run_dir(kSource));
  EXPECT_TRUE(capture.file("core-1.img", 100, 'c'));
  cluster.call(kTarget, wire::kDiscard, {{"migration", "m1"}});
  EXPECT_EQ(wait_for(kTarget, [](const auto&) { return true; }).transfer.phase, TransferPhase::kIdle);
  EXPECT_FALSE(std::filesystem::exists(received("core-1.img")));
  (void)capture.file("pages-1.img", 64u << 20, 'p');
  source->expect(control::Abandon::kVerb);
  source->say(control::DumpFailed::kVerb, {{"migration", "m1"}, {"message", "killed"}});
  wait_for(kSource, TransferPhase::kFailed);
}

TEST_F(Relay, OnlyTheOperatorMaySendItsVerbs) {
  start();
  net::Link stranger(cluster.identity("job-r9-g1"), {cluster.address(kSource), cluster.pod(kSource)});
  for (const char* verb : {wire::kStatus, wire::kKill, wire::kOpenEpoch, wire::kReport, wire::kGather}) {
    auto answer = stranger.call(verb, {{"epoch", 0}, {"since", 0}, {"key", "k"}}, 5s);
    ASSERT_FALSE(answer) << verb;
    EXPECT_EQ(answer.error().code, ErrorCode::kRefused) << verb;
  }
  cluster.prepare(0);
  net::Link member(cluster.identity(cluster.pod(kTarget)), {cluster.address(kSource), cluster.pod(kSource)});
  EXPECT_TRUE(member.call(wire::kReport, {{"since", 0}}, 5s));
  EXPECT_FALSE(member.call(wire::kStatus, {}, 5s));
  EXPECT_FALSE(member.call(wire::kCheckpoint, {{"migration", "m1"}}, 5s));
}

TEST_F(Relay, UnknownVerbIsRefused) {
  start();
  cluster.prepare(0);
  net::Link member(cluster.identity(cluster.pod(kTarget)), {cluster.address(kSource), cluster.pod(kSource)});
  for (const char* verb : {"explode", "", "Report"}) {
    const auto of_operator = cluster.try_call(kSource, verb, {{"since", 0}});
    ASSERT_FALSE(of_operator) << verb;
    EXPECT_EQ(of_operator.error().code, ErrorCode::kInvalid) << verb;
    const auto of_member = member.call(verb, {{"since", 0}}, 5s);
    ASSERT_FALSE(of_member) << verb;
    EXPECT_EQ(of_member.error().code, ErrorCode::kInvalid) << verb;
  }
  for (const char* verb :
       {wire::kGather, wire::kDeliver, wire::kPing, wire::kModex, wire::kCheckpoint, fencing::kAlive})
    EXPECT_EQ(cluster.try_call(kSource, verb).error().code, ErrorCode::kRefused) << verb << " is for pods";
}

TEST_F(Relay, TheGateIsArmedThenCommitted) {
  start();
  auto error = [&](const char* verb, std::uint64_t superstep) {
    auto answer = cluster.try_call(kTarget, verb, {{"superstep", superstep}});
    return answer ? std::string("ok") : std::string(to_string(answer.error().code));
  };
  EXPECT_EQ(cluster.call(kTarget, wire::kArmGate, {{"superstep", 5}}).header["late"], false);
  EXPECT_EQ(error(wire::kArmGate, 7), "ok");
  EXPECT_EQ(error(wire::kCommitGate, 5), "Conflict");
  EXPECT_EQ(error(wire::kCancelGate, 0), "ok");
  EXPECT_EQ(error(wire::kArmGate, 8), "ok");
  EXPECT_EQ(error(wire::kCommitGate, 8), "ok");
  EXPECT_EQ(error(wire::kCommitGate, 8), "ok");
  EXPECT_EQ(error(wire::kArmGate, 9), "Conflict");
  // The ring, and the gate in it, outlive the sidecar.
  cluster.sidecars[kTarget].signal(SIGKILL);
  cluster.sidecars[kTarget].wait(10s);
  cluster.start_sidecar(kTarget);
  auto status = wire::rank_status_from_json(cluster.call(kTarget, wire::kStatus).header);
  EXPECT_EQ(status->gate_superstep, 8u);
  EXPECT_TRUE(status->gate_committed);
  // Only the ranks together may drop it: until they have, it stays, and can't be committed again.
  EXPECT_EQ(error(wire::kCancelGate, 7), "ok");  // another gate: no effect
  EXPECT_EQ(error(wire::kCommitGate, 8), "ok");
  EXPECT_EQ(error(wire::kCancelGate, 8), "ok");
  EXPECT_EQ(error(wire::kCommitGate, 8), "Conflict");
  EXPECT_EQ(cluster.call(kTarget, wire::kStatus).header["gate_superstep"], 8);
}

TEST_F(Relay, CommitMakesUpForALostArm) {
  start();
  EXPECT_TRUE(cluster.try_call(kTarget, wire::kCommitGate, {{"superstep", 5}}));
  EXPECT_TRUE(cluster.call(kTarget, wire::kStatus).header["gate_committed"].get<bool>());
}

// A rank is in MPI_Session_init when its sidecar is killed, and its PMIx server with it: it would wait for ever, and
// the others for it.
TEST_F(Relay, ProgramOpeningAnEpochWithAPreviousSidecarIsKilled) {
  lose_sidecar_while_opening();
  EXPECT_THAT(source->expect(control::Kill::kVerb).text("reason"), testing::HasSubstr("while MPI opened epoch 0"));
}

TEST_F(Relay, ProgramWithAnOpenEpochOutlivesItsSidecar) {
  lose_sidecar_while_opening();
  wait_for(kSource, [](const auto& s) { return s.init_connected && s.phase == wire::RankPhase::kOpening; });
  set_state(BSP_RANK_RUNNING);
  std::this_thread::sleep_for(4s);  // longer than its limit
  cluster.call(kSource, wire::kKill);
  EXPECT_EQ(source->expect(control::Kill::kVerb).text("reason"), "") << "only the operator ended it";
}

}  // namespace
}  // namespace bsp::test
