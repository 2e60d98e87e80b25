// Whether a gain that is told is right within its own error, in worlds where the true one is known.
#include "operator/reconcile/kernel/rescheduling/gains.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {
namespace {

constexpr std::uint64_t kEdge = 20;  // superstep after which the wave moves ranks
constexpr std::uint64_t kAlpha = 4;  // supersteps that a gain is counted over
constexpr double kPause = 0.5;       // s

// Ranks with a node each, which compute 1 s but those that move: 1.4 s before, 1 s after.
struct World {
  std::uint32_t stay = 6, move = 2;
  double noise = 0.02;          // of each rank and superstep
  double communication = 0.05;  // s
  // How much longer rank i computes in superstep t where it is (`away`: after its move), and all communicate.
  std::function<double(std::uint32_t i, bool away, std::uint64_t t)> load = [](auto, auto, auto) { return 1.0; };
  std::function<double(std::uint64_t t)> link = [](auto) { return 1.0; };
  // How much more rank i has to do in superstep t, whoever counts it.
  std::function<double(std::uint32_t i, std::uint64_t t)> work = [](auto, auto) { return 1.0; };
  bool counted = false;

  [[nodiscard]] std::uint32_t ranks() const { return stay + move; }
  [[nodiscard]] bool moves(std::uint32_t i) const { return i < move; }
  [[nodiscard]] double compute(std::uint32_t i, bool away, std::uint64_t t) const {
    return (moves(i) && !away ? 1.4 : 1.0) * load(i, away, t) * work(i, t);
  }
  [[nodiscard]] double superstep(bool away, std::uint64_t t) const {
    double longest = 0;
    for (std::uint32_t i = 0; i < ranks(); ++i) longest = std::max(longest, compute(i, away, t));
    return longest + communication * link(t);
  }
  // What the wave shortens the supersteps by that are compared; of the job, or of a rank's own.
  [[nodiscard]] double gain(std::optional<std::uint32_t> rank = {}) const {
    double sum = 0;
    for (std::uint64_t t = kEdge + 2; t < kEdge + 2 + Gains::kCompared; ++t)
      sum += rank ? compute(*rank, false, t) - compute(*rank, true, t) : superstep(false, t) - superstep(true, t);
    return sum / static_cast<double>(Gains::kCompared);
  }
};

struct Told {
  double job = 0, job_error = 0;  // of a superstep, s
  RealisedGain rank;
};

class Ran {
 public:
  Ran(const World& world, std::uint64_t seed) : world_(world), random_(seed) {
    wave_.number = 1;
    wave_.pause.total_ms = kPause * 1e3;
    for (std::uint32_t i = 0; i < world.ranks(); ++i) {
      status_.ranks.emplace_back().rank = {i};
      status_.ranks.back().node = std::format("node-{}", i);
      if (!world.moves(i)) continue;
      migrate::Move& move = wave_.moves.emplace_back();
      move.rank = i;
      move.migration = std::format("m-{}", i);
      move.source_node = status_.ranks.back().node;
      move.target_node = std::format("free-{}", i);
      move.predicted_gain_seconds = 1;
    }
  }
  Told told() {
    Gains gains(status_, 0, {});
    for (std::uint64_t t = 1; t <= kEdge; ++t) run(false, t);
    gains.predict(1, kAlpha);
    status_.last_decision.emplace();
    gains.begin(wave_, history_, status_, kAlpha, world_.counted);
    for (const migrate::Move& move : wave_.moves) status_.ranks[move.rank].node = move.target_node;
    wave_.phase = migrate::Phase::kSucceeded;
    status_.wave_state = migrate::to_json(wave_);
    gains.compare_from(kEdge + 2);
    for (std::uint64_t t = kEdge + 2; t < kEdge + 2 + Gains::kCompared; ++t) run(true, t);
    const auto each = gains.realised(status_, history_, false);
    check(each.size() == world_.move, "each move has a gain");
    gains.store(status_);
    const double job = *status_.realised_gain_seconds + kPause, error = *status_.realised_gain_error_seconds;
    return {.job = job / kAlpha, .job_error = error / kAlpha, .rank = each.front()};
  }

