#include "sidecar/agent/benchmark.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/core/log.h"

namespace bsp::sidecar {
namespace {

constexpr std::uint32_t kSteps = 1 << 16;  // of a chain, for a unit
constexpr std::size_t kBufferWords = (4 << 20) / sizeof(std::uint64_t);
constexpr std::chrono::milliseconds kLongestPause{100};  // the period of a CPU limit

// Of this thread only, and allowed to any user. Not SCHED_IDLE, which may get no time at all. If it is refused, the benchmark still
// takes no more than its slices.
void lower_priority() { (void)::setpriority(PRIO_PROCESS, 0, 19); }

std::string model_here() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  return cpu_model(cpuinfo);
}

}  // namespace

Result<Benchmark> Benchmark::create() {
  // Not from malloc, which would keep it.
  void* memory =
      ::mmap(nullptr, kBufferWords * sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return fail_errno("the benchmark's buffer");
  // Whether two huge pages happen to be free must not count. A kernel that has none refuses.
  (void)::madvise(memory, kBufferWords * sizeof(std::uint64_t), MADV_NOHUGEPAGE);
  return Benchmark({static_cast<std::uint64_t*>(memory), kBufferWords});
}

Benchmark::Benchmark(std::span<std::uint64_t> buffer)
    : buffer_(buffer), integer_(0x9e3779b97f4a7c15), floating_{0.1, 0.2, 0.3, 0.4} {}

Benchmark::Benchmark(Benchmark&& other) noexcept
    : buffer_(std::exchange(other.buffer_, {})),
      integer_(other.integer_),
      memory_(other.memory_),
      floating_(other.floating_) {}

Benchmark::~Benchmark() {
  if (!buffer_.empty()) ::munmap(buffer_.data(), buffer_.size_bytes());
}

std::uint64_t Benchmark::work(WorkKind kind, std::uint32_t units) {
  for (; units > 0; --units) switch (kind) {
      case WorkKind::kInteger: {
        std::uint64_t x = integer_;
        for (std::uint32_t i = 0; i < kSteps; ++i) {
          x ^= x >> 12;
          x ^= x << 25;
          x ^= x >> 27;
          x *= 0x2545f4914f6cdd1d;
        }
        integer_ = x;
        break;
      }
      case WorkKind::kFloating: {
        auto x = floating_;  // each tends to 1, never to a denormal
        for (std::uint32_t i = 0; i < kSteps; ++i)
          for (double& chain : x) chain = chain * 0.999999 + 1e-6;
        floating_ = x;
        break;
      }
      case WorkKind::kMemory: {
        const std::uint64_t step = integer_;
        std::uint64_t sum = 0;
        for (std::uint64_t& word : buffer_) sum += word += step;
        memory_ ^= sum;
        break;
      }
    }
  std::uint64_t digest = integer_ ^ memory_;
  for (const double chain : floating_) digest = std::rotl(digest, 13) ^ std::bit_cast<std::uint64_t>(chain);
  return digest;
}

std::uint64_t thread_cpu_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

std::string cpu_model(std::istream& cpuinfo) {
  constexpr int kMostLines = 64;
  std::string line;
  for (int n = 0; n < kMostLines && std::getline(cpuinfo, line); ++n) {
    if (!line.starts_with("model name")) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string model;
    for (const char c : std::string_view(line).substr(colon + 1)) {
      if (c < ' ' || c > '~') continue;
      if (c == ' ' && (model.empty() || model.back() == ' ')) continue;
      if (model.size() < wire::kMostCpuModel) model += c;
    }
    while (model.ends_with(' ')) model.pop_back();
    return model;
  }
  return "";
}

// --- The thread ----------------------------------------------------------------------------------------

BenchmarkThread::BenchmarkThread() {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error& refused) {  // a limit of threads or of memory must not end the sidecar
    log_warning("no benchmark of the CPU", {{"reason", refused.what()}});
  }
}

std::optional<wire::CpuBenchmark> BenchmarkThread::result() const {
  std::scoped_lock lock(mutex_);
  return result_;
}

void BenchmarkThread::pause(const std::stop_token& stop, std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  never_.wait_for(lock, stop, time, [] { return false; });
}

void BenchmarkThread::run(const std::stop_token& stop) {
  lower_priority();
  auto benchmark = Benchmark::create();
  if (!benchmark) return log_warning("no benchmark of the CPU", {{"reason", benchmark.error().message}});
  std::array<std::uint64_t, kWorkKinds.size()> least{};  // 0: none yet
  std::uint64_t digest = 0;
  // All kinds by turns, so that each of them meets good and bad moments.
  for (; rounds_ < kRounds; ++rounds_) {
    for (const WorkKind kind : kWorkKinds) {
      if (stop.stop_requested()) break;
      const auto begun = std::chrono::steady_clock::now();
      const std::uint64_t before = thread_cpu_ns();
      digest = benchmark->work(kind);
      const std::uint64_t cpu = thread_cpu_ns() - before;
      const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begun;
      std::uint64_t& of_kind = least[static_cast<std::size_t>(kind)];
      of_kind = of_kind == 0 ? cpu : std::min(of_kind, cpu);
      if (std::cmp_greater(took.count(), 2 * cpu)) pause(stop, std::min<std::chrono::nanoseconds>(took, kLongestPause));
    }
    if (stop.stop_requested()) break;
  }
  if (rounds_ < kEnough) return;
  const wire::CpuBenchmark done{
      .model = model_here(), .integer_ns = least[0], .floating_ns = least[1], .memory_ns = least[2]};
  // The digest depends on all of the work, so that none of it can be left out, and is the same on every CPU that works.
  log_info("benchmark of the CPU", {{"model", done.model},
                                    {"integer_ns", done.integer_ns},
                                    {"floating_ns", done.floating_ns},
                                    {"memory_ns", done.memory_ns},
                                    {"rounds", rounds_.load()},
                                    {"digest", digest}});
  std::scoped_lock lock(mutex_);
  result_ = done;
}

}  // namespace bsp::sidecar
