// The cost of an MPI epoch: closing one and opening the next, at 2, 4, 8 and 16 ranks; real programs under the shim,
// real sidecars as PMIx servers, on loopback. The benchmark plays the operator.
//
//   close   CPU time of a rank's process from the verdict at the gate to its stop
//   open    CPU time of a rank's process from SIGCONT until MPI is open again (measured by the shim)
//   sidecar CPU time of a rank's sidecar for both, and for the operator's requests around them
//   wall    from the first SIGCONT until the last rank computes
//
// Growth with the ranks: if only the cores were shared, the wall time of n ranks would be the total CPU time divided
// by the cores, and the CPU time of one rank would not depend on n. Both are printed: the CPU time that a rank takes
// beyond that with 2 ranks comes from the protocol (more peers, larger messages), the rest from sharing.
//
// Arguments: numbers of ranks (default 2 4 8 16), or RANKS/SEATS for pods of several ranks, which share memory and a
// sidecar.
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/bench/paired.h"
#include "tests/mpi/shim/job.h"

namespace bsp::bench {
namespace {

using namespace std::chrono_literals;
using test::Job;

// ms of CPU per rank
constexpr double kCloseGoal = 5, kOpenGoal = 25, kOpenGoalOfTwo = 30, kOpenGoalOfSeats = 15;

struct Size {
  std::uint32_t ranks = 0, seats = 1;  // ranks of a pod

  [[nodiscard]] double open_goal() const {
    if (seats > 1) return kOpenGoalOfSeats;
    return ranks == 2 ? kOpenGoalOfTwo : kOpenGoal;
  }
};

// CPU time of a process including its ended threads, ms.
double cpu_ms(pid_t pid) {
  clockid_t clock{};
  timespec t{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &t) != 0) return 0;
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

double ms(const nlohmann::json& nanoseconds) { return nanoseconds.get<double>() * 1e-6; }

struct Epoch {                                                     // of one rank, ms
  double close_cpu, close_wall, open_cpu, open_wall, sidecar_cpu;  // of its sidecar a share
};
struct Sample {
  std::vector<Epoch> ranks;
  double wall = 0;  // first SIGCONT -> last rank computes, ms
};

template <class Done>
bool until(Done done) {
  for (auto deadline = std::chrono::steady_clock::now() + 60s; !done(); ::poll(nullptr, 0, 1))
    if (std::chrono::steady_clock::now() > deadline) return false;
  return true;
}

class Turns {
 public:
  explicit Turns(Size size)
      : ranks_(size.ranks),
        job_({.ranks = size.ranks,
              .seats = size.seats,
              .program = "mpi_patterns",
              .arguments = {"steps", "1000000"},
              .environment = {}}) {
    if (!job_.reach(3)) throw std::runtime_error(job_.stderr_of(0));
  }

  // Closes the epoch and opens the next one.
  Sample turn() {
    Sample sample{.ranks = std::vector<Epoch>(ranks_)};
    std::vector<double> sidecar(ranks_), before(ranks_);
    for_each([&](std::uint32_t r) { sidecar[r] = sidecar_cpu_ms(r); });
    const std::uint64_t superstep = arm();
    // All ranks wait at the gate now and sleep: the CPU time from here on is the agreement and the close.
    for_each([&](std::uint32_t r) { before[r] = cpu_ms(job_.programs[r].pid()); });
    for_each([&](std::uint32_t r) { job_.cluster.call(r, wire::kCommitGate, {{"superstep", superstep}}); });
    if (job_.wait_for_gate(1000) != Job::Gate::kStopped) throw std::runtime_error("the gate was not reached");
    for_each([&](std::uint32_t r) {
      sample.ranks[r].close_cpu = cpu_ms(job_.programs[r].pid()) - before[r];
      sample.ranks[r].close_wall = ms(job_.status(r)["close_ns"]);
    });
    job_.next_epoch();
    std::uint64_t first_opening = ~0ull, last_opened = 0;
    for_each([&](std::uint32_t r) {
      nlohmann::json status;
      const bool opened = until([&] {
        status = job_.status(r);
        return status["epoch"] == job_.epoch() && status["phase"] == "Running";
      });
      if (!opened) throw std::runtime_error("not opened: " + status.dump() + job_.stderr_of(r));
      sample.ranks[r].open_cpu = ms(status["open_cpu_ns"]);
      sample.ranks[r].open_wall = ms(status["open_ns"]);
      const auto opened_at = status["opened_ns"].get<std::uint64_t>();
      first_opening = std::min(first_opening, opened_at - status["open_ns"].get<std::uint64_t>());
      last_opened = std::max(last_opened, opened_at);
    });
    sample.wall = static_cast<double>(last_opened - first_opening) * 1e-6;
    for_each([&](std::uint32_t r) { sample.ranks[r].sidecar_cpu = sidecar_cpu_ms(r) - sidecar[r]; });
    job_.reach(superstep + 2);
    return sample;
  }

 private:
  void for_each(auto action) {
    for (std::uint32_t r = 0; r < ranks_; ++r) action(r);
  }

  // The rank's share of its pod's sidecar.
  double sidecar_cpu_ms(std::uint32_t rank) {
    const std::uint32_t pod = job_.cluster.pod_of(rank);
    return cpu_ms(job_.cluster.sidecars[pod].pid()) / static_cast<double>(job_.cluster.ranks_of(pod).size());
  }