 private:
  void run(bool away, std::uint64_t t) {
    observe::SuperstepTimes times;
    times.superstep = t;
    for (std::uint32_t i = 0; i < world_.ranks(); ++i)
      times.compute_seconds.push_back(world_.compute(i, away, t) * noisy());
    for (std::uint32_t i = 0; i < world_.ranks(); ++i) times.instructions.push_back(1e9 * world_.work(i, t));
    times.seconds = std::ranges::max(times.compute_seconds) + world_.communication * world_.link(t) * noisy();
    history_.push_back(std::move(times));
  }
  double noisy() { return std::max(0.1, std::normal_distribution(1.0, world_.noise)(random_)); }

  World world_;
  std::mt19937_64 random_;
  migrate::Wave wave_;
  crds::BspJobStatus status_;
  Gains::History history_;
};

constexpr int kRuns = 300;

struct Coverage {
  double job = 0, rank = 0;  // parts of the runs whose true gain is within the error of what is told
  double told = 0;           // part of the runs whose gain is told to be one
};
using Worlds = std::function<World(std::mt19937_64&)>;
Coverage coverage(const Worlds& worlds) {
  Coverage covered;
  for (int n = 0; n < kRuns; ++n) {
    std::mt19937_64 random(static_cast<std::uint64_t>(n) + 1);
    const World world = worlds(random);
    const Told told = Ran(world, random()).told();
    covered.job += (std::abs(told.job - world.gain()) <= told.job_error) / double{kRuns};
    const double of_rank = (told.rank.seconds + kPause) / kAlpha;
    covered.rank += (std::abs(of_rank - world.gain(0)) <= told.rank.error / kAlpha) / double{kRuns};
    covered.told += !told.rank.superstep_is_noise / double{kRuns};
  }
  return covered;
}

bool since(std::uint64_t t) { return t > kEdge; }

// Of each node, in some world.
std::vector<double> around(double mean, double spread, std::mt19937_64& random) {
  std::vector<double> loads(100);
  for (double& load : loads) load = std::max(0.2, std::normal_distribution(mean, mean * spread)(random));
  return loads;
}

void expect_covered(const char* name, const Worlds& worlds, double told = 0) {
  const Coverage c = coverage(worlds);
  std::printf("%-60s job %3.0f %%, rank %3.0f %%, told %3.0f %%\n", name, c.job * 100, c.rank * 100, c.told * 100);
  EXPECT_GE(c.job, 0.9) << name;
  EXPECT_GE(c.rank, 0.9) << name;
  EXPECT_GE(c.told, told) << name;
}

TEST(Coverage, OfAQuietMachine) {
  expect_covered("quiet", [](auto&) { return World{}; }, 0.99);
  expect_covered("quiet, nobody stays", [](auto&) { return World{.stay = 0}; });
  expect_covered("quiet, one stays", [](auto&) { return World{.stay = 1}; }, 0.99);
}

World loaded(World world, double mean, double spread, std::mt19937_64& random) {
  world.load = [loads = around(mean, spread, random)](std::uint32_t i, bool away, std::uint64_t t) {
    return since(t) ? loads[i + (away ? 50 : 0)] : 1;
  };
  return world;
}

TEST(Coverage, OfAMachineThatIsLoadedByHalfSinceTheWave) {
  expect_covered("load by half", [](auto& random) { return loaded({}, 1.5, 0.05, random); }, 0.5);
  expect_covered("load by half, nobody stays", [](auto& random) { return loaded({.stay = 0}, 1.5, 0.05, random); });
  expect_covered("load by half, one stays", [](auto& random) { return loaded({.stay = 1}, 1.5, 0.05, random); });
  expect_covered("load by half, two stay", [](auto& random) { return loaded({.stay = 2}, 1.5, 0.05, random); });
  expect_covered("load goes", [](auto& random) { return loaded({}, 0.7, 0.05, random); }, 0.5);
}

// Whether others' work slows messages down, nobody knows.
TEST(Coverage, WhereMessagesTakeHalfOfTheTime) {
  expect_covered("half of it messages, load on computing",
                 [](auto& random) { return loaded({.communication = 1}, 1.5, 0.03, random); });
  expect_covered("half of it messages, load on both", [](auto& random) {
    World world = loaded({.communication = 1}, 1.5, 0.03, random);
    world.link = [](std::uint64_t t) { return since(t) ? 1.5 : 1; };
    return world;
  });
}

TEST(Coverage, WhereSomeNodesAreLoaded) {
  const auto on = [](World world, double load, std::function<bool(std::uint32_t i, bool away)> where) {
    world.load = [load, where](std::uint32_t i, bool away, std::uint64_t t) {
      return since(t) && where(i, away) ? load : 1;
    };
    return world;
  };
  expect_covered("on the targets",
                 [&](auto&) { return on({}, 1.5, [](std::uint32_t i, bool away) { return i < 2 && away; }); });
  for (const double load : {1.5, 3.0})
    for (const std::uint32_t stay : {1u, 2u, 3u, 6u})
      expect_covered(std::format("on the node of one of {} that stay, {} times", stay, load).c_str(),
                     [&](auto&) { return on({.stay = stay}, load, [](std::uint32_t i, bool) { return i == 2; }); });
  expect_covered("on the nodes of half of those that stay",
                 [&](auto&) { return on({}, 1.5, [](std::uint32_t i, bool) { return i > 4; }); });
}

TEST(Coverage, OfALoadThatComesAndGoes) {
  expect_covered("for three supersteps from the wave on", [](auto&) {
    World world;
    world.load = [](auto, auto, std::uint64_t t) { return t >= kEdge + 2 && t < kEdge + 5 ? 1.5 : 1; };
    return world;
  });
  expect_covered("for three supersteps before the wave", [](auto&) {
    World world;
    world.load = [](auto, auto, std::uint64_t t) { return t > kEdge - 3 && t <= kEdge ? 1.5 : 1; };
    return world;
  });
  expect_covered("by chance, each rank and superstep", [](auto& random) {
    World world;
    const std::uint64_t salt = random();
    world.load = [salt](std::uint32_t i, bool away, std::uint64_t t) {
      std::mt19937_64 draw(salt + i * 1000 + t * 2 + (away ? 1 : 0));
      return draw() % 5 == 0 ? 1.5 : 1;
    };
    return world;
  });
}

// As in Smith-Waterman, whose matrix fills, and in a fractal, whose rows differ.
TEST(Coverage, WhereWorkChanges) {
  const auto growing = [](World world, double to) {
    world.counted = true;
    world.work = [to](std::uint32_t i, std::uint64_t t) {
      return 1 + (to - 1) * static_cast<double>(t) / 40 * (1 + 0.1 * (i % 3));
    };
    return world;
  };
  expect_covered("work that grows threefold", [&](auto&) { return growing({}, 3); }, 0.9);
  expect_covered(
      "work that grows threefold, load by half",
      [&](auto& random) {
        World world = loaded({}, 1.5, 0.05, random);
        return growing(world, 3);
      },
      0.5);
  expect_covered("work that grows threefold, one stays", [&](auto&) { return growing({.stay = 1}, 3); }, 0.9);
  expect_covered("work that nobody foresees", [&](auto& random) {
    World world;
    world.counted = true;
    const std::uint64_t salt = random();
    world.work = [salt](std::uint32_t i, std::uint64_t t) {
      std::mt19937_64 draw(salt + i * 1000 + t);
      return 0.5 + static_cast<double>(draw() % 1000) / 1000;
    };
    return world;
  });
}

// Nobody is left there to see it: the gain is more than is told, and never less.
TEST(Coverage, ALoadOnTheNodesThatWereLeftIsNotSeen) {
  World world;
  world.load = [](std::uint32_t i, bool away, std::uint64_t t) { return since(t) && i < 2 && !away ? 1.5 : 1; };
  const Told told = Ran(world, 1).told();
  EXPECT_LT(told.job, world.gain() - told.job_error);
  EXPECT_GT(told.job, 0.3);
}

// Those that stay have the same node as those that go, or come: what they gain or lose by that is the wave's.
TEST(Coverage, NothingIsGainedByAWaveThatChangesNothing) {
  int told = 0;
  for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
    World world;
    world.communication = 1;
    world.load = [](std::uint32_t i, bool away, std::uint64_t t) {
      return (i < 2 && away ? 1.4 : 1) * (since(t) ? 1.5 : 1);
    };
    const Told each = Ran(world, seed).told();
    told += each.job != 0;
  }
  EXPECT_LE(told, kRuns / 10) << "a gain is told where there is none";
}

}  // namespace
}  // namespace bsp::reconcile
