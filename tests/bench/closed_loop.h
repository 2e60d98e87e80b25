// A job on a computed platform, with the real decision code in its loop: superstep, window, call, moves with their
// pause, next window. Measures what a decision is worth over a complete run, in thousands of runs; the simulator
// (sim) uses SimGrid for the same and takes a hundred times as long.
//
//   superstep = max over processors Σ work(i) / speed(p)  +  max over ranks Σ over partners k bytes(k) · T(set k, set i)
//   a plan that moves ranks costs the largest Mem(i, target) of its moves, once
//
// Where a link between two Sets is shared (LoopJob::capacity), the second part of a superstep is no shorter than all bytes
// that cross it ÷ its capacity, and a plan costs no less than all checkpoints that cross it ÷ its capacity + Mig. What the
// decision knows of links it has learned from the supersteps, as in the operator.
//
// Where ranks share pods (Platform::shared), messages cost what loop_pods.h says of the pods that waves have made.
//
// The decision gets noisy measurements: each instruction count, time and byte count of each superstep is off by an
// independent factor, uniform in 1 ± noise; so are the bytes of each rank's heaviest partners. The real duration of a
// superstep has no noise, so that two runs can be compared.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "operator/decide/make_plan.h"
#include "operator/decide/model/links.h"
#include "operator/decide/model/mapping.h"
#include "tests/bench/loop_pods.h"

namespace bsp::decide {

struct LoopJob {
  struct Partner {
    std::uint32_t from;
    double bytes;
    double messages = 0;
  };
  Snapshot start{};                           // speeds, T, Mig and the placement of the ranks
  std::vector<double> work{};                 // instructions of a superstep, by rank
  std::vector<std::vector<Partner>> hears{};  // by rank
  std::uint64_t supersteps = 0;
  // By processor, its node: the ranks of a node share the speeds of all its processors. Empty: each has its own.
  std::vector<std::uint32_t> node{};
  Grid<double> capacity{};  // as Platform::capacity, but the real one
  // Seconds that a superstep takes longer on a mapping, for which no measured value has a reason; empty: 0.
  std::function<double(const std::vector<ProcessorId>& on)> unexplained{};
  // The relative speed of processor p in superstep t, compared with the platform's value; empty: 1.
  std::function<double(std::uint64_t t, std::uint32_t p)> pace{};
  // Whether the decision is told of superstep t; empty: of each.
  std::function<bool(std::uint64_t t)> is_measured{};
  // Of a slot of processor p from superstep t on, an hour; empty: the platform's.
  std::function<double(std::uint64_t t, std::uint32_t p)> price{};
  double deadline = 0;  // s after the start
  // The relative work of rank i in superstep t; empty: 1.
  std::function<double(std::uint64_t t, std::uint32_t i)> drift{};

  [[nodiscard]] SetId set_of(ProcessorId p) const { return start.platform.processor(p).set; }

