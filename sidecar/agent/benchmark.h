// A short benchmark of the node's CPU: what CPU time is worth here, to be compared with other nodes.
//
// A unit of each kind is the same work everywhere, and the same instructions: plain C++ for x86-64's baseline, without FMA and
// without anything that is selected by CPU feature.
//
//   integer    a chain of shifts and multiplications (xorshift*), each step needs the last one's result
//   floating   four independent chains of multiply and add
//   memory     4 MiB read and written: more than the caches of one core hold (L2: up to 2 MiB), and little of the sidecar's memory
//
// The least CPU time of many runs counts: other programs only ever make a run longer. CPU time, because a sidecar may have a
// CPU limit of a few thousandths of a core, under which a millisecond takes seconds.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>

#include "base/core/error.h"
#include "crds/wire.h"

namespace bsp::sidecar {

enum class WorkKind : std::uint8_t { kInteger, kFloating, kMemory };
inline constexpr std::array kWorkKinds{WorkKind::kInteger, WorkKind::kFloating, WorkKind::kMemory};

class Benchmark {
 public:
  static Result<Benchmark> create();
  Benchmark(Benchmark&& other) noexcept;
  Benchmark& operator=(Benchmark&&) = delete;
  ~Benchmark();

  // Does so many units. The digest is of all that was computed since create(): by the same calls, the same on every CPU.
  std::uint64_t work(WorkKind kind, std::uint32_t units = 1);

 private:
  explicit Benchmark(std::span<std::uint64_t> buffer);
  std::span<std::uint64_t> buffer_;
  std::uint64_t integer_, memory_ = 0;
  std::array<double, 4> floating_;
};

// Of the calling thread.
std::uint64_t thread_cpu_ns();

// From the first processor's entry in /proc/cpuinfo; only printable ASCII, at most wire::kMostCpuModel characters. "": unknown.
std::string cpu_model(std::istream& cpuinfo);

// Runs the benchmark once, in a thread of the lowest priority: some 20 ms of CPU time in slices of a fifth of a millisecond. After
// a slice that was held up, by a CPU limit or a busy node, the thread pauses for as long, so that the sidecar's other threads
// have at least half of what the limit allows. So it may take longer than an epoch takes to open: then what kEnough rounds have
// measured is the result.
class BenchmarkThread {
 public:
  static constexpr int kRounds = 32;  // a unit of each kind
  static constexpr int kEnough = 6;   // of them

  BenchmarkThread();
  BenchmarkThread(const BenchmarkThread&) = delete;
  BenchmarkThread& operator=(const BenchmarkThread&) = delete;
  // Ends it after the slice that runs; without a result if there were too few rounds. The destructor does so too, and waits until the
  // thread has ended: a slice at most.
  void stop() { thread_.request_stop(); }
  // Once it has finished, or has been stopped after enough rounds.
  [[nodiscard]] std::optional<wire::CpuBenchmark> result() const;
  [[nodiscard]] int rounds() const { return rounds_; }  // done so far

 private:
  void run(const std::stop_token& stop);
  void pause(const std::stop_token& stop, std::chrono::nanoseconds time);

  mutable std::mutex mutex_;
  std::condition_variable_any never_;  // only a request to stop ends a pause early
  std::optional<wire::CpuBenchmark> result_;
  std::atomic<int> rounds_ = 0;
  std::jthread thread_;
};

}  // namespace bsp::sidecar
