// The shim's overhead: the same program with and without libbspmpi.so, over tcp, in turn.
//
//   latency     8-byte round trips between two ranks
//   bandwidth   windows of 16 x 1 MiB
//   allreduce   one double over two ranks
//   fortran_latency, fortran_allreduce   the same through Open MPI's Fortran bindings
//   lbm         apps/lattice_boltzmann, wall time between its progress lines
//
// Three jobs run side by side, one with and two without the shim, and only one at a time has work: a slice of about
// 20 to 100 ms each, in a changing order. The ratio with ÷ without compares neighbouring slices. The ratio of the two
// jobs without the shim shows what this method reports for no difference: its deviation from 1 is noise and the
// placement of pages and connections. The jobs run in several consecutive instances, because that placement stays the
// same for a process's life.
//
// Also measures the resident memory that the shim adds to a program (see bench_memory.py). Arguments: the names of
// the patterns to measure (default all), or "memory".
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/bench/mpi_job.h"
#include "tests/bench/paired.h"

namespace bsp::bench {
namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr std::uint32_t kRanks = 2;
constexpr double kGoal = 1.01;

struct Pattern {
  const char* name;
  double slice_ms;  // duration of the work in one slice
  int instances;
  int rounds;  // slices of each job and instance
  double bytes_per_repetition;
};
constexpr Pattern kPatterns[] = {{"latency", 30, 4, 60, 0},
                                 {"bandwidth", 60, 3, 40, 16.0 * (1 << 20)},
                                 {"allreduce", 30, 4, 60, 0},
                                 {"fortran_latency", 30, 4, 60, 0},
                                 {"fortran_allreduce", 30, 4, 60, 0}};

struct Outcome {
  std::vector<double> on, off;           // s per repetition
  std::vector<double> ratios, controls;  // with ÷ without, without ÷ without
};

// The order of the three jobs changes from round to round, so that none always has the same predecessor.
constexpr int kOrders[6][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}, {0, 2, 1}, {1, 2, 0}};

// Three slices of one round: with, without, and again without.
void add(Outcome& outcome, const double (&seconds)[3], int round) {
  outcome.on.push_back(seconds[0]);
  outcome.off.push_back(seconds[1]);
  outcome.off.push_back(seconds[2]);
  // Each ratio uses one of the two control slices in turn, so that all ratios have different slices.
  const int other = 1 + round % 2;
  outcome.ratios.push_back(seconds[0] / seconds[other]);
  outcome.controls.push_back(seconds[1] / seconds[2]);
}

class Served {  // mpi_patterns, waiting for commands
 public:
  explicit Served(bool shim) : job_(shim, kRanks, "mpi_patterns", {"serve", "%R"}) {
    // Open for reading too, so that the call doesn't wait for a program that may have failed.
    for (std::uint32_t r = 0; r < kRanks; ++r) orders_.emplace_back(job_.own_path(r), std::ios::in | std::ios::out);
  }
  ~Served() {
    for (auto& o : orders_) o << "end\n" << std::flush;
    for (auto& p : job_.programs) p.wait(10s);
  }
  // Seconds for one repetition.
  double run(const char* what, long repetitions) {
    for (auto& o : orders_) o << what << ' ' << repetitions << '\n' << std::flush;
    const std::string line = job_.programs[0].read_line(60s);
    if (line.empty()) throw std::runtime_error("no answer:\n" + job_.errors());
    return std::stod(line) * 1e-9 / static_cast<double>(repetitions);
  }
  [[nodiscard]] long resident_kib() const { return job_.programs[0].resident_kib(); }

 private:
  MpiJob job_;
  std::vector<std::fstream> orders_;
};

Outcome measure(const Pattern& pattern) {
  Outcome outcome;
  for (int instance = 0; instance < pattern.instances; ++instance) {
    // The start order changes too.
    std::unique_ptr<Served> jobs[3];
    for (int j : kOrders[instance % 6]) jobs[j] = std::make_unique<Served>(j == 0);
    long repetitions = 1;
    for (auto& job : jobs) {
      job->run(pattern.name, 20);  // connections and caches
      repetitions = std::max(repetitions, static_cast<long>(pattern.slice_ms * 1e-3 / job->run(pattern.name, 20)));
    }
    for (int round = 0; round < pattern.rounds; ++round) {
      double seconds[3];
      for (int j : kOrders[round % 6]) seconds[j] = jobs[j]->run(pattern.name, repetitions);
      add(outcome, seconds, round);
    }
  }
  return outcome;
}