  [[nodiscard]] double work_of(std::uint32_t i, std::uint64_t t) const { return work[i] * (drift ? drift(t, i) : 1); }
  [[nodiscard]] std::vector<double> busy(const std::vector<ProcessorId>& on, std::uint64_t t) const {
    std::vector<double> seconds(start.platform.processors.size(), 0);
    for (std::uint32_t i = 0; i < on.size(); ++i) seconds[on[i].value] += work_of(i, t);
    const auto speed = [&](std::uint32_t p) {
      return start.platform.processors[p].available() * (pace ? pace(t, p) : 1);
    };
    if (node.empty()) {
      for (std::uint32_t p = 0; p < seconds.size(); ++p) seconds[p] /= speed(p);
      return seconds;
    }
    std::map<std::uint32_t, double> shared_work, shared_speed;
    for (std::uint32_t p = 0; p < seconds.size(); ++p)
      shared_work[node[p]] += seconds[p], shared_speed[node[p]] += speed(p);
    for (std::uint32_t p = 0; p < seconds.size(); ++p)
      if (seconds[p] > 0) seconds[p] = shared_work[node[p]] / shared_speed[node[p]];
    return seconds;
  }
  // After one wave from the start, or as pods are by now.
  [[nodiscard]] double communication(const std::vector<ProcessorId>& on) const {
    LoopPods pods(start);
    pods.move(on);
    return communication(on, pods);
  }
  // What rank i hears from k takes, s.
  [[nodiscard]] double seconds_of(std::uint32_t i, const Partner& k, const std::vector<ProcessorId>& on,
                                  const LoopPods& pods) const {
    const Platform& platform = start.platform;
    const std::uint32_t a = set_of(on[k.from]).value, j = set_of(on[i]).value;
    if (platform.shared.empty()) return k.bytes * platform.T[a, j];
    if (pods.share(i, k.from)) return k.bytes * platform.shared[j].byte + k.messages * platform.shared[j].message;
    return k.bytes * (a == j ? platform.apart[j].byte : platform.T[a, j]) + k.messages * platform.apart[j].message;
  }
  [[nodiscard]] double communication(const std::vector<ProcessorId>& on, const LoopPods& pods) const {
    double longest = 0;
    for (std::uint32_t i = 0; i < on.size(); ++i) {
      double seconds = 0;
      for (const Partner& k : hears[i]) seconds += seconds_of(i, k, on, pods);
      longest = std::max(longest, seconds);
    }
    return std::max(longest, links(on).busiest().seconds) + (unexplained ? unexplained(on) : 0);
  }
  // What crosses the shared links in a superstep.
  [[nodiscard]] Links links(const std::vector<ProcessorId>& on) const {
    Links links(capacity);
    if (!links.limited()) return links;
    for (std::size_t i = 0; i < on.size(); ++i)
      for (const Partner& k : hears[i]) links.add(set_of(on[k.from]).value, set_of(on[i]).value, k.bytes);
    return links;
  }
  // What a wave costs.
  [[nodiscard]] double pause(const std::vector<ProcessorId>& before, const std::vector<ProcessorId>& after) const {
    const Platform& platform = start.platform;
    Links links(capacity);
    double longest = 0, largest_Mig = 0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (after[i] == before[i]) continue;
      const std::uint32_t from = set_of(before[i]).value, to = set_of(after[i]).value;
      const double bytes = start.ranks[i].memory_bytes, Mig = platform.Mig[0, to];
      longest = std::max(longest, bytes * platform.T[from, to] + Mig);
      largest_Mig = std::max(largest_Mig, Mig);
      links.add(from, to, bytes);
    }
    const double together = links.busiest().seconds;
    return together > 0 ? std::max(longest, together + largest_Mig) : longest;
  }
  [[nodiscard]] double superstep_seconds(const std::vector<ProcessorId>& on, std::uint64_t t = 1) const {
    return std::ranges::max(busy(on, t)) + communication(on);
  }
  // Of the whole run on one mapping, and on that of its start.
  [[nodiscard]] double seconds_on(const std::vector<ProcessorId>& on) const {
    double sum = 0;
    for (std::uint64_t t = 1; t <= supersteps; ++t) sum += superstep_seconds(on, t);
    return sum;
  }
  [[nodiscard]] double seconds_without_moves() const {
    std::vector<ProcessorId> on;
    for (const Rank& rank : start.ranks) on.push_back(rank.processor);
    return seconds_on(on);
  }
};

// --- Random jobs ---------------------------------------------------------------------------------------------------

struct LoopShape {
  std::uint32_t least_ranks = 8, most_ranks = 64;
  double spare = 0.5;                                  // of the slots
  double least_seconds = 0.3, most_seconds = 3;        // of a superstep, approximately
  std::uint64_t least_steps = 200, most_steps = 1000;  // supersteps of the run
  double least_share = 0.005, most_share = 0.05;       // of a superstep, that a message takes, approximately
  bool shared = false;                                 // links between Sets carry one to three ranks at their full pace
  bool crowded = true;                                 // in a quarter of the platforms two ranks share a node's speed
  bool pods = false;                                   // nodes of two to four slots, on which ranks share pods
};

