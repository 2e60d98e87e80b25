// Time and memory of a decision: each heuristic at 10² to 10⁵ ranks over 64 Sets, on one core.
//
// Two separate costs, as they occur: `SuperstepAdded` updates the metrics after every superstep;
// `SuperstepBeforeCall` does so for the superstep before a call, for which the peaks are selected; `SuperstepFirst`
// opens a window and adds its first. `Call` is make_plan itself (AutoMig), with a goal of 50 ms and 64 MiB at 10⁵
// ranks; `CallTop` … `CallBottleneck` measure the other heuristics. `CallNoSlots` has processors that ranks share,
// `CallUnequal` processors of different speed and load, which are hardest for the managers' search.
//
// In all of these every rank hears from every Set, unlike any real one, so the metrics alone are five grids of ranks
// × Sets. In `Near…` a rank hears from six Sets: the number of neighbours in three dimensions.
//
// MiB: the peak allocation of the call, including its plan. all: the peak at any time of a round, from the
// superstep's incoming reports over the window, the call and its plan to the stored state; everything but the
// snapshot.
#include <benchmark/benchmark.h>

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "operator/decide/make_plan.h"

// Current allocation, and the peak since the last reset. Single-threaded. Not inlined: the compiler would consider
// free() the wrong counterpart of new.
static std::size_t allocated = 0, most_allocated = 0;

