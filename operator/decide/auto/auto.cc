#include "operator/decide/auto/auto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>

#include "operator/decide/model/adaptation.h"
#include "operator/decide/auto/auto_search.h"
#include "operator/decide/auto/explore.h"
#include "operator/decide/model/links.h"
#include "operator/decide/model/pf.h"
#include "operator/decide/model/pm.h"
#include "operator/decide/auto/take_back.h"

namespace bsp::decide {
namespace {

// The window's means in place of its last superstep, where that is cheap: they have less noise.
Metrics averaged(const Metrics& m) {
  Metrics mean{.last = m.last};
  const double n = static_cast<double>(m.supersteps);
  for (std::size_t i = 0; i < mean.last.instructions.size(); ++i) mean.last.instructions[i] = m.I_window[i] / n;
  mean.last.recv_bytes = m.B_window;
  for (std::size_t i = 0; i < mean.last.recv_bytes.rows(); ++i)
    for (double& bytes : mean.last.recv_bytes.row(i)) bytes /= n;
  return mean;
}

Move move_of_wave(const Case& c, const AutoSearch& search, double H, RankId i, ProcessorId to,
                  std::span<const double> before, std::span<const double> after) {
  const SetId own = c.columns.own[i.value], j = c.columns.set[to.value];
  Move move = move_of(c, {.rank = i, .target = j, .mem = Mem(c, i, j)}, to);
  move.t_stay = before[move.from.value] + search.comm_in(i, own);
  move.t_move = after[to.value] + search.comm_in(i, j);
  move.gain_superstep = move.t_stay - move.t_move;
  move.gain_window = move.gain_superstep * H - move.cost;
  return move;
}

void add_wave(const Case& c, const AutoSearch& search, double H, const std::vector<ProcessorId>& on, Plan& plan) {
  const std::span<const double> I = c.metrics.last.instructions;
  const std::vector<double> before = processor_seconds(c.columns, I, c.columns.on),
                            after = processor_seconds(c.columns, I, on);
  for (std::uint32_t i = 0; i < on.size(); ++i)
    if (on[i] != c.columns.on[i]) plan.moves.push_back(move_of_wave(c, search, H, {i}, on[i], before, after));
  std::ranges::sort(plan.moves, {}, [](const Move& m) { return std::tuple(-m.gain_superstep, m.cost, m.rank); });
}

Stay no_candidate(const Case& c, const PmEntry& e, double limit) {
  return {.rank = e.rank, .reason = Reason::kNotCandidate, .target = e.target, .value = c.seconds.mean, .limit = limit};
}

// Undoes the judged wave, if its slots are free, it is to blame, and the way back is worth it.
bool take_back(const Case& c, const AutoSearch& search, double H, std::span<const PmEntry> list, Plan& plan) {
  const auto back = way_back(c);
  if (!back) return false;
  const double expected = c.wave.before * std::max(1.0, search.superstep_of(back->home) / c.wave.model);
  if (!is_slower_than(c, expected)) return false;
  Plan undo;
  add_wave(c, search, H, back->first, undo);
  const double pause = pause_of(c.snapshot, c.columns, c.columns.on, back->first);
  const double later = pause_of(c.snapshot, c.columns, back->first, back->home);
  undo.objective = {.name = plan.objective.name, .before = H * c.seconds.mean, .after = H * expected + pause + later};
  if (!(undo.objective.after < undo.objective.before)) return false;
  plan.moves = std::move(undo.moves);
  plan.objective = undo.objective;
  plan.forecast = {.before = c.seconds.mean, .after = expected};
  const auto goes = [&](RankId i) { return back->first[i.value] != c.columns.on[i.value]; };
  std::erase_if(plan.stays, [&](const Stay& stay) { return goes(stay.rank); });
  for (const PmEntry& e : list)
    if (!goes(e.rank)) plan.stays.push_back(no_candidate(c, e, expected));
  plan.rules.takes_back = true, plan.rules.waves = back->is_short() ? 1 : 2;
  if (c.params.migrates) plan.next.owed += pause;
  plan.next.wave = back->is_short() ? Judged{} : c.wave;
  if (!back->is_short()) plan.next.wave.until = plan.superstep;
  plan.next.alpha = back->is_short() ? TakeBack::kCooldown * c.params.alpha0 : TakeBack::kMeasured;
  return true;
}

std::vector<ProcessorId> before_all_moves(const Case& c) {
  std::vector<ProcessorId> on = c.columns.on;
  for (std::uint32_t i = 0; i < on.size(); ++i)
    if (c.columns.special[i] != 0 && !c.snapshot.ranks[i].left.empty()) on[i] = c.snapshot.ranks[i].left.front();
  return on;
}

// Supersteps to the next call: sooner than α', if something will pay over `wanted` supersteps, but not sooner than α₀.
// 0: as α' says.
std::uint64_t call_after(const Case& c, double left) {
  if (!(left < static_cast<double>(c.alpha_next))) return 0;
  const std::uint64_t least = least_alpha(c.params, c.metrics.last.superstep.value);
  return std::max(least, static_cast<std::uint64_t>(std::max(0.0, std::ceil(left))));
}

// Sends one rank to a Set that may be faster than assumed (explore.h). Supersteps until that can be paid for; 0: it does.
double send_explorer(const Case& c, const Case& steady, const AutoSearch& search, double H, double sure, Plan& plan) {
  const Exploration found = explore(c, steady, search, H, sure, plan.next.owed);
  if (found.after > 0) return found.after;
  add_wave(steady, search, H, found.on, plan);
  std::erase_if(plan.stays, [&](const Stay& stay) { return stay.rank == plan.moves.front().rank; });
  plan.objective.after = found.F;
  plan.forecast.after = search.superstep_of(found.on);
  plan.rules.tries = plan.rules.explores = true;
  plan.rules.waves = 1;
  plan.next.owed += found.pause;
  plan.next.wave = judged_from(c, plan.superstep, search.now());
  return 0;
}

// Why each of the PM list that does not move stays.
void add_stays(const Case& c, std::span<const PmEntry> list, const AutoSearch& search, const Candidate& best, bool pays,
               double worth_it, Plan& plan) {
  const std::vector<double> seconds = processor_seconds(c.columns, c.metrics.last.instructions, c.columns.on);
  const double longest = pays ? search.superstep_of(best.waves.after.front()) : search.now();
  for (const PmEntry& e : list) {
    const std::uint32_t i = e.rank.value;
    const ProcessorId on = c.columns.on[i];
    const bool found = !best.waves.after.empty();
    if (pays && best.waves.after.front()[i] != on) continue;
    Stay stay{.rank = e.rank, .reason = Reason::kNotCandidate, .target = e.target};
    stay.value = seconds[on.value] + search.comm_in(e.rank, c.columns.own[i]);
    stay.limit = longest;
    const ProcessorId wanted = found ? best.waves.after.back()[i] : on;
    if (found && wanted != on) {
      stay.target = c.columns.set[wanted.value];
      stay.reason = pays ? Reason::kNoCapacity : Reason::kGainBelowMinimum;
      if (!pays) stay.value = best.F, stay.limit = worth_it;
    }
    plan.stays.push_back(stay);
  }
}

}  // namespace

void take_heuristic(Params& params, Heuristic heuristic) {
  params.heuristic = heuristic;
  params.early_calls = heuristic == Heuristic::kAuto;
  params.first_alpha = heuristic == Heuristic::kAuto ? AutoRule::kFirst : 0;
}

bool goes_by_age(const Case& c) { return c.params.horizon != Horizon::kSuperstep && c.params.expected_supersteps == 0; }

// Supersteps since the last wave that was paid for; while its mapping is not reached yet, since the one before it.
std::uint64_t unpaid(const Case& c) {
  const std::uint64_t now = c.metrics.last.superstep.value;
  const auto last_before = [&](std::uint64_t t) {
    std::uint64_t last = 0;
    for (const Rank& rank : c.snapshot.ranks)
      if (rank.last_move.value < t) last = std::max(last, rank.last_move.value);
    return last;
  };
  std::uint64_t later = now, wave = last_before(now);
  while (wave > 0 && later - wave <= AutoRule::kSoon) {
    later = wave;
    wave = last_before(wave);
  }
  return now - wave;
}

double horizon_of(const Case& c) {
  if (c.params.horizon == Horizon::kSuperstep) return 1;
  if (goes_by_age(c)) return AutoRule::kHope * static_cast<double>(unpaid(c));
  const std::uint64_t age = c.metrics.last.superstep.value, expected = c.params.expected_supersteps;
  return static_cast<double>(expected > age ? expected - age : 0);
}

double budget_of(const Case& c, double owed) {
  if (!goes_by_age(c)) return std::numeric_limits<double>::infinity();
  return AutoRule::kRisk * c.elapsed - owed;
}

double noise_of(const Metrics& m) {
  if (m.supersteps < 2) return 0;
  const double n = static_cast<double>(m.supersteps);
  double last_by_mean = 0, of_means = 0, fourth = 0;
  for (std::size_t i = 0; i < m.I_window.size(); ++i) {
    const double mean = m.I_window[i] / n, square = mean * mean;
    last_by_mean += m.last.instructions[i] * mean;
    of_means += square;
    fourth += square * square;
  }
  if (!(of_means > 0)) return 0;
  const double common = last_by_mean / of_means;
  double squares = 0;
  for (std::size_t i = 0; i < m.I_window.size(); ++i) {
    const double off = m.last.instructions[i] - common * m.I_window[i] / n;
    squares += off * off;
  }
  const double ranks = of_means * of_means / fourth;             // as many of equal work say as much
  const double few = 1 + 2 / std::sqrt(ranks);                   // of a few ranks, the spread may look small by chance
  return few * std::sqrt(squares / of_means / (1 - 1 / n) / n);  // the last superstep is one of the mean's n
}

template <>
void plan<Heuristic::kAuto>(const Case& c, std::span<const PmEntry> list, Plan& plan) {
  plan.objective.name = "time to the end";
  if (c.snapshot.ranks.empty()) return;
  const std::size_t values = c.snapshot.ranks.size() * c.columns.sets;
  constexpr std::size_t kMostAveraged = 1'000'000;
  std::optional<Metrics> mean;
  if (values <= kMostAveraged) mean = averaged(c.metrics);
  const Case steady = c.with(mean ? *mean : c.metrics);
  const double H = horizon_of(c);
  AutoSearch search(steady, H);
  const bool moved = std::ranges::any_of(c.columns.special, [](const auto special) { return special != 0; });
  const double unmoved = moved ? search.superstep_of(before_all_moves(c)) : search.now();
  const double noise = noise_of(c.metrics);
  const Verdict verdict = judge_wave(c);
  plan.next.wave = verdict.open ? c.wave : Judged{};
  const double sure = std::max(AutoRule::kLeast, AutoRule::kSure * noise);
  const std::uint64_t since_last = plan.superstep.value + 1 - plan.now.k.value;  // reported or not
  plan.next.owed = c.owed - (unmoved - search.now()) * static_cast<double>(since_last);
  // Moves that turned out to be bad are made up for, whatever the job owes: to stay costs more each superstep.
  const bool misled = unmoved < search.now() * (1 - sure);
  const double budget = misled ? std::numeric_limits<double>::infinity() : budget_of(c, plan.next.owed);
  plan.rules = {.supersteps = H, .least_gain = sure, .noise = noise, .owed = plan.next.owed, .budget = budget};
  plan.forecast.before = plan.forecast.after = search.now();
  plan.objective.before = plan.objective.after = H * search.now();
  if (verdict.slower && take_back(steady, search, H, list, plan)) return;
  if (c.wave.until.value > 0 && !verdict.slower) {  // what has been taken back so far was enough, or isn't seen yet
    for (const PmEntry& e : list) plan.stays.push_back(no_candidate(c, e, c.wave.before));
    plan.next.alpha = verdict.measured ? TakeBack::kCooldown * c.params.alpha0 : TakeBack::kMeasured;
    return;
  }
  search.afford(budget);
  search.run(list);
  const Candidate found = search.best();
  search.leave_out(AutoRule::kSlack * sure * search.now());
  const double worth_it = plan.objective.before * (1 - c.params.min_gain);
  const auto is_worth_it = [&](const Candidate& it, double least, auto error_of) {
    if (it.waves.after.empty() || it.F > worth_it) return false;
    plan.rules.unsteady = AutoRule::kSure * (search.*error_of)(it.waves.after.back());
    return it.superstep <= search.now() * (1 - std::max(least, plan.rules.unsteady));
  };
  Candidate best = search.best();
  bool pays = is_worth_it(best, sure, &AutoSearch::error_of_longest);
  if (!pays)
    if (auto part = search.faster_part_of(found, c.metrics.I_recent);
        is_worth_it(part, AutoRule::kLeast, &AutoSearch::error_of_any_move)) {
      pays = plan.rules.replayed = true;
      plan.rules.least_gain = AutoRule::kLeast;
      best = std::move(part);
    }
  if (pays) search.take_along(best, sure);
  add_stays(steady, list, search, best, pays, worth_it, plan);
  double next = search.next_pays(pays ? best : search.without_moves(), sure);
  if (!pays && c.params.migrates && verdict.measured && !verdict.open)
    next = std::min(next, send_explorer(c, steady, search, H, sure, plan));
  if (goes_by_age(c)) plan.next.alpha = call_after(c, next);
  if (!pays) return;
  add_wave(steady, search, H, best.waves.after.front(), plan);  // the first wave is the plan
  std::erase_if(plan.stays, [&](const Stay& stay) {
    return best.waves.after.front()[stay.rank.value] != c.columns.on[stay.rank.value];
  });
  plan.objective.after = best.F;
  if (c.params.migrates) plan.next.owed += best.waves.pause.front();
  const bool one_wave = best.waves.after.size() == 1;
  plan.forecast.after =
      plan.rules.replayed && one_wave ? best.superstep : search.superstep_of(best.waves.after.front());
  plan.rules.waves = static_cast<std::uint32_t>(best.waves.after.size());
  if (verdict.measured && c.params.migrates) plan.next.wave = judged_from(c, plan.superstep, search.now());
  if (!one_wave)
    plan.next.alpha = AutoRule::kBetween;  // for the slots that this wave leaves
  else if (plan.next.wave.before > 0)
    plan.next.alpha = TakeBack::kMeasured;
}

// Auto searches from Bottleneck's answer, so that a rank stays for the same reasons.
template <>
std::string why<Heuristic::kAuto>(const Stay& stay, const std::string& set, const Plan& plan) {
  return why<Heuristic::kBottleneck>(stay, set, plan);
}

}  // namespace bsp::decide
