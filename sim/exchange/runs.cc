#include "sim/exchange/runs.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <format>
#include <thread>

namespace bsp::sim::exchange {

std::string Variant::name() const {
  if (!mechanism) return "best";
  return std::string(to_string(*mechanism)) + (threaded ? ", threaded" : "");
}

WorkloadParams Runs::workload(std::uint32_t processes, bool close, std::uint32_t repeat) const {
  WorkloadParams w{.processes = processes, .seed = params_.seed + 1000 * repeat + processes};
  if (close) {
    w.fronts_from = 0.4;
    w.fronts_spread = 0.05;
  }
  return w;
}

void Runs::run() {
  struct Job {
    RunKey key;
    std::uint32_t repeat = 0;
    Outcome outcome{};
  };
  std::vector<Job> jobs;
  for (const auto& [key, mean] : means_)
    for (std::uint32_t r = 0; r < (key.processes <= 128 ? params_.repeats : 1); ++r)
      jobs.push_back({.key = key, .repeat = r});
  // Longest first, so that no thread starts a long one at the end.
  std::ranges::stable_sort(jobs, std::greater<>{}, [](const Job& job) { return job.key.processes; });
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      Job& job = jobs[i];
      const Workload w = make_workload(workload(job.key.processes, job.key.close, job.repeat));
      job.outcome = solve(w, {.threaded = job.key.variant.threaded}, job.key.variant.mechanism, job.key.threshold);
      std::fputs(
          std::format("{:3} of {}: {} processes, {}\n", ++done, jobs.size(), job.key.processes, job.key.variant.name())
              .c_str(),
          stderr);
    }
  };
  std::vector<std::jthread> threads;
  for (std::uint32_t t = 0; t < params_.threads; ++t) threads.emplace_back(work);
  threads.clear();

  const auto best = [&](const Job& job) {
    const auto it = std::ranges::find_if(jobs, [&](const Job& other) {
      return other.key.variant == kBest && other.key.processes == job.key.processes &&
             other.key.close == job.key.close && other.repeat == job.repeat;
    });
    check(it != jobs.end(), "every workload has a run without mechanism");
    return it->outcome.makespan;
  };
  std::map<RunKey, double> count;
  for (const Job& job : jobs) {
    RunMean& mean = means_[job.key];
    const double n = ++count[job.key];
    const auto take = [n](double& into, double value) { into += (value - into) / n; };
    take(mean.messages, static_cast<double>(job.outcome.messages));
    take(mean.slowdown, job.outcome.makespan / best(job));
    take(mean.decisions, static_cast<double>(job.outcome.decisions));
    take(mean.outcome.held, job.outcome.held);
    take(mean.outcome.makespan, job.outcome.makespan);
    take(mean.outcome.view_error, job.outcome.view_error);
    take(mean.outcome.worst_error, job.outcome.worst_error);
    take(mean.outcome.peak, job.outcome.peak);
    take(mean.outcome.wait, job.outcome.wait);
    take(mean.outcome.waited, job.outcome.waited);
    take(mean.outcome.message_cpu, job.outcome.message_cpu);
  }
}

}  // namespace bsp::sim::exchange