[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  allocated += malloc_usable_size(memory);
  most_allocated = std::max(most_allocated, allocated);
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  allocated -= malloc_usable_size(memory);
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace bsp::decide {
namespace {

constexpr std::uint32_t kSets = 64;

enum class Kind { kSlots, kNoSlots, kUnequal, kNear };

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  double between(double low, double high) { return std::uniform_real_distribution(low, high)(engine_); }

 private:
  std::mt19937_64 engine_;
};

struct Job {
  Kind kind;
  Snapshot snapshot{};
  Params params{.heuristic = Heuristic::kAutoMig, .alpha0 = 1};

  // Every rank hears from every Set, or from six (kNear).
  [[nodiscard]] MeasuredSuperstep superstep(std::uint64_t t = 1) const {
    const auto ranks = static_cast<std::uint32_t>(snapshot.ranks.size());
    Random random(ranks);
    MeasuredSuperstep s{.superstep = {t}};
    auto heard_from = std::make_shared<Pattern>(ranks, kSets);
    const std::uint32_t apart = kind == Kind::kNear ? 10 : 1;
    const std::size_t cells = std::size_t{ranks} * (kind == Kind::kNear ? 6 : kSets);
    std::vector<double> bytes, seconds;
    bytes.reserve(cells), seconds.reserve(cells);
    s.instructions.reserve(ranks), s.compute_seconds.reserve(ranks);
    for (std::uint32_t i = 0; i < ranks; ++i) {
      s.instructions.push_back(random.between(1e9, 2e9));
      s.compute_seconds.push_back(random.between(0.5, 2));
      std::size_t named = 0;
      for (std::uint32_t j = 2 * i % apart; j < kSets && named < cells / ranks; j += apart, ++named) {
        heard_from->name(j);
        bytes.push_back(random.between(0, 1e5));
        seconds.push_back(random.between(0, 1e-3));
      }
      heard_from->end_row();
    }
    heard_from->shrink_to_fit();
    s.recv_bytes = SparseGrid(heard_from, 0, std::move(bytes));
    s.recv_seconds = SparseGrid(heard_from, 0, std::move(seconds));
    return s;
  }
  [[nodiscard]] Window window() const {
    Window window({}, params, snapshot.ranks.size(), kSets);
    window.add(superstep());
    return window;
  }
};

// Two processors for each rank, half of them free; Sets between 1 and 3 GHz.
Job make_job(std::uint32_t ranks, Kind kind) {
  Random random(ranks);
  const auto between = [&](double low, double high) { return random.between(low, high); };
  Job job{.kind = kind};
  Platform& platform = job.snapshot.platform;
  platform.sets.resize(kSets);
  platform.T = Grid<double>(kSets, kSets, 1e-8);
  platform.Mig = Grid<double>(1, kSets, 0.05);
  std::vector<double> speed;
  for (std::uint32_t j = 0; j < kSets; ++j) {
    platform.T[j, j] = 1e-9;
    speed.push_back(between(1e9, 3e9));
  }
  for (std::uint32_t p = 0; p < 2 * ranks; ++p) {
    const bool unequal = kind == Kind::kUnequal;
    platform.processors.push_back({.set = SetId{p % kSets},
                                   .cpu = unequal ? between(1e9, 3e9) : speed[p % kSets],
                                   .load = unequal ? between(0, 0.5) : 0,
                                   .slots = kind == Kind::kSlots || kind == Kind::kNear ? 1u : 0u});
  }
  for (std::uint32_t i = 0; i < ranks; ++i)
    job.snapshot.ranks.push_back({.processor = ProcessorId{2 * i}, .memory_bytes = between(1e6, 1e7)});
  return job;
}

void call(benchmark::State& state, Kind kind, Heuristic heuristic = Heuristic::kAutoMig) {
  Job job = make_job(static_cast<std::uint32_t>(state.range(0)), kind);
  job.params.heuristic = heuristic;
  const std::size_t snapshot = most_allocated = allocated;
  Window window = job.window();
  std::size_t listed = 0, moves = 0;
  double objective = 0;
  Cadence next;
  const std::size_t most_before = most_allocated, before = most_allocated = allocated;
  for (auto _ : state) {
    const auto plan = make_plan(job.snapshot, window, job.params);
    check(plan.has_value(), "the job can be decided");
    listed = plan->pm_list.size();
    moves = plan->moves.size();
    objective = plan->objective.after / plan->objective.before;
    next = plan->next;
  }
  const std::size_t most_of_call = most_allocated;
  const State stored = std::move(window).close(next);
  const Window opened(stored, job.params, job.snapshot.ranks.size(), kSets);
  state.counters["listed"] = static_cast<double>(listed);
  state.counters["moves"] = static_cast<double>(moves);
  state.counters["MiB"] = static_cast<double>(most_of_call - before) / (1 << 20);
  state.counters["all"] =
      static_cast<double>(std::max({most_before, most_of_call, most_allocated}) - snapshot) / (1 << 20);
  state.counters["objective"] = objective;  // after ÷ before
}

void add_superstep(benchmark::State& state, bool call_follows, Kind kind) {
  const Job job = make_job(static_cast<std::uint32_t>(state.range(0)), kind);
  Metrics metrics = job.window().metrics();
  MeasuredSuperstep reported = job.superstep();
  for (auto _ : state) {
    state.PauseTiming();
    if (metrics.Comm.rows() > 0) metrics.BTP = std::exchange(metrics.Comm, {});  // as if no call had followed
    MeasuredSuperstep next = reported;
    next.superstep.value = metrics.last.superstep.value + 1;
    state.ResumeTiming();
    update(metrics, std::move(next), 10, job.params, call_follows);
  }
}

// A new window, its first superstep, and its end.
void first_superstep(benchmark::State& state, Kind kind) {
  const Job job = make_job(static_cast<std::uint32_t>(state.range(0)), kind);
  for (auto _ : state) {
    state.PauseTiming();
    MeasuredSuperstep t = job.superstep();
    state.ResumeTiming();
    Window window({}, job.params, job.snapshot.ranks.size(), kSets);
    window.add(std::move(t));
  }
}

// The yardstick in the same run: one sum over two of the grids of ranks × Sets that a call reads.
void ReadOnce(benchmark::State& state) {
  const Job job = make_job(static_cast<std::uint32_t>(state.range(0)), Kind::kSlots);
  const Window window = job.window();
  const Metrics& m = window.metrics();
  for (auto _ : state) {
    double sum[4] = {0, 0, 0, 0};
    for (std::size_t i = 0; i < m.Comm.rows(); ++i)
      for (std::size_t j = 0; j < kSets; ++j) sum[j % 4] += m.Comm.row(i)[j] + m.last.recv_bytes.row(i)[j];
    benchmark::DoNotOptimize(sum);
  }
}

struct Call {
  const char* name;
  Kind kind;
  Heuristic heuristic;
};

constexpr Call kCalls[] = {
    {"Call", Kind::kSlots, Heuristic::kAutoMig},
    {"CallNoSlots", Kind::kNoSlots, Heuristic::kAutoMig},
    {"CallUnequal", Kind::kUnequal, Heuristic::kAutoMig},
    {"CallTop", Kind::kSlots, Heuristic::kTop},
    {"CallPercentage", Kind::kSlots, Heuristic::kPercentage},
    {"CallMigCube", Kind::kSlots, Heuristic::kMigCube},
    {"CallMigHull", Kind::kSlots, Heuristic::kMigHull},
    {"CallBottleneck", Kind::kSlots, Heuristic::kBottleneck},
    {"CallBottleneckUnequal", Kind::kUnequal, Heuristic::kBottleneck},
    {"CallAuto", Kind::kSlots, Heuristic::kAuto},
    {"NearCall", Kind::kNear, Heuristic::kAutoMig},
    {"NearCallTop", Kind::kNear, Heuristic::kTop},
    {"NearCallPercentage", Kind::kNear, Heuristic::kPercentage},
    {"NearCallMigCube", Kind::kNear, Heuristic::kMigCube},
    {"NearCallMigHull", Kind::kNear, Heuristic::kMigHull},
    {"NearCallBottleneck", Kind::kNear, Heuristic::kBottleneck},
    {"NearCallAuto", Kind::kNear, Heuristic::kAuto},
};

void register_all() {
  const auto at_all_sizes = [](benchmark::internal::Benchmark* b) {
    b->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
  };
  benchmark::RegisterBenchmark("ReadOnce", ReadOnce)->Arg(100'000)->Unit(benchmark::kMillisecond);
  for (const Call& c : kCalls)
    at_all_sizes(benchmark::RegisterBenchmark(c.name, [&c](auto& state) { call(state, c.kind, c.heuristic); }));
  for (const auto& [near, kind] : {std::pair<std::string, Kind>{"", Kind::kSlots}, {"Near", Kind::kNear}}) {
    const auto with = [&](const char* name, auto run) {
      at_all_sizes(benchmark::RegisterBenchmark((near + name).c_str(), [run, kind](auto& state) { run(state, kind); }));
    };
    with("SuperstepFirst", first_superstep);
    with("SuperstepAdded", [](auto& state, Kind k) { add_superstep(state, false, k); });
    with("SuperstepBeforeCall", [](auto& state, Kind k) { add_superstep(state, true, k); });
  }
}

}  // namespace
}  // namespace bsp::decide

// Prints Google Benchmark's table, then how each scales, and the goals; writes the table as JSON to BSP_BENCH_JSON if
// set.
int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv, argv + argc);
  if (const char* json = std::getenv("BSP_BENCH_JSON")) {
    arguments.push_back(std::string("--benchmark_out=") + json);
    arguments.push_back("--benchmark_out_format=json");
  }
  std::vector<char*> pointers;
  for (std::string& a : arguments) pointers.push_back(a.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());

  class GoalReporter final : public benchmark::ConsoleReporter {
   public:
    void ReportRuns(const std::vector<Run>& runs) override {
      ConsoleReporter::ReportRuns(runs);
      for (const Run& run : runs) {
        ms[run.benchmark_name()] = run.GetAdjustedCPUTime();
        for (const char* counter : {"MiB", "all"})
          if (const auto c = run.counters.find(counter); c != run.counters.end())
            mib[counter + run.benchmark_name()] = c->second.value;
      }
    }
    std::map<std::string, double> ms, mib;  // CPU time; memory
  } reporter;
  bsp::decide::register_all();
  benchmark::RunSpecifiedBenchmarks(&reporter);
  const double read = reporter.ms["ReadOnce/100000"];
  std::printf(
      "64 Sets: ms of CPU at     10^2    10^3    10^4    10^5 ranks: of the goal; the call's MiB, and of all\n");
  for (const bsp::decide::Call& c : bsp::decide::kCalls) {
    const std::string name = c.name, largest = name + "/100000";
    const double call = reporter.ms[largest], mib = reporter.mib["MiB" + largest], all = reporter.mib["all" + largest];
    if (!(call > 0)) continue;
    std::printf("%-21s", c.name);
    for (const char* ranks : {"/100", "/1000", "/10000", "/100000"}) std::printf(" %7.2f", reporter.ms[name + ranks]);
    std::printf(" ms: %.2f of 50; %.1f MiB: %.2f of 64, all %.1f: %.2f", call / 50, mib, mib / 64, all, all / 64);
    if (read > 0) std::printf("; %.2f times reading two full grids once (%.1f ms)", call / read, read);
    std::printf("\n");
  }
}
