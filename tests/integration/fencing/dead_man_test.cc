// A rank whose sidecar doesn't live long enough to end the program: bsp-init stops the program before another copy
// may start, but not when the rank is only without its sidecar for a while. Uses real sidecars, a real bsp-init and a
// program that stamps (tests/audit) every 2 ms; the test plays the operator and kills.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "crds/fencing.h"
#include "sidecar/agent/collect/ring_file.h"
#include "sidecar/ring/ring_access.h"
#include "tests/mpi/epochs/cluster.h"

namespace bsp::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using Steady = std::chrono::steady_clock;

constexpr std::uint32_t kRank = 1;  // the rank with a program; it asks rank 0 when the operator is silent

class DeadMan : public testing::Test {
 protected:
  void start(std::chrono::milliseconds limit, std::uint32_t ranks = 3, bool open = true) {
    limit_ = limit;
    cluster.emplace(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) start_sidecar(rank);
    const std::string here = cluster->run_dir(own_rank());
    // In a separate directory without the shim.
    std::filesystem::copy(BSP_BINARY_DIR "/bin/bsp-init", here + "/bsp-init");
    stamps = here + "/stamps";
    init = Process({here + "/bsp-init", "--", stamper(), stamps, "1", "job-r1-g1"},
                   {std::string("BSP_RUN_DIR=") + here, limit_setting()}, log_file());
    wait_for("the program", [&] { return count() > 0; });
    if (!open) return;
    cluster->prepare(1);
    spoke = Steady::now();
    cluster->open(1);
  }
  [[nodiscard]] std::uint32_t own_rank() const { return cluster->ranks() > kRank ? kRank : 0; }
  [[nodiscard]] std::string limit_setting() const { return std::format("{}={}", fencing::kEnvLimit, limit_.count()); }
  void start_sidecar(std::uint32_t rank) {
    cluster->start_sidecar(rank, {limit_setting()});
    auto ring = collect::RingFile::open(cluster->run_dir(rank) + "/ring");
    BSP_RING_STORE((*ring)->state, BSP_RANK_RUNNING);
  }
  void kill_sidecar() { cluster->sidecars[own_rank()] = Process(); }
  void operator_speaks() {
    for (std::uint32_t rank = 0; rank < cluster->ranks(); ++rank)
      if (cluster->sidecars[rank].running()) cluster->call(rank, wire::kStatus);
  }

