// Jobs whose ranks are asked for a part of their supersteps only (observe/sampling.h).
#include <gtest/gtest.h>

#include <cstdio>

#include "crds/wire.h"
#include "tests/unit/observe/operator_loop.h"
#include "tests/unit/observe/ring_on.h"

namespace bsp::observe {
namespace {

constexpr std::uint64_t kSampledSeed = 20261128;

decide::LoopRun run_sampled(const char* what, decide::LoopJob job, std::uint64_t every) {
  job.is_measured = [every](std::uint64_t t) { return wire::sampled(t, every); };
  const decide::LoopRun run = run_as_operator(job, automatic(), kSampledSeed);
  std::printf("%s, one of %llu: %.0f s without moves, %.0f s, %llu moves\n", what,
              static_cast<unsigned long long>(every), job.seconds_without_moves(), run.makespan,
              static_cast<unsigned long long>(run.moves));
  return run;
}

TEST(Sampled, AWaveThatMakesSuperstepsLongerIsTakenBack) {
  for (const std::uint64_t every : {2, 8, 64}) {
    const decide::LoopJob job = cut_in_two(20'000);
    EXPECT_LE(run_sampled("a ring cut in two", job, every).makespan, 1.01 * job.seconds_without_moves()) << every;
  }
}

TEST(Sampled, AFasterSetIsFound) {
  for (const std::uint64_t every : {2, 8, 64}) {
    const decide::LoopJob job = ring_on({{"a", 8, 1e9}, {"b", 8, 2e9}}, 8, 20'000);
    EXPECT_LE(run_sampled("beside a faster Set", job, every).makespan, 0.6 * job.seconds_without_moves()) << every;
  }
}

}  // namespace
}  // namespace bsp::observe
