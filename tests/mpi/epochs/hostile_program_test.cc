// A program that misuses everything it shares with a real sidecar: it overwrites, truncates and removes the ring, and
// replaces names in the run directory by FIFOs, links and directories. The sidecar neither hangs nor crashes nor
// grows, and still ends the program of a pod that is cut off.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/net/address.h"
#include "crds/fencing.h"
#include "crds/names.h"
#include "sidecar/ring/ring.h"
#include "tests/integration/relay/fake_init.h"
#include "tests/mpi/epochs/cluster.h"

namespace bsp::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// Two ranks in an open epoch; the program is rank 1's.
class HostileProgram : public testing::Test {
 protected:
  HostileProgram() : cluster_(2) {
    for (std::uint32_t r = 0; r < 2; ++r) cluster_.start_sidecar(r, {std::format("{}=3000", fencing::kEnvLimit)});
    init_ = std::make_unique<FakeInit>(cluster_.run_dir(1), control::ProgramState::kRunning);
    cluster_.prepare(1);
    cluster_.open(1);
    kib_ = cluster_.sidecars[1].resident_kib();
  }
  [[nodiscard]] fs::path in_run_dir(std::string_view name) const { return fs::path(cluster_.run_dir(1)) / name; }

  // Sends every verb that reads the ring, in random states; refusals are as good as answers.
  void ask_everything(std::mt19937_64& random) {
    for (const char* verb : {wire::kStatus, wire::kReport, wire::kArmGate, wire::kCommitGate, wire::kCancelGate}) {
      auto answer = cluster_.try_call(1, verb, {{"since", random()}, {"superstep", random() >> (random() % 64)}});
      if (answer) continue;
      EXPECT_NE(answer.error().code, ErrorCode::kTimeout) << verb << ": " << answer.error().message << cluster_.log(1);
      EXPECT_NE(answer.error().code, ErrorCode::kUnavailable)
          << verb << ": " << answer.error().message << cluster_.log(1);
    }
  }
  void expect_alive() {
    auto answer = cluster_.try_call(1, wire::kStatus);
    ASSERT_TRUE(answer) << answer.error().message << "\n" << cluster_.log(1);
    EXPECT_LT(cluster_.sidecars[1].resident_kib(), kib_ + (16 << 10));
  }
  // Neither the operator nor rank 0 is heard any more.
  void expect_fenced() {
    cluster_.sidecars[0] = {};
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    control::Message message;
    while ((message = init_->next()).verb != control::Kill::kVerb && std::chrono::steady_clock::now() < deadline) {
    }
    EXPECT_EQ(message.verb, control::Kill::kVerb) << cluster_.log(1);
    EXPECT_NE(message.text("reason").find("cut off"), std::string::npos);
  }

  Cluster cluster_;
  std::unique_ptr<FakeInit> init_;
  long kib_ = 0;
};