  static std::string stamper() { return BSP_BINARY_DIR "/bin/stamper"; }
  [[nodiscard]] std::string log_file() const { return cluster->run_dir(own_rank()) + "/init.log"; }
  [[nodiscard]] std::string log() const {
    std::ifstream file(log_file());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  [[nodiscard]] std::uintmax_t count() const {
    std::error_code missing;
    const auto size = std::filesystem::file_size(stamps, missing);
    return missing ? 0 : size;
  }
  [[nodiscard]] bool is_stopped() const { return log().contains("the program is stopped until one does"); }
  void wait_for(const char* what, const std::function<bool()>& condition, Steady::duration limit = 60s) {
    for (const auto deadline = Steady::now() + limit; !condition(); std::this_thread::sleep_for(2ms))
      if (Steady::now() > deadline) throw std::runtime_error(std::string(what) + " did not come\n" + log());
  }
  void wait_for_progress() {
    wait_for("progress", [this, before = count()] { return count() > before; });
  }

  std::chrono::milliseconds limit_{};
  std::optional<Cluster> cluster;
  Process init;
  std::string stamps;
  Steady::time_point spoke;  // when the operator last spoke
};

enum class Sidecar { kIsGone, kCrashLoops, kHangs };
class CutOff : public DeadMan, public testing::WithParamInterface<Sidecar> {};

// The operator, which hears nothing from the pod, restarts the rank as early as it may.
TEST_P(CutOff, InitStopsTheProgramBeforeASecondCopyStarts) {
  start(3s);
  const auto again = spoke + limit_ * ((fencing::kLimit + fencing::kMargin) / fencing::kLimit);
  // The pod is cut off: a sidecar that lives for a moment hears no peer, so it can't vouch for the pod.
  for (std::uint32_t rank = 0; rank < cluster->ranks(); ++rank)
    if (rank != kRank) cluster->sidecars[rank] = Process();
  if (GetParam() == Sidecar::kHangs) {
    cluster->sidecars[kRank].signal(SIGSTOP);
  } else {
    kill_sidecar();
    int lives = 0;
    while (GetParam() == Sidecar::kCrashLoops && Steady::now() < again) {
      start_sidecar(kRank);                                      // it lives long enough to speak to bsp-init
      if (++lives % 2 == 0) std::this_thread::sleep_for(500ms);  // long enough to ask all peers
      kill_sidecar();
    }
  }
  std::this_thread::sleep_until(again);
  const auto before = count();
  Process second({stamper(), stamps, "1", "job-r1-g2"}, {}, log_file());
  wait_for("the second copy", [&] { return count() > before + 4096; });
  second = Process();
  // A sidecar that lived long enough has ended it itself.
  EXPECT_TRUE(is_stopped() || log().contains("the program was killed: this pod is cut off")) << log();
  EXPECT_EQ(std::system(("python3 -B " BSP_SOURCE_DIR "/tests/audit/audit.py " + stamps).c_str()), 0) << log();
}
INSTANTIATE_TEST_SUITE_P(Its, CutOff, testing::Values(Sidecar::kIsGone, Sidecar::kCrashLoops, Sidecar::kHangs),
                         [](const auto& sidecar) {
                           return sidecar.param == Sidecar::kIsGone       ? "SidecarIsGone"
                                  : sidecar.param == Sidecar::kCrashLoops ? "SidecarCrashLoops"
                                                                          : "SidecarHangs";
                         });

TEST_F(DeadMan, KillsAProgramWhoseSidecarNeverReturns) {
  start(300ms);
  kill_sidecar();
  const int status = init.wait(60s);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGKILL);
  EXPECT_THAT(log(), HasSubstr("the program was killed: for 3 s no sidecar has vouched that this pod is not cut off"));
}

TEST_F(DeadMan, ContinuesTheProgramOnceASidecarVouches) {
  start(6s);
  kill_sidecar();
  wait_for("the stop", [this] { return is_stopped(); });
  auto before = count();
  std::this_thread::sleep_for(300ms);  // nothing must happen in this time
  EXPECT_EQ(count(), before);
  operator_speaks();  // to the peers: else they say, before it has spoken to the new sidecar, that they are cut off as well
  start_sidecar(kRank);
  operator_speaks();
  wait_for_progress();
  EXPECT_THAT(log(), HasSubstr("a sidecar vouches for this pod again: the program continues"));
  // It is still watched.
  kill_sidecar();
  wait_for("the second stop", [this] {
    const std::string text = log();
    const auto first = text.find("the program is stopped");
    return text.find("the program is stopped", first + 1) != std::string::npos;
  });
}

TEST_F(DeadMan, LeavesTheProgramRunningWhileItsSidecarRestarts) {
  start(3s);
  for (int times = 0; times < 3; ++times) {
    kill_sidecar();
    std::this_thread::sleep_for(limit_ / 3);  // as long as the kubelet may take
    start_sidecar(kRank);
    for (const auto until = Steady::now() + limit_; Steady::now() < until; std::this_thread::sleep_for(limit_ / 15))
      operator_speaks();
  }
  wait_for_progress();
  EXPECT_THAT(log(), Not(HasSubstr("stopped")));
}

TEST_F(DeadMan, LeavesAProgramOutsideAnEpochRunning) {
  start(500ms, 3, false);
  kill_sidecar();
  std::this_thread::sleep_for(6 * limit_);
  wait_for_progress();
  EXPECT_THAT(log(), Not(HasSubstr("stopped")));
}

// The rank couldn't be started a second time: the operator would have to know of its end first.
TEST_F(DeadMan, LeavesTheOnlyRankOfAJobRunning) {
  start(500ms, 1);
  kill_sidecar();
  std::this_thread::sleep_for(6 * limit_);
  wait_for_progress();
  EXPECT_THAT(log(), Not(HasSubstr("stopped")));
}

}  // namespace
}  // namespace bsp::test
