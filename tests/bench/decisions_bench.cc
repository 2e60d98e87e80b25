// What decisions are worth over complete runs: random platforms in seven rows, each heuristic in a closed loop
// (closed_loop.h), compared with not moving, GreedyLB and RefineLB of Charm++, the lower bound and the exhaustive
// optimum.
//
//   bench_decisions [--platforms 60] [--seed 1] [--noise 0.02] [--row NAME] [--only HEURISTIC] [--worlds] [--search 50000]
//
// The bound is proved for any run (least_run.h). "loose" is the simpler one, which charges nothing for moves, takes no
// message to cross a slow link, and divides work where ranks share a node. Neither knows that nothing is known before the first
// superstep, so no heuristic reaches them. So each entrant is compared with the best mapping found, too (best_mapping.h), and
// what it takes longer than that is split: supersteps before its first wave, pauses beyond those of one wave, supersteps
// between its waves, and those after the last one, in which its mapping is worse.
//
// "pods unseen": without what a message costs inside a pod and across.
// "by Set": Auto without the partners of each rank, which tells it only from which Sets a rank hears. "links unseen":
// without what was seen of links that all ranks share.
//
// GreedyLB and RefineLB pay the same pause for their moves, and may do what no machine can: put a rank into a slot
// that another one leaves in the same wave.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "operator/decide/auto/auto.h"
#include "operator/decide/model/strategy.h"
#include "sim/yardsticks/yardsticks.h"
#include "tests/bench/best_mapping.h"
#include "tests/bench/closed_loop.h"
#include "tests/bench/least_run.h"

namespace bsp::decide {
namespace {

struct Row {
  const char* name;
  const char* what;
  LoopShape shape;
  bool optimum = false;
};

constexpr Row kRows[] = {
    {"half", "half of the slots spare", {}},
    {"tenth", "a tenth of the slots spare", {.spare = 0.1}},
    {"short",
     "supersteps of 20 to 200 ms, 10,000 of them",
     {.least_seconds = 0.02, .most_seconds = 0.2, .least_steps = 10'000, .most_steps = 10'000}},
    {"small", "4 to 6 ranks", {.least_ranks = 4, .most_ranks = 6, .spare = 0.25}, true},
    {"shared",
     "half of the slots spare, long messages, links between Sets shared",
     {.least_share = 0.02, .most_share = 0.2, .shared = true}},
    {"few",
     "4 to 6 ranks, long messages, links between Sets shared",
     {.least_ranks = 4, .most_ranks = 6, .spare = 0.25, .least_share = 0.02, .most_share = 0.2, .shared = true},
     true},
    {"pods", "half of the slots spare, nodes of two to four slots, on which ranks share a pod", {.pods = true}},
};

struct Options {
  std::uint64_t platforms = 60, seed = 1;
  double noise = 0.02;
  std::string row{}, only{};      // empty: all
  bool worlds = false;            // print a line for each
  std::uint32_t search = 50'000;  // steps of the search for the best mapping
};

struct Entrant {
  std::string name;
  Params params;
  LoopPlanner planner;
  bool length_given = false;  // the number of supersteps is known
};

std::vector<Entrant> entrants() {
  std::vector<Entrant> all;
  const auto with = [](Heuristic heuristic) {
    Params params;
    take_heuristic(params, heuristic);
    return params;
  };
  for (const Strategy& s : strategies()) all.push_back({std::string(s.name), with(s.heuristic), make_plan});
  all.push_back({"Auto, length given", with(Heuristic::kAuto), make_plan, true});
  all.push_back({"Auto, by Set", with(Heuristic::kAuto), plan_without_partners});
  all.push_back({"Auto, by Set, given", with(Heuristic::kAuto), plan_without_partners, true});
  all.push_back({"Auto, links unseen", with(Heuristic::kAuto), plan_without_links});
  all.push_back({"Auto, unseen, given", with(Heuristic::kAuto), plan_without_links, true});
  all.push_back({"Auto, pods unseen", with(Heuristic::kAuto), plan_without_pods});
  all.push_back({"Auto, no pods, given", with(Heuristic::kAuto), plan_without_pods, true});
  for (const char* name : {"GreedyLB", "RefineLB"}) all.push_back({name, {}, sim::yardstick_named(name)});
  return all;
}

// What a run takes longer than with the best mapping from the first superstep on, s; `bound` is that of the run.
struct Losses {
  double before = 0, pauses = 0, between = 0, after = 0;  // the first wave; …; the last wave