  // Sets a gate and waits until every rank has reached it.
  std::uint64_t arm() {
    for (std::uint64_t ahead = 3;; ahead *= 2) {
      std::uint64_t superstep = 0;
      bool late = false;
      for_each([&](std::uint32_t r) {
        superstep = std::max(superstep, job_.status(r)["completed"].get<std::uint64_t>() + ahead);
      });
      for_each([&](std::uint32_t r) {
        late = job_.cluster.call(r, wire::kArmGate, {{"superstep", superstep}}).header["late"].get<bool>() || late;
      });
      if (late) {
        for_each([&](std::uint32_t r) { job_.cluster.call(r, wire::kCancelGate); });
        continue;
      }
      for_each([&](std::uint32_t r) {
        if (!until([&] { return job_.status(r)["phase"] == "AtGate"; }))
          throw std::runtime_error("no rank at the gate");
      });
      return superstep;
    }
  }

  std::uint32_t ranks_;
  Job job_;
};

struct Row {
  double close_cpu = 0, close_wall = 0, open_cpu = 0, open_wall = 0, sidecar_cpu = 0, wall = 0;  // medians, ms
};

Row measure(Size size) {
  Turns turns(size);
  std::vector<double> close_cpu, close_wall, open_cpu, open_wall, sidecar_cpu, wall;
  const int epochs = size.ranks <= 4 ? 14 : size.ranks <= 8 ? 10 : 7;
  for (int e = 0; e < epochs; ++e) {
    const Sample sample = turns.turn();
    if (e < 2) continue;  // libraries are read for the first time
    for (const Epoch& r : sample.ranks) {
      close_cpu.push_back(r.close_cpu);
      close_wall.push_back(r.close_wall);
      open_cpu.push_back(r.open_cpu);
      open_wall.push_back(r.open_wall);
      sidecar_cpu.push_back(r.sidecar_cpu);
    }
    wall.push_back(sample.wall);
  }
  return {median(close_cpu), median(close_wall),  median(open_cpu),
          median(open_wall), median(sidecar_cpu), median(wall)};
}

const char* verdict(double value, double goal) { return value <= goal ? "met" : "missed"; }

int run(const std::vector<Size>& sizes) {
  const double cores = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  std::printf("medians over ranks and epochs, ms; %.0f cores\n", cores);
  std::printf("%6s %5s %10s %11s %9s %10s %12s %10s %22s\n", "ranks", "a pod", "close CPU", "close wall", "open CPU",
              "open wall", "sidecar CPU", "all open", "open CPU vs the first");
  std::string items;
  double of_two = 0;
  for (const Size size : sizes) {
    const auto [ranks, seats] = size;
    const Row row = measure(size);
    if (of_two == 0) of_two = row.open_cpu;
    // The sidecars work during the opening too; their CPU time for the close can't be separated.
    const double shared = ranks * (row.open_cpu + row.sidecar_cpu) / cores;
    std::printf("%6u %5u %10.2f %11.2f %9.2f %10.2f %12.2f %10.1f %21.2fx\n", ranks, seats, row.close_cpu,
                row.close_wall, row.open_cpu, row.open_wall, row.sidecar_cpu, row.wall, row.open_cpu / of_two);
    std::printf(
        "       close %s (goal %.0f), open %s (goal %.0f); CPU of all on %.0f cores takes %.1f ms: %.2f of the wall "
        "time\n",
        verdict(row.close_cpu, kCloseGoal), kCloseGoal, verdict(row.open_cpu, size.open_goal()), size.open_goal(),
        cores, shared, shared / row.wall);
    std::fflush(stdout);
    items += std::format(
        R"({}{{"ranks": {}, "seats": {}, "close_cpu_ms": {:.3f}, "close_wall_ms": {:.3f}, "open_cpu_ms": {:.3f}, "open_wall_ms": {:.3f}, "sidecar_cpu_ms": {:.3f}, "all_open_wall_ms": {:.3f}, "open_cpu_to_first": {:.3f}, "cpu_shared_to_wall": {:.3f}}})",
        items.empty() ? "" : ", ", ranks, seats, row.close_cpu, row.close_wall, row.open_cpu, row.open_wall,
        row.sidecar_cpu, row.wall, row.open_cpu / of_two, shared / row.wall);
  }
  if (const char* file = std::getenv("BSP_BENCH_JSON"))
    std::ofstream(file) << std::format("{{\"cores\": {:.0f}, \"epoch\": [{}]}}\n", cores, items);
  return 0;
}

}  // namespace
}  // namespace bsp::bench

int main(int argc, char** argv) {
  std::vector<bsp::bench::Size> sizes;
  for (int i = 1; i < argc; ++i) {
    bsp::bench::Size size;
    if (std::sscanf(argv[i], "%u/%u", &size.ranks, &size.seats) < 1 || size.ranks == 0 || size.seats == 0) {
      std::fprintf(stderr, "usage: bench_epoch [RANKS[/SEATS]…]\n");
      return 2;
    }
    sizes.push_back(size);
  }
  if (sizes.empty()) sizes = {{2}, {4}, {8}, {16}};
  return bsp::bench::run(sizes);
}