TEST_F(HostileProgram, OverwritesTheRing) {
  const Fd fd(::open(in_run_dir("ring").c_str(), O_RDWR));
  auto* const ring =
      static_cast<std::uint64_t*>(::mmap(nullptr, sizeof(bsp_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
  ASSERT_NE(ring, MAP_FAILED);
  std::atomic<bool> enough = false;
  std::thread scribbler([&] {
    std::mt19937_64 random(4);
    constexpr std::size_t kWords = sizeof(bsp_ring) / 8, kHeader = offsetof(bsp_ring, records) / 8;
    while (!enough) {
      // Mostly the header, with plausible values: small, all bits, one bit, near the limits.
      const std::size_t at = random() % 4 != 0 ? random() % kHeader : random() % kWords;
      const std::uint64_t value[] = {random() % 8, ~random() % 8, 1ull << (random() % 64), random(), ~0ull, 0};
      __atomic_store_n(ring + at, value[random() % std::size(value)], __ATOMIC_RELAXED);
    }
  });
  std::mt19937_64 random(5);
  for (int round = 0; round < 300 && !HasFailure(); ++round) ask_everything(random);
  expect_alive();
  // The program keeps writing meanwhile, but finally reports that it is running.
  expect_fenced();
  enough = true;
  scribbler.join();
  ::munmap(ring, sizeof(bsp_ring));
}

TEST_F(HostileProgram, TruncatesTheRing) {
  std::mt19937_64 random(6);
  for (const off_t size : {off_t{4096}, off_t{100}, off_t{0}}) {
    ASSERT_EQ(::truncate(in_run_dir("ring").c_str(), size), 0);
    ask_everything(random);
    expect_alive();
  }
  EXPECT_NE(cluster_.call(1, wire::kStatus).header.at("blocked_reason").get<std::string>().find("damaged"),
            std::string::npos);
  const auto armed = cluster_.try_call(1, wire::kArmGate, {{"superstep", 5}});
  ASSERT_FALSE(armed);
  EXPECT_EQ(armed.error().code, ErrorCode::kRefused);
  expect_fenced();
}

TEST_F(HostileProgram, ReplacesEveryFile) {
  std::mt19937_64 random(7);
  const auto put = [&](const fs::path& path) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
    switch (random() % 4) {
      case 0:
        (void)::mkfifo(path.c_str(), 0666);
        break;
      case 1:
        fs::create_symlink(random() % 2 ? fs::path("/dev/zero") : path, path, ignored);
        break;
      case 2:
        fs::create_directory(path, ignored);
        break;
      default:
        break;  // it has ended
    }
  };
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    for (const char* name : {"ring", "ring.new", "epoch", "epoch.new", "state", "state.new", "fresh", "fresh.new",
                             "sidecar/state", "sidecar/fresh", "sidecar/state.new", "sidecar/fresh.new", "control"})
      put(in_run_dir(name));
    if (round % 5 == 4) put(in_run_dir("sidecar"));
    if (round % 5 == 4) put(in_run_dir("images"));
    // Saves the state, writes the descriptor.
    const auto epoch = static_cast<std::uint64_t>(2 + round);
    (void)cluster_.try_call(1, wire::kPrepareEpoch, cluster_.plan(epoch));
    (void)cluster_.try_call(1, wire::kOpenEpoch, {{"epoch", epoch}});
    ask_everything(random);
    expect_alive();
  }
  expect_fenced();
}

// What a sidecar finds that is started then: it starts, or exits with an error; it never waits.
TEST_F(HostileProgram, ReplacesFilesBeforeTheNextSidecarStarts) {
  std::mt19937_64 random(8);
  for (const char* name : {"ring", "sidecar/state", "sidecar/fresh", "epoch"})
    for (int kind = 0; kind < 4; ++kind) {
      cluster_.sidecars[1] = {};
      const fs::path path = in_run_dir(name);
      std::error_code ignored;
      fs::remove_all(path, ignored);
      if (kind == 0) (void)::mkfifo(path.c_str(), 0666);
      if (kind == 1) fs::create_symlink("/dev/zero", path);
      if (kind == 2) fs::create_directory(path);
      if (kind == 3) std::ofstream(path) << std::string(1 << 20, '[');
      if (kind == 2 && std::string_view(name) == "ring") {
        // A directory can't be replaced.
        Process alone({BSP_BINARY_DIR "/bin/bsp-sidecar"},
                      {std::format("{}=1", names::kEnvRank), std::format("{}=2", names::kEnvRanks),
                       std::format("{}={}", names::kEnvPod, cluster_.pod(1)),
                       std::format("{}={}", names::kEnvListen, cluster_.address(1)),
                       std::format("{}={}.tls", names::kEnvTlsDir, cluster_.run_dir(1)),
                       std::format("{}={}", names::kEnvRunDir, cluster_.run_dir(1))},
                      cluster_.run_dir(1) + ".log");
        EXPECT_EQ(alone.wait(30s), 1 << 8);
        fs::remove_all(path, ignored);
        continue;
      }
      cluster_.start_sidecar(1, {std::format("{}=3000", fencing::kEnvLimit)});
      expect_alive();
      ask_everything(random);
    }
}

TEST_F(HostileProgram, FloodsTheControlSocket) {
  // A program that is root in its container can do this: it may connect as bsp-init. Several senders on one socket
  // keep it full.
  std::atomic<bool> enough = false;
  FakeInit flood(cluster_.run_dir(1), control::ProgramState::kRunning);
  std::vector<std::thread> senders;
  for (int i = 0; i < 8; ++i)
    senders.emplace_back([&] {
      while (!enough) flood.say(control::Throttled::kVerb, {{"ns", "1"}});
    });
  std::mt19937_64 random(9);
  for (int round = 0; round < 20 && !HasFailure(); ++round) ask_everything(random);
  expect_alive();
  enough = true;
  for (std::thread& sender : senders) sender.join();
}

TEST_F(HostileProgram, MisusesThePmixLibrary) {
  init_.reset();
  FakeInit other(cluster_.run_dir(0), control::ProgramState::kRunning);
  std::vector<Process> clients;
  for (std::uint32_t r = 0; r < 2; ++r)
    clients.emplace_back(std::vector<std::string>{BSP_BINARY_DIR "/bin/hostile_client", cluster_.run_dir(r)},
                         std::vector<std::string>{}, cluster_.run_dir(r) + ".client.log");
  for (Process& client : clients) {
    const std::string line = client.read_line(60s);
    EXPECT_TRUE(line.starts_with("survived: ")) << line << "\n" << cluster_.log(0) << cluster_.log(1);
    std::printf("%s\n", line.c_str());
  }
  for (std::uint32_t r = 0; r < 2; ++r) {
    const auto answer = cluster_.try_call(r, wire::kStatus);
    EXPECT_TRUE(answer) << answer.error().message << "\n" << cluster_.log(r);
    EXPECT_LT(cluster_.sidecars[r].resident_kib(), kib_ + (96 << 10));
  }
}

TEST(Liveness, AnswersFromTheLoopAndDropsIdleConnections) {
  Cluster cluster(1);
  const std::string address = cluster.address(0).substr(0, cluster.address(0).find(':')) + ":7601";
  cluster.start_sidecar(0, {std::format("{}={}", names::kEnvLiveness, address)});
  const auto connected = [&] {
    Fd socket = net::start_connect(net::parse_address(address).value()).value();
    pollfd entry{.fd = socket.get(), .events = POLLOUT, .revents = 0};
    EXPECT_EQ(::poll(&entry, 1, 10'000), 1);
    EXPECT_TRUE(net::finish_connect(socket.get()));
    return socket;
  };
  // Probes like the kubelet; empty if no answer comes.
  const auto probe = [&](int limit_ms) {
    const Fd socket = connected();
    const std::string_view request = "GET / HTTP/1.1\r\nHost: 10.0.0.1:7601\r\nUser-Agent: kube-probe/1.36\r\n\r\n";
    EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    pollfd entry{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, limit_ms) != 1) return std::string();
    char answer[256];
    const ssize_t n = ::recv(socket.get(), answer, sizeof answer, 0);
    return std::string(answer, n > 0 ? static_cast<std::size_t>(n) : 0);
  };
  EXPECT_TRUE(probe(10'000).starts_with("HTTP/1.1 200 OK\r\n"));
  std::vector<Fd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connected());
  EXPECT_TRUE(probe(10'000).starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_LT(cluster.sidecars[0].open_descriptors(), 60);
  // A loop that doesn't run answers no request, although the kernel still accepts connections.
  cluster.sidecars[0].signal(SIGSTOP);
  EXPECT_EQ(probe(1'000), "");
  cluster.sidecars[0].signal(SIGCONT);
  EXPECT_TRUE(probe(10'000).starts_with("HTTP/1.1 200 OK\r\n"));
}

}  // namespace
}  // namespace bsp::test