  static Losses of(const LoopJob& job, const LoopRun& run, const BestMapping& best) {
    Losses lost{.pauses = run.paused - wave_seconds(job, best.on)};
    const double least = job.superstep_seconds(best.on);
    std::uint64_t since = 0;
    for (std::size_t w = 0; w <= run.moved_at.size(); ++w) {
      const bool last = w == run.moved_at.size();
      const std::uint64_t until = last ? job.supersteps : run.moved_at[w];
      double& part = last ? lost.after : w == 0 ? lost.before : lost.between;
      part += static_cast<double>(until - since) * (run.superstep_seconds[w] - least);
      since = until;
    }
    return lost;
  }
  void add(const Losses& other, double bound) {
    before += other.before / bound, pauses += other.pauses / bound;
    between += other.between / bound, after += other.after / bound;
  }
};

// The waves of all runs: what a superstep was to be shorter by, and was, as a part of the superstep before.
class Waved {
 public:
  void add(const LoopRun& run) {
    for (std::size_t w = 0; w < run.predicted_seconds.size(); ++w) {
      const double before = run.superstep_seconds[w];
      waves_.emplace_back(run.predicted_seconds[w] / before, (before - run.superstep_seconds[w + 1]) / before);
    }
  }
  [[nodiscard]] bool empty() const { return waves_.empty(); }
  void print(const char* name) {
    double predicted = 0, realised = 0;
    std::vector<double> off;
    std::size_t longer = 0;
    for (const auto& [p, r] : waves_) {
      predicted += p, realised += r;
      off.push_back(r - p);
      longer += r < -0.01;
    }
    std::ranges::sort(off);
    const auto at = [&](double part) { return 100 * off[static_cast<std::size_t>(part * (off.size() - 1.0))]; };
    const auto n = static_cast<double>(waves_.size());
    std::printf(
        "  %-19s %zu waves: superstep predicted %.1f %% shorter, was %.1f %% (means); realised - predicted, points: "
        "10th %+.1f, median %+.1f, 90th %+.1f; %zu made it more than 1 %% longer\n",
        name, waves_.size(), 100 * predicted / n, 100 * realised / n, at(0.1), at(0.5), at(0.9), longer);
  }