// Of "node-N".
inline std::uint32_t node_number(const Processor& p) {
  return static_cast<std::uint32_t>(std::stoul(p.name.substr(p.name.find('-') + 1)));
}

inline LoopJob random_loop_job(std::mt19937_64& random, const LoopShape& shape) {
  const auto between = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  const auto whole = [&](std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(random);
  };
  LoopJob job;
  Platform& platform = job.start.platform;
  const auto ranks = static_cast<std::uint32_t>(whole(shape.least_ranks, shape.most_ranks));
  const auto sets = static_cast<std::uint32_t>(whole(2, 5));
  const auto slots = static_cast<std::uint32_t>(std::max(ranks + 1.0, ranks / (1 - shape.spare) + 0.5));
  const std::uint32_t each =
      whole(0, 3) == 0 && ranks >= 8 && shape.crowded ? 2 : 1;  // slots of a node, which share it
  platform.T = Grid<double>(sets, sets);
  platform.Mig = Grid<double>(1, sets);
  std::vector<double> speed;
  for (std::uint32_t a = 0; a < sets; ++a) {
    platform.sets.push_back({.name = "set-" + std::to_string(a)});
    platform.Mig[0, a] = between(0.2, 0.5);
    speed.push_back(between(0.5e9, 2e9));
    for (std::uint32_t b = 0; b <= a; ++b)
      platform.T[a, b] = platform.T[b, a] = 1 / (a == b ? between(1e9, 2e9) : between(1e8, 1e9));
  }
  for (std::uint32_t n = 0; shape.pods ? platform.processors.size() < slots : n * each < slots; ++n) {
    const auto j = n < sets ? n : static_cast<std::uint32_t>(whole(0, sets - 1));
    const Processor node{.name = "node-" + std::to_string(n), .set = {j}, .cpu = each * speed[j], .slots = each};
    platform.processors.insert(platform.processors.end(), shape.pods ? whole(2, 4) : 1, node);
  }
  const double seconds = between(shape.least_seconds, shape.most_seconds);
  const double share = between(shape.least_share, shape.most_share);
  for (std::uint32_t i = 0; i < ranks; ++i) {
    job.start.ranks.push_back({.memory_bytes = between(20e6, 800e6)});
    job.work.push_back(seconds * 1e9 * between(0.4, 1.6));
    const double bytes = share * seconds * 3e8 * between(0.5, 1.5);
    job.hears.push_back({{(i + 1) % ranks, bytes}, {(i + ranks - 1) % ranks, bytes}});
  }
  constexpr Mapping kMappings[] = {Mapping::kContiguous, Mapping::kAscending, Mapping::kRoundRobin};
  const auto mapping = initial_mapping(kMappings[whole(0, 2)], ranks, platform);
  check(mapping.has_value(), "there are more slots than ranks");
  for (std::uint32_t i = 0; i < ranks; ++i) job.start.ranks[i].processor = (*mapping)[i];
  job.supersteps = whole(shape.least_steps, shape.most_steps);
  platform.T_origin = Grid<Origin>(sets, sets, Origin::kMeasured);
  if (shape.pods) {
    for (Rank& rank : job.start.ranks) rank.pod = 1 + node_number(platform.processor(rank.processor));
    for (std::uint32_t a = 0; a < sets; ++a) {
      platform.shared.push_back({.byte = 1 / between(2e9, 5e9), .message = between(0.2e-6, 0.6e-6)});
      platform.apart.push_back({.byte = platform.T[a, a], .message = between(5e-6, 25e-6)});
    }
    const double often = std::exp(between(std::log(10), std::log(4000))) * seconds;
    for (auto& partners : job.hears)
      for (LoopJob::Partner& k : partners) k.messages = often * between(0.5, 1.5);
  }
  if (!shape.shared) return job;
  for (std::uint32_t i = 0; i < ranks; ++i)  // four partners, so that more of them are apart
    for (const std::uint32_t k : {(i + 2) % ranks, (i + ranks - 2) % ranks})
      if (k != i) job.hears[i].push_back({k, job.hears[i][0].bytes});
  job.capacity = Grid<double>(sets, sets);
  for (std::uint32_t a = 0; a < sets; ++a)
    for (std::uint32_t b = 0; b < a; ++b) job.capacity[a, b] = job.capacity[b, a] = between(1, 3) / platform.T[a, b];
  return job;
}

