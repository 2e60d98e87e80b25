#include "operator/decide/auto/auto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>

#include "operator/decide/auto/auto_search.h"
#include "operator/decide/auto/explore.h"
#include "operator/decide/auto/price.h"
#include "operator/decide/auto/take_back.h"
#include "operator/decide/model/adaptation.h"
#include "operator/decide/model/links.h"
#include "operator/decide/model/pf.h"
#include "operator/decide/model/pm.h"

namespace bsp::decide {
namespace {

// What a call starts from: how far it looks ahead, what the job owes, and what counts as a gain.
struct Terms {
  double H = 0;         // supersteps to come
  double noise = 0;     // standard error of the measured work, relative
  double sure = 0;      // of a superstep: less is no gain
  double owed = 0;      // s
  double budget = 0;    // s that a wave may cost; infinite: any
  double worth_it = 0;  // s: F of a plan must not exceed it
  Verdict verdict{};    // on the last wave
};

// The mapping that the search has found, and whether to go there.
struct Choice {
  Candidate best{};
  bool pays = false;
  bool replayed = false;  // noise hid its gain, and replayed superstep by superstep it is one
  double least = 0;       // of a superstep, that it had to gain
  double unsteady = 0;    // of a superstep, that it had to gain since speeds change for a while
};

// The window's means in place of its last superstep: they have less noise.
Metrics averaged(const Metrics& m) {
  Metrics mean{.last = m.last};
  const double n = static_cast<double>(m.supersteps);
  for (std::size_t i = 0; i < mean.last.instructions.size(); ++i) mean.last.instructions[i] = m.I_window[i] / n;
  mean.last.recv_bytes = m.B_window;
  for (std::size_t i = 0; i < mean.last.recv_bytes.rows(); ++i)
    for (double& bytes : mean.last.recv_bytes.row(i)) bytes /= n;
  return mean;
}

// Where they are cheap.
std::optional<Metrics> affordable_means(const Case& c) {
  constexpr std::size_t kMostValues = 1'000'000;
  if (c.snapshot.ranks.size() * c.columns.sets > kMostValues) return std::nullopt;
  return averaged(c.metrics);
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
  const std::vector<double> after = processor_seconds(c.columns, c.metrics.last.instructions, on);
  for (std::uint32_t i = 0; i < on.size(); ++i)
    if (on[i] != c.columns.on[i]) plan.moves.push_back(move_of_wave(c, search, H, {i}, on[i], search.seconds(), after));
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
double send_explorer(const Case& c, const Case& steady, const AutoSearch& search, const Terms& terms, Plan& plan) {
  const Exploration found = explore(c, steady, search, terms.H, terms.sure, plan.next.owed);
  if (found.after > 0) return found.after;
  add_wave(steady, search, terms.H, found.on, plan);
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
void add_stays(const Case& c, std::span<const PmEntry> list, const AutoSearch& search, const Choice& choice,
               const Terms& terms, Plan& plan) {
  const Candidate& best = choice.best;
  const std::span<const double> seconds = search.seconds();
  const double longest = choice.pays ? search.superstep_of(best.waves.after.front()) : search.now();
  for (const PmEntry& e : list) {
    const std::uint32_t i = e.rank.value;
    const ProcessorId on = c.columns.on[i];
    const bool found = !best.waves.after.empty();
    if (choice.pays && best.waves.after.front()[i] != on) continue;
    Stay stay{.rank = e.rank, .reason = Reason::kNotCandidate, .target = e.target};
    stay.value = seconds[on.value] + search.comm_in(e.rank, c.columns.own[i]);
    stay.limit = longest;
    const ProcessorId wanted = found ? best.waves.after.back()[i] : on;
    if (found && wanted != on) {
      stay.target = c.columns.set[wanted.value];
      stay.reason = choice.pays ? Reason::kNoCapacity : Reason::kGainBelowMinimum;
      if (!choice.pays) stay.value = best.F, stay.limit = terms.worth_it;
    }
    plan.stays.push_back(stay);
  }
}

// Reported or not.
std::uint64_t supersteps_since_last(const Plan& plan) { return plan.superstep.value + 1 - plan.now.k.value; }

// Moves that turned out to be bad are made up for, whatever the job owes: to stay costs more each superstep.
double budget_after(const Case& c, double owed, bool misled) {
  return misled ? std::numeric_limits<double>::infinity() : budget_of(c, owed);
}

// Before the search: what the last waves did, and what the next one may cost.
Terms judge(const Case& c, const AutoSearch& search, std::uint64_t since_last) {
  const bool moved = std::ranges::any_of(c.columns.special, [](const auto special) { return special != 0; });
  const double unmoved = moved ? search.superstep_of(before_all_moves(c)) : search.now();
  Terms terms{.H = horizon_of(c), .noise = noise_of(c.metrics), .verdict = judge_wave(c)};
  terms.sure = std::max(AutoRule::kLeast, AutoRule::kSure * terms.noise);
  terms.owed = c.owed - (unmoved - search.now()) * static_cast<double>(since_last);
  terms.budget = budget_after(c, terms.owed, unmoved < search.now() * (1 - terms.sure));
  terms.worth_it = terms.H * search.now() * (1 - c.params.min_gain);
  return terms;
}

// The plan of a call that moves nothing.
void begin(Plan& plan, const Case& c, const Terms& terms, const AutoSearch& search) {
  plan.next.wave = terms.verdict.open ? c.wave : Judged{};
  plan.next.owed = terms.owed;
  plan.rules = {.supersteps = terms.H,
                .least_gain = terms.sure,
                .noise = terms.noise,
                .owed = terms.owed,
                .budget = terms.budget};
  plan.forecast.before = plan.forecast.after = search.now();
  plan.objective.before = plan.objective.after = terms.H * search.now();
}

// What has been taken back so far was enough, or isn't seen yet.
void wait_for_way_back(const Case& c, std::span<const PmEntry> list, const Terms& terms, Plan& plan) {
  for (const PmEntry& e : list) plan.stays.push_back(no_candidate(c, e, c.wave.before));
  plan.next.alpha = terms.verdict.measured ? TakeBack::kCooldown * c.params.alpha0 : TakeBack::kMeasured;
}

// Whether `it` gains more than `least` of a superstep, and than `choice.unsteady`, which the call sets to what changing speeds may feign.
bool is_sure(const Candidate& it, double least, double error, const AutoSearch& search, Choice& choice) {
  choice.unsteady = AutoRule::kSure * error;
  return it.superstep <= search.now() * (1 - std::max(least, choice.unsteady));
}

// The shortest mapping that can be paid for, if its gain is sure; else the part of it whose gain is sure, superstep by superstep.
Choice choose(const Case& c, AutoSearch& search, std::span<const PmEntry> list, const Terms& terms) {
  search.afford(terms.budget);
  search.run(list);
  const Candidate found = search.best();
  search.leave_out(AutoRule::kSlack * terms.sure * search.now());
  Choice choice{.best = search.best(), .least = terms.sure};
  const auto can_pay = [&](const Candidate& it) { return !it.waves.after.empty() && it.F <= terms.worth_it; };
  choice.pays =
      can_pay(choice.best) &&
      is_sure(choice.best, terms.sure, search.error_of_longest(choice.best.waves.after.back()), search, choice);
  if (!choice.pays) {
    Candidate part = search.faster_part_of(found, c.metrics.I_recent);
    if (can_pay(part) &&
        is_sure(part, AutoRule::kLeast, search.error_of_any_move(part.waves.after.back()), search, choice)) {
      choice.pays = choice.replayed = true;
      choice.least = AutoRule::kLeast;
      choice.best = std::move(part);
    }
  }
  if (choice.pays) search.take_along(choice.best, terms.sure);
  return choice;
}

// The first wave of the chosen mapping is the plan.
void add_first_wave(const Case& c, const Case& steady, const AutoSearch& search, const Choice& choice,
                    const Terms& terms, Plan& plan) {
  const Waves& waves = choice.best.waves;
  const std::vector<ProcessorId>& first = waves.after.front();
  const bool one_wave = waves.after.size() == 1;
  add_wave(steady, search, terms.H, first, plan);
  std::erase_if(plan.stays, [&](const Stay& stay) { return first[stay.rank.value] != c.columns.on[stay.rank.value]; });
  plan.objective.after = choice.best.F;
  plan.forecast.after = choice.replayed && one_wave ? choice.best.superstep : search.superstep_of(first);
  plan.rules.waves = static_cast<std::uint32_t>(waves.after.size());
  if (c.params.migrates) plan.next.owed += waves.pause.front();
  if (terms.verdict.measured && c.params.migrates) plan.next.wave = judged_from(c, plan.superstep, search.now());
  if (!one_wave)
    plan.next.alpha = AutoRule::kBetween;  // for the slots that this wave leaves
  else if (plan.next.wave.before > 0)
    plan.next.alpha = TakeBack::kMeasured;
}

// The shortest superstep to be had, s, whatever ranks have left and waves cost.
double shortest_superstep(const Case& c, std::span<const PmEntry> list) {
  Snapshot anywhere = c.snapshot;
  for (Rank& rank : anywhere.ranks) rank.left.clear();
  const Case free{anywhere,  c.columns, c.metrics, c.params,  c.alpha, c.alpha_next,
                  c.elapsed, 0,         c.means,   c.seconds, c.wave};
  AutoSearch search(free, horizon_of(c));
  search.run(list);
  return search.shortest_found();
}

// What the rest of the job may take, s; and whether it takes longer where the ranks are. `fastest`: the plan by time alone.
PriceTerms price_terms(const Case& c, const AutoSearch& search, std::span<const PmEntry> list, const Terms& terms,
                       const Choice& fastest, const Prices& prices) {
  PriceTerms out{.H = terms.H, .sure = terms.sure, .first_rate = prices.rate(before_all_moves(c))};
  const double stay = terms.H * search.now(), tolerated = terms.sure;
  if (c.params.objective == ObjectiveType::kDeadline) {
    const double margin = PriceSearch::kMargin + tolerated;
    out.limit = c.snapshot.time_left * (1 - margin);
    out.hurries = stay > c.snapshot.time_left * (1 - margin / 2);
    return out;
  }
  const double shortest = (1 + c.params.max_slowdown) * terms.H * shortest_superstep(c, list);
  out.limit = std::max(shortest, fastest.pays ? fastest.best.F : stay);
  out.hurries = stay > out.limit * (1 + tolerated);
  return out;
}

// Instead of the plan by time alone; terms with what is owed in priced time (price.h). Supersteps until another one can be paid for.
double choose_by_price(const Case& c, const AutoSearch& search, std::span<const PmEntry> list, std::uint64_t since_last,
                       Terms& terms, Choice& choice, Plan& plan) {
  const Prices prices(c.snapshot);
  PriceTerms by = price_terms(c, search, list, terms, choice, prices);
  const double rate = prices.rate(c.columns.on) / by.first_rate, now = search.now() * rate;
  const double first = search.superstep_of(before_all_moves(c));
  terms.owed = c.owed - (first - now) * static_cast<double>(since_last);
  terms.budget = by.budget = budget_after(c, terms.owed, first < now * (1 - terms.sure));
  plan.next.owed = plan.rules.owed = terms.owed;
  plan.rules.budget = terms.budget;
  plan.spending.limit = std::max(0.0, by.limit);
  PriceSearch cheap(c, search, prices, by);
  cheap.run(choice.best.waves.after.empty() ? std::span<const std::vector<ProcessorId>>{}
                                            : std::span(choice.best.waves.after).last(1));
  if (by.hurries && cheap.best().waves.after.empty()) return cheap.next_pays();  // as short as possible
  choice = {.best = cheap.best(), .pays = !cheap.best().waves.after.empty(), .least = terms.sure};
  if (!by.hurries) plan.objective.name = "cost to the end";
  return cheap.next_pays();
}

// Ranks may be slower on purpose; and pauses cost what the slots do meanwhile.
void account_by_price(const Case& c, const AutoSearch& search, const Choice& choice, Plan& plan) {
  const Prices prices(c.snapshot);
  const std::vector<ProcessorId>& first = choice.best.waves.after.front();
  const double rate = std::max(prices.rate(c.columns.on), prices.rate(first)) / prices.rate(before_all_moves(c));
  if (c.params.migrates) plan.next.owed += choice.best.waves.pause.front() * (rate - 1);
  double longest = 1;
  for (std::size_t w = 0; w < choice.best.waves.after.size(); ++w)
    longest = std::max(longest, search.superstep_of(choice.best.waves, w) / search.now());
  plan.next.wave.before *= longest, plan.next.wave.model *= longest;
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
  const std::optional<Metrics> mean = affordable_means(c);
  const Case steady = c.with(mean ? *mean : c.metrics);
  AutoSearch search(steady, horizon_of(c));
  Terms terms = judge(c, search, supersteps_since_last(plan));
  begin(plan, c, terms, search);
  if (terms.verdict.slower && take_back(steady, search, terms.H, list, plan)) return;
  if (c.wave.until.value > 0 && !terms.verdict.slower) return wait_for_way_back(c, list, terms, plan);

  Choice choice = choose(c, search, list, terms);
  const bool by_price = c.params.objective != ObjectiveType::kTime;
  const double priced =
      by_price ? choose_by_price(steady, search, list, supersteps_since_last(plan), terms, choice, plan) : 0;
  plan.rules.least_gain = choice.least, plan.rules.unsteady = choice.unsteady, plan.rules.replayed = choice.replayed;
  add_stays(steady, list, search, choice, terms, plan);
  double next = by_price ? priced : search.next_pays(choice.pays ? choice.best : search.without_moves(), terms.sure);
  if (!by_price && !choice.pays && c.params.migrates && terms.verdict.measured && !terms.verdict.open)
    next = std::min(next, send_explorer(c, steady, search, terms, plan));
  if (goes_by_age(c)) plan.next.alpha = call_after(c, next);
  if (choice.pays) add_first_wave(c, steady, search, choice, terms, plan);
  if (choice.pays && by_price) account_by_price(steady, search, choice, plan);
}

// Auto searches from Bottleneck's answer, so that a rank stays for the same reasons.
template <>
std::string why<Heuristic::kAuto>(const Stay& stay, const std::string& set, const Plan& plan) {
  return why<Heuristic::kBottleneck>(stay, set, plan);
}

}  // namespace bsp::decide
