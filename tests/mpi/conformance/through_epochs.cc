// through_epochs RANKS SECONDS PROGRAM [ARGUMENT…]: runs any MPI program under the shim and real sidecars, with an epoch change at as
// many superstep edges (BSP_SUPERSTEP) as come, up to BSP_MOST_EPOCHS, and BSP_SEATS ranks in a pod. Prints what rank 0 wrote, then
// one line of JSON.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/mpi/shim/job.h"

namespace bsp::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct Outcome {
  std::uint32_t epochs = 0, postponed = 0;
  std::string reasons, collective;
  std::vector<int> exited;
};

void drain(Job& job) {
  for (std::uint32_t r = 0; r < job.cluster.ranks(); ++r)
    for (std::string line; !(line = job.programs[r].read_line(1ms)).empty();)
      if (r == 0) std::printf("%s\n", line.c_str());
}

bool all_ended(Job& job) {
  bool all = true;
  for (std::uint32_t r = 0; r < job.cluster.ranks(); ++r) all = job.wait(r, 1ms) != -1 && all;
  return all;
}

// A program of ten thousand collectives must still end.
std::uint32_t most_epochs() {
  const char* asked = std::getenv("BSP_MOST_EPOCHS");
  return asked != nullptr ? static_cast<std::uint32_t>(std::atoi(asked)) : 25;
}

std::uint32_t seats() {
  const char* asked = std::getenv("BSP_SEATS");
  return asked != nullptr ? static_cast<std::uint32_t>(std::max(std::atoi(asked), 1)) : 1;
}

// An epoch change at the next edge that all ranks reach, again and again.
void change_epochs(Job& job, Outcome& outcome, Clock::time_point deadline) {
  while (outcome.epochs < most_epochs() && Clock::now() < deadline && job.commit(1) != 0) {
    Job::Gate gate = Job::Gate::kEnded;
    while ((gate = job.poll_gate(3)) == Job::Gate::kOpen && Clock::now() < deadline) {
      drain(job);
      outcome.collective = job.status(0).value("collective", "");
      std::this_thread::sleep_for(2ms);
    }
    if (gate == Job::Gate::kStopped) {
      ++outcome.epochs;
      job.next_epoch();
    } else if (gate == Job::Gate::kPostponed) {
      ++outcome.postponed;
      outcome.reasons = job.reasons();
      job.cluster.call(0, wire::kCancelGate);
      if (job.settle_gate() == Job::Gate::kStopped) job.next_epoch();
    } else {
      return;
    }
  }
}

Outcome run(Job& job, std::chrono::seconds limit, bool change) {
  Outcome outcome;
  const auto deadline = Clock::now() + limit;
  if (change) change_epochs(job, outcome, deadline);
  while (!all_ended(job) && Clock::now() < deadline) {
    drain(job);
    std::this_thread::sleep_for(2ms);
  }
  for (std::uint32_t r = 0; r < job.cluster.ranks(); ++r) outcome.exited.push_back(job.wait(r, 1ms));
  drain(job);
  if (const auto answer = job.cluster.try_call(0, wire::kStatus))
    outcome.collective = answer->header.value("collective", "");
  return outcome;
}

}  // namespace
}  // namespace bsp::test

int main(int argc, char** argv) {
  using namespace bsp::test;
  testing::InitGoogleTest(&argc, argv);
  if (argc < 4) return std::fprintf(stderr, "usage: through_epochs RANKS SECONDS PROGRAM [ARGUMENT...]\n"), 2;
  Job job({.ranks = static_cast<std::uint32_t>(std::atoi(argv[1])),
           .seats = seats(),
           .program = std::filesystem::relative(argv[3], BSP_BINARY_DIR "/bin").string(),
           .arguments = {argv + 4, argv + argc},
           .environment = {}});
  const Outcome outcome = run(job, std::chrono::seconds(std::atoi(argv[2])), std::getenv("BSP_SUPERSTEP") != nullptr);
  nlohmann::json errors = nlohmann::json::array();
  for (std::uint32_t r = 0; r < job.cluster.ranks(); ++r) errors.push_back(job.stderr_of(r));
  std::printf("\n%s\n", nlohmann::json{{"epochs", outcome.epochs},
                                       {"postponed", outcome.postponed},
                                       {"reasons", outcome.reasons},
                                       {"collective", outcome.collective},
                                       {"exited", outcome.exited},
                                       {"stderr", errors}}
                            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                            .c_str());
  return 0;
}