// The unmodified LBM program. It is stopped and continued from outside; a slice lasts from one of its progress lines
// to a later one, without the time it was stopped.
class Lbm {
 public:
  explicit Lbm(bool shim)
      : job_(shim, kRanks, "lattice_boltzmann",
             {"--width", "256", "--height", "128", "--supersteps", "1000000", "--substeps", "8", "--progress", "1"}) {
    next_line();
  }
  void stop() {
    job_.stop();
    ran_ += Steady::now() - from_;
  }
  void go_on() {
    from_ = Steady::now();
    job_.go_on();
  }
  // Seconds per superstep, over `supersteps` of them.
  double run(int supersteps) {
    go_on();
    for (int s = 0; s < supersteps; ++s) next_line();
    const auto now = Steady::now();
    const std::chrono::duration<double> took = ran_ + (now - from_);
    ran_ = Steady::duration{};
    from_ = now;
    stop();  // what it does until it has stopped belongs to its next slice
    return took.count() / supersteps;
  }

 private:
  void next_line() {
    if (job_.programs[0].read_line(60s).empty()) throw std::runtime_error("no progress:\n" + job_.errors());
  }
  MpiJob job_;
  Steady::time_point from_ = Steady::now();
  Steady::duration ran_{};
};

Outcome measure_lbm() {
  constexpr int kInstances = 3, kRounds = 50;
  constexpr double kSlice = 0.1;  // s
  Outcome outcome;
  for (int instance = 0; instance < kInstances; ++instance) {
    std::unique_ptr<Lbm> jobs[3];
    for (int j : kOrders[instance % 6]) {
      jobs[j] = std::make_unique<Lbm>(j == 0);
      jobs[j]->stop();
      jobs[j]->run(5);
    }
    const int supersteps = std::max(1, static_cast<int>(kSlice / jobs[1]->run(10)));
    for (int round = 0; round < kRounds; ++round) {
      double seconds[3];
      for (int j : kOrders[round % 6]) seconds[j] = jobs[j]->run(supersteps);
      add(outcome, seconds, round);
    }
    for (auto& job : jobs) job->go_on();  // a stopped process couldn't be ended cleanly
  }
  return outcome;
}

std::string report(const std::string& name, const Outcome& outcome, double bytes) {
  const Ratio ratio = ratio_of(outcome.ratios), control = ratio_of(outcome.controls);
  const double on = median(outcome.on), off = median(outcome.off);
  if (bytes > 0)
    std::printf("%-17s with %.0f MB/s, without %.0f MB/s\n", name.c_str(), bytes / on / 1e6, bytes / off / 1e6);
  else
    std::printf("%-17s with %.2f us, without %.2f us\n", name.c_str(), on * 1e6, off * 1e6);
  std::printf("%-17s time with / without    %s  goal <= %.2f: %s\n", "", text(ratio).c_str(), kGoal,
              ratio.median <= kGoal ? "met"
              : ratio.low <= kGoal  ? "not distinguishable from it"
                                    : "missed");
  std::printf("%-17s without / without      %s\n", "", text(control).c_str());
  std::fflush(stdout);
  return std::format(
      R"({{"name": "{}", "seconds_with": {:.9f}, "seconds_without": {:.9f}, "with_to_without": {}, "without_to_without": {}}})",
      name, on, off, json(ratio), json(control));
}

// Resident KiB that the shim adds to a program of two ranks that has communicated over all its connections.
int print_memory() {
  std::vector<double> difference;
  long on = 0, off = 0;
  for (int instance = 0; instance < 3; ++instance) {
    Served with(true), without(false);
    for (Served* job : {&with, &without})
      for (const char* what : {"latency", "allreduce"}) job->run(what, 1000);
    on = with.resident_kib();
    off = without.resident_kib();
    difference.push_back(static_cast<double>(on - off));
  }
  std::printf("{\"shim_kib\": %.0f, \"program_with_kib\": %ld, \"program_without_kib\": %ld}\n", median(difference), on,
              off);
  return 0;
}

int run(const std::vector<std::string>& names) {
  const auto wanted = [&](std::string_view name) { return names.empty() || std::ranges::contains(names, name); };
  if (names == std::vector<std::string>{"memory"}) return print_memory();
  std::string all;
  const auto note = [&](const std::string& item) { all += (all.empty() ? "" : ", ") + item; };
  for (const Pattern& pattern : kPatterns)
    if (wanted(pattern.name)) note(report(pattern.name, measure(pattern), pattern.bytes_per_repetition));
  if (wanted("lbm")) note(report("lbm", measure_lbm(), 0));
  if (const char* file = std::getenv("BSP_BENCH_JSON")) std::ofstream(file) << "{\"shim\": [" << all << "]}\n";
  return 0;
}

}  // namespace
}  // namespace bsp::bench

int main(int argc, char** argv) { return bsp::bench::run({argv + 1, argv + argc}); }
