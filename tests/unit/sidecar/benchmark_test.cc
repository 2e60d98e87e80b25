// The benchmark of the node's CPU: what it does, and when a sidecar runs it.
#include "sidecar/agent/benchmark.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <format>
#include <fstream>
#include <sstream>

#include "sidecar/ring/ring_access.h"
#include "tests/unit/sidecar/real_sidecar.h"

namespace bsp::sidecar {
namespace {

constexpr auto kBusyMachine = 100s;  // the benchmark has the lowest priority

std::string name_of(WorkKind kind) { return std::format("kind {}", static_cast<int>(kind)); }

// The least of some runs.
std::uint64_t cpu_ns_of(Benchmark& benchmark, WorkKind kind, std::uint32_t units) {
  std::uint64_t least = ~0ull;
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t before = thread_cpu_ns();
    benchmark.work(kind, units);
    least = std::min(least, thread_cpu_ns() - before);
  }
  return least;
}

TEST(Benchmark, DoesTheSameWorkEachTime) {
  Benchmark once = Benchmark::create().value(), again = Benchmark::create().value();
  std::uint64_t last = 0;
  for (const WorkKind kind : kWorkKinds)
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t digest = once.work(kind);
      EXPECT_EQ(again.work(kind), digest) << name_of(kind);
      EXPECT_NE(digest, last) << name_of(kind) << " changes what the digest is of";
      last = digest;
    }
  Benchmark at_once = Benchmark::create().value();
  for (const WorkKind kind : kWorkKinds) at_once.work(kind, 5);
  EXPECT_EQ(at_once.work(WorkKind::kInteger, 0), last) << "in slices or not";
  // Of this sequence on any CPU; another value here means that benchmarks of an older sidecar compare no longer.
  EXPECT_EQ(last, 13578754885362483936ull);
}

TEST(Benchmark, FourTimesTheWorkTakesFourTimesTheCpuTime) {
  Benchmark benchmark = Benchmark::create().value();
  for (const WorkKind kind : kWorkKinds) {
    const auto one = static_cast<double>(cpu_ns_of(benchmark, kind, 1));
    const auto four = static_cast<double>(cpu_ns_of(benchmark, kind, 4));
    std::printf("%s: %.0f us a unit\n", name_of(kind).c_str(), one / 1e3);
    EXPECT_GT(four, 2 * one) << name_of(kind);
    EXPECT_LT(four, 8 * one) << name_of(kind);
    const auto ns = static_cast<std::uint64_t>(one);
    EXPECT_TRUE(wire::is_plausible({.model = "", .integer_ns = ns, .floating_ns = ns, .memory_ns = ns})) << one;
  }
}

TEST(Benchmark, CountsCpuTimeAndNotWaiting) {
  const std::uint64_t before = thread_cpu_ns();
  std::this_thread::sleep_for(50ms);
  EXPECT_LT(thread_cpu_ns() - before, 40'000'000u);
}

