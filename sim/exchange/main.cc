// bsp-exchange-study: simulates the load exchange mechanisms and prints the results as JSON. page.py makes docs/exchange.md
// and its figure of them.
#include <algorithm>
#include <cstdio>
#include <format>
#include <nlohmann/json.hpp>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "crds/wire.h"
#include "operator/cli/command.h"
#include "operator/cli/exit_code.h"
#include "sim/exchange/study.h"

namespace bsp {
namespace {

// The size on the wire of a rank's report with that many supersteps. The values are typical of a job with supersteps of
// one second.
double report_bytes(std::size_t supersteps) {
  wire::RankReport report{.rank = 12345, .completed = 1000, .epoch = 3, .memory_bytes = 67'108'864, .supersteps = {}};
  for (std::size_t i = 0; i < supersteps; ++i)
    report.supersteps.push_back({.superstep = 991 + i,
                                 .end_ns = 1'763'750'000'123'456'789,
                                 .instructions = 2'345'678'901,
                                 .compute_ns = 987'654'321,
                                 .comm_ns = 12'345'678,
                                 .edge_ns = 1'234'567,
                                 .sent_bytes = 1'048'576,
                                 .recv_bytes = {524'288, 524'288},
                                 .recv_ns = {1'234'567, 2'345'678}});
  return static_cast<double>(nlohmann::json(report).dump().size());
}

cli::Setter sizes(std::vector<std::uint32_t>& into) {
  return [&into](const std::string& text) -> std::string {
    into.clear();
    for (const auto part : std::views::split(text, ',')) {
      std::uint32_t size = 0;
      if (!cli::number(size, 2u, 4096u)(std::string(std::string_view(part))).empty())
        return "must be numbers from 2 to 4096, separated by commas";
      into.push_back(size);
    }
    std::ranges::sort(into);
    return into.empty() ? "must not be empty" : "";
  };
}

Result<void> study(std::span<const std::string> words) {
  sim::exchange::StudyParams params;
  cli::Command command(
      "bsp-exchange-study",
      "Simulate the load exchange mechanisms and print the results as JSON. Progress goes to stderr. The "
      "same arguments produce the same results.");
  command.option("--sizes", "N,…", "numbers of processes (default: 16 to 1024)", sizes(params.sizes));
  command.option("--repeats", "N", std::format("workloads for each size up to 128 (default: {})", params.repeats),
                 cli::number(params.repeats, 1u, 1000u));
  command.option("--seed", "N", std::format("seed of the workloads (default: {})", params.seed),
                 cli::number(params.seed, std::uint64_t{0}, UINT64_MAX));
  command.option("--threads", "N", std::format("threads to run with (default: {})", params.threads),
                 cli::number(params.threads, 1u, 256u));
  BSP_CHECK_OK(command.parse(words));
  const double none = report_bytes(0);
  params.gather.report_bytes = none;
  params.report_superstep_bytes = (report_bytes(10) - none) / 10;
  std::puts(sim::exchange::run_study(params).dump(1).c_str());
  return {};
}

}  // namespace
}  // namespace bsp

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto done = bsp::study(words);
  return done ? bsp::cli::kDone : bsp::cli::report_error(done.error(), "bsp-exchange-study");
}