// --- A run ---------------------------------------------------------------------------------------------------------

using LoopPlanner = std::function<Result<Plan>(const Snapshot& snapshot, const Window& window, const Params& params)>;

// Decides as if nothing were known of whom ranks hear from but the Set.
inline Result<Plan> plan_without_partners(const Snapshot& snapshot, const Window& window, const Params& params) {
  Snapshot known = snapshot;
  for (Rank& rank : known.ranks) rank.partners.clear();
  return make_plan(known, window, params);
}

// Decides as if no link were shared.
inline Result<Plan> plan_without_links(const Snapshot& snapshot, const Window& window, const Params& params) {
  Snapshot known = snapshot;
  known.platform.capacity = {};
  return make_plan(known, window, params);
}

// Decides as if a message cost the same inside a pod and across.
inline Result<Plan> plan_without_pods(const Snapshot& snapshot, const Window& window, const Params& params) {
  Snapshot known = snapshot;
  known.platform.shared = known.platform.apart = {};
  return make_plan(known, window, params);
}

// The heaviest ones that rank i hears from.
inline std::vector<Partner> partners_of(const LoopJob& job, std::uint32_t i, auto noisy) {
  std::map<std::uint32_t, std::pair<double, double>> heard;
  for (const LoopJob::Partner& k : job.hears[i])
    if (k.from != i) heard[k.from].first += k.bytes, heard[k.from].second += k.messages;
  std::vector<Partner> partners;
  for (const auto& [from, sum] : heard)
    partners.push_back({.rank = {from}, .bytes = noisy(sum.first), .messages = sum.second});
  std::ranges::sort(partners, {}, [](const Partner& k) { return std::pair(-k.bytes, k.rank); });
  if (partners.size() > kMostPartners) partners.resize(kMostPartners);
  return partners;
}

// The platform and the metrics as the decision sees them, after each superstep; empty: the real ones.
using LoopView = std::function<void(MeasuredSuperstep& seen, const std::vector<ProcessorId>& on, Snapshot& known)>;

struct LoopRun {
  double makespan = 0, paused = 0;  // s
  double cost = 0;                  // what the ranks' slots cost; in a pause what the dearer of both do
  std::uint64_t calls = 0, moves = 0;
  std::uint64_t returns = 0;                 // moves to a processor on which the rank has been before …
  std::uint64_t taken_back = 0;              // … that undo a wave; not among the returns
  std::vector<std::size_t> taken_back_at{};  // which of the plans below do
  double slowest_decision = 0;               // s
  std::vector<ProcessorId> on{};             // at the end
  std::vector<std::uint64_t> moved_at{};     // superstep of each plan that moved ranks
  std::vector<double> superstep_seconds{};   // of the first mapping, and of that after each of them
  std::vector<double> predicted_seconds{};   // what each plan that moved ranks had the superstep shorter by
};