TEST(Benchmark, ReadsTheModelOfAnyCpuinfo) {
  const auto model = [](const std::string& text) {
    std::istringstream in(text);
    return cpu_model(in);
  };
  EXPECT_EQ(
      model("processor\t: 0\nvendor_id\t: V\nmodel\t\t: 17\nmodel name\t: AMD  EPYC 9B14 \nmodel name\t: other\n"),
      "AMD EPYC 9B14");
  EXPECT_EQ(model(""), "");
  EXPECT_EQ(model("model name"), "");
  EXPECT_EQ(model("model name\t:\n"), "");
  EXPECT_EQ(model("model name\t: a\x01\x7f\xc3\xa4\"b\tc\n"), "a\"bc");
  EXPECT_EQ(model("model name\t: " + std::string(100'000, 'm')), std::string(wire::kMostCpuModel, 'm'));
  std::string long_one;
  for (int i = 0; i < 1000; ++i) long_one += "flags : fpu\n";
  EXPECT_EQ(model(long_one + "model name : late\n"), "") << "not the whole file of a large machine";
}

TEST(BenchmarkThread, FinishesByItselfOrEndsWhenAsked) {
  {
    BenchmarkThread thread;
    const auto limit = std::chrono::steady_clock::now() + kBusyMachine;
    while (!thread.result() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(1ms);
    ASSERT_TRUE(thread.result());
    EXPECT_TRUE(wire::is_plausible(*thread.result()));
  }
  BenchmarkThread stopped;
  stopped.stop();
  const int done = stopped.rounds();   // some, if this thread was held up
  std::this_thread::sleep_for(300ms);  // in which it would have finished on an idle machine
  EXPECT_LE(stopped.rounds(), done + 1);
  EXPECT_TRUE(!stopped.result() || stopped.rounds() >= BenchmarkThread::kEnough);
  const auto begun = std::chrono::steady_clock::now();
  {
    BenchmarkThread destroyed;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 30s);
}

// Under a CPU limit, or on a busy node, an epoch opens first.
TEST(BenchmarkThread, WhatItHasMeasuredWhenItIsStoppedIsEnough) {
  BenchmarkThread thread;
  const auto limit = std::chrono::steady_clock::now() + kBusyMachine;
  while (thread.rounds() < BenchmarkThread::kEnough && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(100us);
  thread.stop();
  while (!thread.result() && std::chrono::steady_clock::now() < limit) std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(thread.result());
  std::printf("after %d rounds\n", thread.rounds());
  EXPECT_TRUE(wire::is_plausible(*thread.result()));
}

TEST(SidecarBenchmark, IsReportedOnceAndOutlivesTheSidecar) {
  RealSidecar sidecar;
  sidecar.wait_until([](const auto& s) { return s.cpu.has_value(); }, kBusyMachine);
  const wire::RankStatus first = sidecar.status();
  EXPECT_TRUE(wire::is_plausible(*first.cpu));
  EXPECT_EQ(sidecar.status().version, first.version) << "it stays the same";
  sidecar.restart();
  EXPECT_EQ(sidecar.status().cpu, first.cpu) << "at once, so it isn't measured again";
}

wire::EpochPlan epoch_one() {
  return {.epoch = 1,
          .pmix_namespace = "uid-e1",
          .sets = {"slow"},
          .members = {{.rank = 0, .pod = kPod, .pod_uid = "u", .address = "127.0.0.1:1", .set = 0}}};
}

// Its figures would be wrong, and it takes time from the program.
TEST(SidecarBenchmark, DoesNotRunBesideAProgram) {
  RealSidecar sidecar;
  sidecar.connect_init({.uid = ::getuid(), .gid = ::getgid(), .pid = 7, .state = control::ProgramState::kRunning});
  sidecar.wait_until([](const auto& s) { return s.init_connected; });
  ASSERT_TRUE(sidecar.ask(wire::kPrepareEpoch, json(epoch_one())));
  ASSERT_TRUE(sidecar.ask(wire::kOpenEpoch, {{"epoch", 1}}));
  const auto threads = [] {
    const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  sidecar.restart([](json& state) { state["cpu"] = json::object(); });  // as if it had not finished before
  const auto begun = threads();
  EXPECT_FALSE(sidecar.status().cpu);
  sidecar.restart([](json& state) {
    state.erase("opened");
    state["seats"][0].erase("opened");
  });
  sidecar.wait_until([](const auto& s) { return s.cpu.has_value(); }, kBusyMachine);
  EXPECT_EQ(threads(), begun) << "there was no benchmark's thread, either";
}

// Leaves this process no room for the benchmark's buffer, nor for the stack of a new thread; other things are small.
void limit_memory() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) + (3 << 20);
  const rlimit limit{most, most};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
}

// In a process of its own.
struct BenchmarkWithoutMemory : ::testing::Test {
  BenchmarkWithoutMemory() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(BenchmarkWithoutMemory, IsAnErrorThatNamesTheBuffer) {
  const auto create = [] {
    limit_memory();
    const auto benchmark = Benchmark::create();
    std::fputs(benchmark ? "there is room" : benchmark.error().message.c_str(), stderr);
    std::_Exit(0);
  };
  EXPECT_EXIT(create(), ::testing::ExitedWithCode(0), "the benchmark's buffer: Cannot allocate memory");
}

TEST_F(BenchmarkWithoutMemory, NeedsNoThread) {
  const auto begin = [] {
    limit_memory();
    const BenchmarkThread thread;
    std::_Exit(thread.result() ? 1 : 0);
  };
  EXPECT_EXIT(begin(), ::testing::ExitedWithCode(0), "no benchmark of the CPU.*Resource temporarily unavailable");
}

TEST_F(BenchmarkWithoutMemory, TheSidecarWorksAsWithoutABenchmark) {
  const auto run = [] {
    {
      RealSidecar sidecar;
      if (!sidecar.ask(wire::kPrepareEpoch, json(epoch_one()))) std::_Exit(2);  // so that it has saved its state
      sidecar.restart([](json& state) {
        state["cpu"] = json::object();
        limit_memory();  // the threads get the stacks of the sidecar that has ended
      });
      for (int i = 0; i < 3; ++i)
        if (sidecar.status().cpu) std::_Exit(1);
      if (!sidecar.ask(wire::kPrepareEpoch, json(epoch_one()))) std::_Exit(3);
    }
    std::_Exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), "no benchmark of the CPU.*the benchmark's buffer");
}

}  // namespace
}  // namespace bsp::sidecar
