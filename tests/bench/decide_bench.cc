// How long a decision takes, and how much memory: each heuristic at 10² to 10⁵ ranks over 64 Sets, on one core.
//
// Two costs, apart as they occur: `SuperstepAdded` brings the metrics up to date after every superstep,
// `SuperstepBeforeCall` is the same of the one that a call follows, for which the peaks are picked out. `Call` is
// make_plan itself (AutoMig), the goal being 50 ms and 64 MiB at 10⁵ ranks; `CallTop` … `CallBottleneck` the same of
// the other heuristics. `CallNoSlots` has processors that ranks share, `CallUnequal` processors that are all of
// different speed and load, for which the managers' search is the hardest. Every rank hears from every Set, as no real
// one does.
#include <benchmark/benchmark.h>

#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "operator/decide/plan.h"

// What is allocated now, and the most that was since it was reset. One thread. Not inlined: the compiler would take
// free() for the wrong counterpart of new.
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

struct Job {
  Snapshot snapshot;
  MeasuredSuperstep superstep;
  Params params{.heuristic = Heuristic::kAutoMig, .alpha0 = 1};

  [[nodiscard]] Window window() const {
    Window window({}, params, snapshot.ranks.size(), kSets);
    window.add(superstep);
    return window;
  }
};

enum class Kind { kSlots, kNoSlots, kUnequal };

// Two processors for each rank, half of them free; Sets between 1 and 3 GHz; every rank hears from
// every Set.
Job make_job(std::uint32_t ranks, Kind kind) {
  std::mt19937_64 random(ranks);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  Job job;
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
                                   .slots = kind == Kind::kSlots ? 1u : 0u});
  }
  job.superstep = {
      .superstep = Superstep{1}, .recv_bytes = Grid<double>(ranks, kSets), .recv_seconds = Grid<double>(ranks, kSets)};
  for (std::uint32_t i = 0; i < ranks; ++i) {
    job.snapshot.ranks.push_back({.processor = ProcessorId{2 * i}, .memory_bytes = between(1e6, 1e7)});
    job.superstep.instructions.push_back(between(1e9, 2e9));
    job.superstep.compute_seconds.push_back(between(0.5, 2));
    for (std::uint32_t j = 0; j < kSets; ++j) {
      job.superstep.recv_bytes[i, j] = between(0, 1e5);
      job.superstep.recv_seconds[i, j] = between(0, 1e-3);
    }
  }
  return job;
}

void call(benchmark::State& state, Kind kind, Heuristic heuristic = Heuristic::kAutoMig) {
  Job job = make_job(static_cast<std::uint32_t>(state.range(0)), kind);
  job.params.heuristic = heuristic;
  const Window window = job.window();
  std::size_t listed = 0, moves = 0;
  double objective = 0;
  const std::size_t before = most_allocated = allocated;
  for (auto _ : state) {
    const auto plan = make_plan(job.snapshot, window, job.params);
    check(plan.has_value(), "the job can be decided");
    listed = plan->pm_list.size();
    moves = plan->moves.size();
    objective = plan->objective.after / plan->objective.before;
  }
  state.counters["listed"] = static_cast<double>(listed);
  state.counters["moves"] = static_cast<double>(moves);
  state.counters["MiB"] = static_cast<double>(most_allocated - before) / (1 << 20);  // of the call, its plan included
  state.counters["objective"] = objective;                                           // after ÷ before
}

void Call(benchmark::State& state) { call(state, Kind::kSlots); }
void CallNoSlots(benchmark::State& state) { call(state, Kind::kNoSlots); }
void CallUnequal(benchmark::State& state) { call(state, Kind::kUnequal); }
void CallTop(benchmark::State& state) { call(state, Kind::kSlots, Heuristic::kTop); }
void CallPercentage(benchmark::State& state) { call(state, Kind::kSlots, Heuristic::kPercentage); }
void CallMigCube(benchmark::State& state) { call(state, Kind::kSlots, Heuristic::kMigCube); }
void CallMigHull(benchmark::State& state) { call(state, Kind::kSlots, Heuristic::kMigHull); }
void CallBottleneck(benchmark::State& state) { call(state, Kind::kSlots, Heuristic::kBottleneck); }
void CallBottleneckUnequal(benchmark::State& state) { call(state, Kind::kUnequal, Heuristic::kBottleneck); }

void add_superstep(benchmark::State& state, bool call_follows) {
  const Job job = make_job(static_cast<std::uint32_t>(state.range(0)), Kind::kSlots);
  Metrics metrics = job.window().metrics();
  for (auto _ : state) {
    state.PauseTiming();  // the copy stands for what the reports bring
    MeasuredSuperstep next = job.superstep;
    next.superstep.value = metrics.last.superstep.value + 1;
    state.ResumeTiming();
    update(metrics, std::move(next), 10, job.params, call_follows);
  }
}

void SuperstepAdded(benchmark::State& state) { add_superstep(state, false); }
void SuperstepBeforeCall(benchmark::State& state) { add_superstep(state, true); }

// The yardstick of the same run: one sum over two of the grids that a call decides from, of ranks × Sets each.
void ReadOnce(benchmark::State& state) {
  const Job job = make_job(static_cast<std::uint32_t>(state.range(0)), Kind::kSlots);
  const Window window = job.window();
  const Metrics& m = window.metrics();
  for (auto _ : state) {
    double sum[4] = {0, 0, 0, 0};
    for (std::size_t i = 0; i < m.BTP.rows(); ++i)
      for (std::size_t j = 0; j < kSets; ++j) sum[j % 4] += m.BTP[i, j] + m.last.recv_bytes[i, j];
    benchmark::DoNotOptimize(sum);
  }
}

BENCHMARK(ReadOnce)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(Call)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CallNoSlots)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CallUnequal)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CallTop)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CallPercentage)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CallMigCube)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CallMigHull)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CallBottleneck)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CallBottleneckUnequal)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(SuperstepAdded)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(SuperstepBeforeCall)->RangeMultiplier(10)->Range(100, 100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bsp::decide

// Prints Google Benchmark's table, then the one ratio that has a goal; writes the table as JSON
// where BSP_BENCH_JSON says.
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
        if (const auto c = run.counters.find("MiB"); c != run.counters.end())
          mib[run.benchmark_name()] = c->second.value;
      }
    }
    std::map<std::string, double> ms, mib;  // of CPU; of memory
  } reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  const double read = reporter.ms["ReadOnce/100000"];
  for (const char* name : {"Call", "CallNoSlots", "CallUnequal", "CallTop", "CallPercentage", "CallMigCube",
                           "CallMigHull", "CallBottleneck", "CallBottleneckUnequal"}) {
    const double call = reporter.ms[std::string(name) + "/100000"];
    if (!(call > 0)) continue;
    std::printf("%-21s at 1e5 ranks x 64 Sets: %.1f ms of CPU, %.2f of the goal of 50 ms; %.1f MiB, %.2f of 64", name,
                call, call / 50, reporter.mib[std::string(name) + "/100000"],
                reporter.mib[std::string(name) + "/100000"] / 64);
    if (read > 0) std::printf("; %.2f times as long as reading its input once (%.1f ms)", call / read, read);
    std::printf("\n");
  }
}
