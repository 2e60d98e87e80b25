// simulate-cluster [--first SEED] [--seeds N] [--seconds S] [--trace] [--twice] [--plan]
//
// Runs one world for each seed and ends with 1 at the first that breaks a rule, with its seed and what happened. --trace prints that
// for each; --twice runs each seed twice, which must be the same; --plan only says what each is made of.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <format>
#include <map>
#include <string>

#include "base/core/log.h"
#include "tests/swarm/world.h"

namespace {

using bsp::simulation::Outcome;
using bsp::simulation::Swarm;
using bsp::simulation::World;

constexpr auto kNone = static_cast<bsp::LogLevel>(static_cast<int>(bsp::LogLevel::kError) + 1);

// Real time, whatever the world's clock shows.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t first = 0, seeds = 1000;
  double seconds = 0;
  bool trace = false, twice = false, plan = false;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&] { return i + 1 < argc ? argv[++i] : "0"; };
    if (option == "--first")
      first = std::strtoull(value(), nullptr, 10);
    else if (option == "--seeds")
      seeds = std::strtoull(value(), nullptr, 10);
    else if (option == "--seconds")
      seconds = std::strtod(value(), nullptr);
    else if (option == "--trace")
      trace = true;
    else if (option == "--twice")
      twice = true;
    else if (option == "--plan")
      plan = true;
    else
      return std::fprintf(stderr, "unknown option %s\n", option.c_str()), 2;
  }
  if (const char* const round = std::getenv("BSP_SEED"); round && first == 0)  // of tests/soak/repeat.py
    first = std::strtoull(round, nullptr, 10) * seeds;
  first = std::max<std::uint64_t>(first, 1);
  if (std::getenv("BSP_LOG") == nullptr) bsp::set_log_level(kNone);
  std::map<std::string, std::uint64_t> sum;
  std::uint64_t seed = first;
  for (; plan && seed < first + seeds; ++seed) std::printf("%s\n", Swarm(seed).text().c_str());
  if (plan) return 0;
  for (; seed < first + seeds && (seconds == 0 || processor_seconds() < seconds); ++seed) {
    const Outcome outcome = World(Swarm(seed)).run();
    if (trace) std::printf("%s", outcome.trace.c_str());
    if (!outcome.violation.empty()) {
      std::printf("%s%s\nviolation: %s\n", trace ? "" : outcome.trace.c_str(), Swarm(seed).text().c_str(),
                  outcome.violation.c_str());
      return 1;
    }
    if (twice && World(Swarm(seed)).run().fingerprint != outcome.fingerprint)
      return std::printf("seed %llu does not run the same again\n", static_cast<unsigned long long>(seed)), 1;
    sum["moves"] += outcome.moved;
    sum["waves"] += outcome.waves;
    sum["restarts"] += outcome.attempts;
    sum["faults"] += static_cast<std::uint64_t>(outcome.faults);
    sum["hours"] += static_cast<std::uint64_t>(outcome.ticks);
  }
  sum["hours"] /= 36'000;
  std::string text;
  for (const auto& [what, count] : sum) text += std::format(", {} {}", count, what);
  std::printf("%llu worlds%s, in %.1f s of a processor\n", static_cast<unsigned long long>(seed - first), text.c_str(),
              processor_seconds());
  return 0;
}