inline LoopRun run_loop(const LoopJob& job, const Params& params, double noise, std::uint64_t seed,
                        const LoopPlanner& planner = make_plan, const LoopView& view = {}) {
  std::mt19937_64 random(seed);
  const auto noisy = [&](double value) { return value * std::uniform_real_distribution(1 - noise, 1 + noise)(random); };
  std::mt19937_64 of_partners(~seed);  // so that the other values have the same noise, whatever is known of partners
  const std::size_t ranks = job.work.size(), sets = job.start.platform.sets.size();
  LoopRun run;
  Snapshot known = job.start;
  if (known.platform.T_origin.empty()) known.platform.T_origin = Grid<Origin>(sets, sets, Origin::kAssumed);
  std::vector<std::set<std::uint32_t>> been(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    run.on.push_back(job.start.ranks[i].processor);
    been[i].insert(run.on[i].value);
  }
  Grid<LinkSeen> links(sets, sets);
  State state;
  std::uint64_t t = 0;
  LoopPods pods(job.start);
  double communication = job.communication(run.on, pods);
  const auto rate = [&](std::uint64_t at, const std::vector<ProcessorId>& on) {
    double sum = 0;
    for (const ProcessorId p : on) sum += job.price ? job.price(at, p.value) : job.start.platform.processor(p).price;
    return sum / 3600;
  };
  run.superstep_seconds.push_back(job.superstep_seconds(run.on));
  while (t < job.supersteps) {
    Window window(state, params, ranks, sets);
    while (t < job.supersteps && !window.call_due()) {
      const std::vector<double> busy = job.busy(run.on, ++t);
      run.makespan += std::ranges::max(busy) + communication;
      run.cost += (std::ranges::max(busy) + communication) * rate(t, run.on);
      if (job.is_measured && !job.is_measured(t)) continue;
      MeasuredSuperstep seen{.superstep = {t}};
      Grid<double> bytes(ranks, sets), seconds(ranks, sets);
      for (std::uint32_t i = 0; i < ranks; ++i) {
        seen.instructions.push_back(noisy(job.work_of(i, t)));
        seen.compute_seconds.push_back(noisy(busy[run.on[i].value]));
        for (const LoopJob::Partner& k : job.hears[i]) {
          const std::uint32_t j = job.set_of(run.on[k.from]).value;
          bytes[i, j] += noisy(k.bytes);
          seconds[i, j] += noisy(job.seconds_of(i, k, run.on, pods));
        }
      }
      if (!job.capacity.empty()) {  // all that cross a link share it to the end
        const Links crossing = job.links(run.on);
        for (std::uint32_t i = 0; i < ranks; ++i)
          for (std::uint32_t j = 0; j < sets; ++j)
            if (bytes[i, j] > 0)
              seconds[i, j] = std::max(seconds[i, j], noisy(crossing.seconds(j, job.set_of(run.on[i]).value)));
      }
      seen.recv_bytes = bytes, seen.recv_seconds = seconds;
      seen.communication_seconds = noisy(communication);
      std::vector<SetId> own;
      for (const ProcessorId p : run.on) own.push_back(job.set_of(p));
      std::vector<std::vector<Partner>> partners;
      for (std::uint32_t i = 0; i < ranks && !known.platform.apart.empty(); ++i)
        partners.push_back(partners_of(job, i, [](double sent) { return sent; }));
      learn(links, seen, own, known.platform, message_seconds(known.platform, partners, own));
      if (view) view(seen, run.on, known);
      window.add(std::move(seen));
    }
    if (t == job.supersteps) break;
    for (std::uint32_t i = 0; i < ranks; ++i)
      known.ranks[i].partners = partners_of(job, i, [&](double bytes) {
        return bytes * std::uniform_real_distribution(1 - noise, 1 + noise)(of_partners);
      });
    known.platform.capacity = capacities(links);
    known.time_left = job.deadline - run.makespan;
    for (std::uint32_t p = 0; job.price && p < known.platform.processors.size(); ++p)
      known.platform.processors[p].price = job.price(t + 1, p);
    const auto begun = std::chrono::steady_clock::now();
    const Result<Plan> plan = planner(known, window, params);
    run.slowest_decision =
        std::max(run.slowest_decision, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    check(plan.has_value(), "the job can be decided");
    ++run.calls;
    const std::vector<ProcessorId> before = run.on;
    double pause = 0;
    for (const Move& move : plan->moves) {
      pause = std::max(pause, move.cost);
      run.on[move.rank.value] = known.ranks[move.rank.value].processor = move.to;
      known.ranks[move.rank.value].last_move = {t};
      known.ranks[move.rank.value].left.push_back(move.from);
      const bool back = !been[move.rank.value].insert(move.to.value).second;
      if (back) ++(plan->rules.takes_back ? run.taken_back : run.returns);
    }
    pods.move(run.on);
    pods.tell(known);
    run.moves += plan->moves.size();
    communication = job.communication(run.on, pods);
    if (plan->rules.takes_back) run.taken_back_at.push_back(run.moved_at.size());
    if (!plan->moves.empty()) {
      run.moved_at.push_back(t);
      run.superstep_seconds.push_back(std::ranges::max(job.busy(run.on, 1)) + communication);
      run.predicted_seconds.push_back(plan->forecast.before - plan->forecast.after);
    }
    if (!job.capacity.empty()) pause = std::max(pause, job.pause(before, run.on));
    run.paused += pause;
    run.makespan += pause;
    run.cost += pause * std::max(rate(t, before), rate(t, run.on));
    state = std::move(window).close(plan->next);
  }
  return run;
}

// --- Lower bounds ---------------------------------------------------------------------------------------------------

// Seconds of a superstep, whatever the mapping: the work shared as evenly as the speeds allow, the k-th largest rank
// on the k-th best slot, and every message as fast as its Set's fastest link.
inline double least_superstep_seconds(const LoopJob& job) {
  std::vector<double> work = job.work, slots;
  double sum = 0, capacity = 0;
  for (const double I : work) sum += I;
  for (const Processor& p : job.start.platform.processors) {
    capacity += p.available();
    for (std::uint32_t s = p.taken; s < p.slots; ++s) slots.push_back(p.available());
  }
  std::ranges::sort(work, std::greater());
  std::ranges::sort(slots, std::greater());
  double time = sum / capacity;
  for (std::size_t k = 0; k < work.size(); ++k) time = std::max(time, work[k] / slots[k]);
  double communication = 0, quickest = 1;
  const Grid<double>& T = job.start.platform.T;
  for (std::size_t a = 0; a < T.rows(); ++a)
    for (std::size_t b = 0; b < T.cols(); ++b) quickest = std::min(quickest, T[a, b]);
  for (const auto& partners : job.hears) {
    double bytes = 0;
    for (const LoopJob::Partner& k : partners) bytes += k.bytes;
    communication = std::max(communication, bytes * quickest);
  }
  return time + communication;
}

// The shortest run with one wave, before the first superstep, over all mappings; a vacated slot may be taken at once.
inline double exhaustive_optimum(const LoopJob& job) {
  const Platform& platform = job.start.platform;
  const auto processors = static_cast<std::uint32_t>(platform.processors.size());
  std::vector<ProcessorId> on(job.work.size());
  std::vector<std::uint32_t> held(processors, 0);
  std::vector<ProcessorId> home;
  for (const Rank& rank : job.start.ranks) home.push_back(rank.processor);
  double least = 1e300;
  const std::function<void(std::uint32_t)> place = [&](std::uint32_t i) {
    if (i == on.size()) {
      const double seconds = static_cast<double>(job.supersteps) * job.superstep_seconds(on);
      if (seconds < least) least = std::min(least, seconds + job.pause(home, on));
      return;
    }
    for (std::uint32_t p = 0; p < processors; ++p) {
      if (held[p] == platform.processors[p].slots) continue;
      on[i] = {p};
      ++held[p];
      place(i + 1);
      --held[p];
    }
  };
  place(0);
  return least;
}

}  // namespace bsp::decide