 private:
  std::vector<std::pair<double, double>> waves_;
};

struct Tally {
  double logs = 0, worst = 1e9, bound_logs = 0, best_logs = 0, slowest = 0, excess = 0;
  Losses losses{};
  Waved waved{};
  std::uint64_t moves = 0, returns = 0, taken_back = 0, moved = 0, worse = 0, calls = 0;
};

// For the bound: what is heard from the own Set costs no more than its bytes in a pod.
LoopJob with_least_prices(LoopJob job) {
  Platform& platform = job.start.platform;
  for (std::size_t j = 0; j < platform.shared.size(); ++j)
    platform.T[j, j] = std::min({platform.T[j, j], platform.shared[j].byte, platform.apart[j].byte});
  return job;
}

void run_row(const Row& row, const Options& o, std::FILE* json) {
  std::mt19937_64 random(o.seed * 1000 + static_cast<std::uint64_t>(&row - kRows));
  std::vector<Entrant> all = entrants();
  std::erase_if(all, [&](const Entrant& e) { return !o.only.empty() && !e.name.starts_with(o.only); });
  std::vector<Tally> tallies(all.size());
  double bound_logs = 0, loose_logs = 0, best_logs = 0, best_excess = 0;
  for (std::uint64_t w = 0; w < o.platforms; ++w) {
    const LoopJob job = random_loop_job(random, row.shape);
    std::vector<ProcessorId> on;
    for (const Rank& rank : job.start.ranks) on.push_back(rank.processor);
    const double steps = static_cast<double>(job.supersteps), still = steps * job.superstep_seconds(on);
    const LoopJob least = with_least_prices(job);
    const double loose = steps * least_superstep_seconds(least), bound = std::max(loose, least_run_seconds(least));
    const double optimum = row.optimum ? exhaustive_optimum(job) : 0;
    loose_logs += std::log(bound / loose);
    bound_logs += std::log(bound / still);
    if (o.worlds)
      std::printf("  world %2llu: %2zu ranks, %zu nodes of %u, %llu x %.3f s, bound %4.1f %%", (unsigned long long)w,
                  on.size(), job.start.platform.processors.size(), job.start.platform.processors[0].slots,
                  (unsigned long long)job.supersteps, still / steps, 100 * (1 - bound / still));
    std::vector<LoopRun> runs;
    for (Entrant& e : all) {
      if (e.length_given) e.params.expected_supersteps = job.supersteps;
      runs.push_back(run_loop(job, e.params, o.noise, o.seed * 7919 + w, e.planner));
    }
    const LoopRun& shortest = *std::ranges::min_element(runs, {}, &LoopRun::makespan);
    const BestMapping best = best_mapping(job, shortest.on, o.search);
    best_logs += std::log(best.seconds / bound);
    if (optimum > 0) best_excess += best.seconds / optimum - 1;
    for (std::size_t e = 0; e < all.size(); ++e) {
      const LoopRun& run = runs[e];
      Tally& tally = tallies[e];
      tally.best_logs += std::log(run.makespan / best.seconds);
      tally.losses.add(Losses::of(job, run, best), bound);
      tally.waved.add(run);
      tally.logs += std::log(run.makespan / still);
      tally.worst = std::min(tally.worst, 1 - run.makespan / still);
      tally.bound_logs += std::log(run.makespan / bound);
      tally.slowest = std::max(tally.slowest, run.slowest_decision);
      tally.moves += run.moves, tally.returns += run.returns, tally.taken_back += run.taken_back,
          tally.calls += run.calls;
      tally.moved += run.moves > 0;
      tally.worse += run.makespan > still * 1.01;
      if (optimum > 0) tally.excess += run.makespan / optimum - 1;
      if (o.worlds)
        std::printf("  %s %.1f (%llu/%llu)", all[e].name.c_str(), 100 * (1 - run.makespan / still),
                    (unsigned long long)run.moves, (unsigned long long)run.returns);
    }
    if (o.worlds) std::printf("\n");
  }
  const auto n = static_cast<double>(o.platforms);
  std::printf(
      "\n%s: %s; the bound is %.1f %%, %.1f %% above the loose one, and the best mapping found %.1f %% above it",
      row.name, row.what, 100 * (1 - std::exp(bound_logs / n)), 100 * (std::exp(loose_logs / n) - 1),
      100 * (std::exp(best_logs / n) - 1));
  if (row.optimum) std::printf(" and %.2f %% above the optimum", 100 * best_excess / n);
  std::printf("\n");
  std::printf("  %-19s %7s %7s %8s %8s = %7s %7s %8s %7s %7s %6s %6s %8s %5s %7s%s\n", "", "gain %", "worst %",
              "> bound %", "> best %", "before", "pauses", "between", "after", "moved", "worse", "moves", "returns",
              "back", "ms", row.optimum ? "  > optimum %" : "");
  for (std::size_t e = 0; e < all.size(); ++e) {
    const Tally& t = tallies[e];
    const double gain = 100 * (1 - std::exp(t.logs / n)), percent = 100 / n;
    std::printf("  %-19s %7.1f %7.1f %8.1f %8.1f = %7.1f %7.1f %8.1f %7.1f %7llu %6llu %6llu %8llu %5llu %7.2f",
                all[e].name.c_str(), gain, 100 * t.worst, 100 * (std::exp(t.bound_logs / n) - 1),
                100 * (std::exp(t.best_logs / n) - 1), percent * t.losses.before, percent * t.losses.pauses,
                percent * t.losses.between, percent * t.losses.after, (unsigned long long)t.moved,
                (unsigned long long)t.worse, (unsigned long long)t.moves, (unsigned long long)t.returns,
                (unsigned long long)t.taken_back, 1e3 * t.slowest);
    if (row.optimum) std::printf("  %8.1f", percent * t.excess);
    std::printf("\n");
    if (json != nullptr)
      std::fprintf(
          json,
          "{\"row\": \"%s\", \"heuristic\": \"%s\", \"seed\": %llu, \"noise\": %g, \"gain\": %.4f, \"worst\": %.4f, "
          "\"moves\": %llu, \"returns\": %llu}\n",
          row.name, all[e].name.c_str(), (unsigned long long)o.seed, o.noise, gain / 100, t.worst,
          (unsigned long long)t.moves, (unsigned long long)t.returns);
  }
  for (std::size_t e = 0; e < all.size(); ++e)
    if (all[e].params.heuristic == Heuristic::kAuto && !tallies[e].waved.empty() && all[e].name.starts_with("Auto"))
      tallies[e].waved.print(all[e].name.c_str());
}

int main_of(int argc, char** argv) {
  Options o;
  for (int a = 1; a < argc; ++a) {
    const std::string option = argv[a];
    const auto value = [&]() -> const char* {
      if (a + 1 == argc) {
        std::fprintf(stderr, "bench_decisions: %s needs a value\n", option.c_str());
        std::exit(2);
      }
      return argv[++a];
    };
    if (option == "--platforms")
      o.platforms = std::strtoull(value(), nullptr, 10);
    else if (option == "--seed")
      o.seed = std::strtoull(value(), nullptr, 10);
    else if (option == "--noise")
      o.noise = std::strtod(value(), nullptr);
    else if (option == "--row")
      o.row = value();
    else if (option == "--only")
      o.only = value();
    else if (option == "--search")
      o.search = static_cast<std::uint32_t>(std::strtoul(value(), nullptr, 10));
    else if (option == "--worlds")
      o.worlds = true;
    else {
      std::fprintf(stderr,
                   "bench_decisions: unknown option '%s': use --platforms N, --seed S, --noise X, --row "
                   "half|tenth|short|small|shared|few|pods, --only HEURISTIC, --search STEPS, --worlds\n",
                   option.c_str());
      return 2;
    }
  }
  std::printf(
      "seed %llu, noise %.0f %%, %llu platforms a row; gain: geometric mean of makespan / not moving; losses in %% of "
      "the bound\n",
      (unsigned long long)o.seed, 100 * o.noise, (unsigned long long)o.platforms);
  const char* path = std::getenv("BSP_BENCH_JSON");
  std::FILE* json = path != nullptr ? std::fopen(path, "w") : nullptr;
  for (const Row& row : kRows)
    if (o.row.empty() || o.row == row.name) run_row(row, o, json);
  if (json != nullptr) std::fclose(json);
  return 0;
}

}  // namespace
}  // namespace bsp::decide

int main(int argc, char** argv) { return bsp::decide::main_of(argc, argv); }
