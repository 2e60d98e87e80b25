#include "operator/reconcile/kernel/rescheduling/scheduler_state.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <memory>

#include "base/core/significant.h"
#include "crds/reflect.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

// --- P --------------------------------------------------------------------------------------------------------
// A digit of base64 for each rank, so that 10,000 ranks take 10 KB whatever they measure.
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr double kSteps = kDigits.size() - 1;

double rounded(double P) { return std::round(std::clamp(P, 0.0, 1.0) * kSteps) / kSteps; }
char digit_of(double P) { return kDigits[static_cast<std::size_t>(std::round(std::clamp(P, 0.0, 1.0) * kSteps))]; }
double P_of(char digit) {
  const std::size_t step = kDigits.find(digit);
  return step == std::string_view::npos ? 1 : static_cast<double>(step) / kSteps;
}

std::string digits_of(const std::vector<double>& P) {
  std::string digits;
  for (const double p : P) digits += digit_of(p);
  return digits;
}

using PByRank = std::vector<std::map<std::uint32_t, double>>;  // P_comm by Set, where it is not 1

PByRank by_rank(const decide::SparseGrid& P_comm) {
  PByRank p(P_comm.rows());
  for (std::size_t i = 0; i < P_comm.rows(); ++i)
    for (std::size_t k = 0; k < P_comm.row(i).size(); ++k)
      if (const double P = P_comm.row(i)[k]; P != 1) p[i][P_comm.pattern().columns(i)[k]] = P;
  return p;
}

decide::SparseGrid grid_of(const PByRank& p, std::size_t sets) {
  auto pattern = std::make_shared<decide::Pattern>(p.size(), sets);
  std::vector<double> values;
  for (const auto& row : p) {
    for (const auto& [set, P] : row) {
      if (set >= sets) continue;
      pattern->name(set);
      values.push_back(P);
    }
    pattern->end_row();
  }
  return {std::move(pattern), 1, std::move(values)};
}

// --- Moves ----------------------------------------------------------------------------------------------------
// So many of all ranks together, but of one no fewer than its first and its last node, and no more than it may come to in years.
constexpr std::size_t kLeft = 16'384, kLeastLeft = 2, kMostLeft = 8;

std::vector<crds::RankGroups> nodes_left(const Moves& moves) {
  std::vector<crds::RankGroups> by_order;
  const std::size_t ranks = moves.empty() ? 0 : moves.rbegin()->first + std::size_t{1};
  for (const auto& [rank, m] : moves) by_order.resize(std::max(by_order.size(), m.left.size()));
  for (std::size_t n = 0; n < by_order.size(); ++n)
    by_order[n] = crds::group_ranks(ranks, [&](std::size_t rank) {
      const auto m = moves.find(static_cast<std::uint32_t>(rank));
      return m == moves.end() || n >= m->second.left.size() ? "" : m->second.left[n];
    });
  return by_order;
}

// --- As it is stored ------------------------------------------------------------------------------------------
struct PFromSet {
  std::uint32_t set = 0;
  std::string P;  // a digit a rank
};
constexpr void fields_of(Of<PFromSet>, auto&& v) {
  v("set", &PFromSet::set);
  v("p", &PFromSet::P);
}

struct StoredWindow {
  Superstep k{1};
  std::uint64_t alpha = 0;
  std::uint64_t alpha_next = 0;
  double d = 0;
  std::uint64_t gamma = 0;
  double elapsed = 0;
  double owed = 0;
  double before = 0, before_error = 0, before_model = 0;  // decide::Judged
  Superstep judged_since{}, judged_until{};
  std::uint64_t taken_back = 0;
  bool cooling = false;
  std::string P_comp;
  std::vector<PFromSet> P_comm;  // of Sets from which a rank's P is not 1
};
constexpr void fields_of(Of<StoredWindow>, auto&& v) {
  v("k", &StoredWindow::k);
  v("alpha", &StoredWindow::alpha);
  v("alphaNext", &StoredWindow::alpha_next);
  v("d", &StoredWindow::d);
  v("gamma", &StoredWindow::gamma);
  v("elapsed", &StoredWindow::elapsed);
  v("owed", &StoredWindow::owed);
  v("before", &StoredWindow::before, kRare);
  v("beforeError", &StoredWindow::before_error, kRare);
  v("beforeModel", &StoredWindow::before_model, kRare);
  v("judgedSince", &StoredWindow::judged_since, kRare);
  v("judgedUntil", &StoredWindow::judged_until, kRare);
  v("takenBack", &StoredWindow::taken_back, kRare);
  v("cooling", &StoredWindow::cooling, kRare);
  v("p", &StoredWindow::P_comp);
  v("pFromSets", &StoredWindow::P_comm);
}

struct RankSeconds {
  std::uint32_t rank = 0;
  double seconds = 0;
};
constexpr void fields_of(Of<RankSeconds>, auto&& v) {
  v("rank", &RankSeconds::rank);
  v("seconds", &RankSeconds::seconds);
}

struct RankWork {
  std::uint32_t rank = 0;
  double instructions = 0;
};
constexpr void fields_of(Of<RankWork>, auto&& v) {
  v("rank", &RankWork::rank);
  v("instructions", &RankWork::instructions);
}

struct StoredBaseline {
  std::uint32_t wave = 0;
  std::uint64_t alpha = 0;
  double seconds = 0, error = 0, longest = 0, beside = 0;
  std::vector<RankSeconds> of_ranks, stayed;
  std::vector<RankWork> work;
  std::uint64_t after = 0;
};
constexpr void fields_of(Of<StoredBaseline>, auto&& v) {
  v("wave", &StoredBaseline::wave);
  v("alpha", &StoredBaseline::alpha);
  v("seconds", &StoredBaseline::seconds);
  v("error", &StoredBaseline::error, kRare);
  v("longest", &StoredBaseline::longest, kRare);
  v("beside", &StoredBaseline::beside, kRare);
  v("ofRanks", &StoredBaseline::of_ranks);
  v("stayed", &StoredBaseline::stayed, kRare);
  v("work", &StoredBaseline::work, kRare);
  v("after", &StoredBaseline::after);
}

struct StoredMoves {
  std::uint64_t superstep = 0;
  std::string ranks;  // of which it is the last move: "0-49,77"
};
constexpr void fields_of(Of<StoredMoves>, auto&& v) {
  v("superstep", &StoredMoves::superstep);
  v("ranks", &StoredMoves::ranks);
}

struct StoredScheduler {
  StoredWindow window;
  std::uint32_t wave_seen = 0;
  double counted = 0;
  json work, factors;
  std::optional<StoredBaseline> baseline;
  std::vector<StoredMoves> moved;
  std::vector<crds::RankGroups> left;  // [n]: the n-th node that a rank left
};
constexpr void fields_of(Of<StoredScheduler>, auto&& v) {
  v("state", &StoredScheduler::window);
  v("waveSeen", &StoredScheduler::wave_seen);
  v("counted", &StoredScheduler::counted, kRare);
  v("work", &StoredScheduler::work);
  v("rankFactors", &StoredScheduler::factors);
  v("baseline", &StoredScheduler::baseline);
  v("moved", &StoredScheduler::moved);
  v("left", &StoredScheduler::left, Field{.most = kMostLeft});
}

// What older operators stored in the same places: a number of each rank.
struct OlderWindow {
  std::vector<double> P_comp;
  std::vector<json> P_comm;  // of each rank: [[Set, P], …]
};
constexpr void fields_of(Of<OlderWindow>, auto&& v) {
  v("pComp", &OlderWindow::P_comp);
  v("pCommBySet", &OlderWindow::P_comm);
}
struct OlderBaseline {
  std::vector<double> compute;
};
constexpr void fields_of(Of<OlderBaseline>, auto&& v) { v("compute", &OlderBaseline::compute); }

template <class T>
T read_or_new(const json& j) {
  return j.is_null() ? T{} : reflect::read<T>(j, "status.rescheduler").value_or(T{});
}

void read_moves(const StoredScheduler& stored, std::size_t ranks, Moves& moves) {
  for (const StoredMoves& moved : stored.moved) {
    const auto read = crds::ungroup_ranks({{"moved", moved.ranks}}, ranks, [&](std::size_t rank, const std::string&) {
      moves[static_cast<std::uint32_t>(rank)].last = moved.superstep;
      return Result<void>{};
    });
    if (!read) return moves.clear();
  }
  for (const crds::RankGroups& by_node : stored.left) {
    const auto read = crds::ungroup_ranks(by_node, ranks, [&](std::size_t rank, const std::string& node) {
      moves[static_cast<std::uint32_t>(rank)].left.push_back(node);
      return Result<void>{};
    });
    if (!read) return moves.clear();
  }
}

void read_older(const json& j, PByRank& p_comm, SchedulerState& state) {
  const auto window = read_or_new<OlderWindow>(part_at(j, "state"));
  if (window.P_comp.size() == p_comm.size()) state.window.P_comp = window.P_comp;
  for (std::size_t i = 0; i < std::min(p_comm.size(), window.P_comm.size()); ++i)
    for (const json& pair : window.P_comm[i])
      if (pair.is_array() && pair.size() == 2 && pair[1].is_number())
        if (const auto set = whole_number<std::uint32_t>(pair[0])) p_comm[i][*set] = pair[1].get<double>();
  if (!state.baseline) return;
  const auto before = read_or_new<OlderBaseline>(part_at(j, "baseline"));
  for (std::uint32_t i = 0; i < before.compute.size(); ++i) state.baseline->compute[i] = before.compute[i];
}

}  // namespace

void note_moves(Moves& moves, const migrate::Wave& wave, std::size_t ranks) {
  const std::size_t most = std::clamp(kLeft / std::max<std::size_t>(ranks, 1), kLeastLeft, kMostLeft);
  for (const migrate::Move& move : wave.moves) {
    RankMoves& m = moves[move.rank];
    m.last = wave.gate.superstep;
    if (move.source_node.empty()) continue;  // of an older operator's wave
    if (m.left.size() == most) m.left.erase(m.left.begin() + 1);
    m.left.push_back(move.source_node);
  }
}

void round_predictabilities(decide::State& state) {
  for (double& P : state.P_comp) P = rounded(P);
  PByRank p_comm = by_rank(state.P_comm);
  for (auto& row : p_comm)
    for (auto& [set, P] : row) P = rounded(P);
  state.P_comm = grid_of(p_comm, state.P_comm.cols());
}

json to_json(const SchedulerState& state) {
  const decide::Cadence& cadence = state.window.cadence;
  StoredScheduler stored{.window = {.k = cadence.k,
                                    .alpha = cadence.alpha,
                                    .alpha_next = cadence.alpha_next,
                                    .d = cadence.d,
                                    .gamma = cadence.gamma,
                                    .elapsed = cadence.elapsed,
                                    .owed = cadence.owed,
                                    .before = cadence.wave.before,
                                    .before_error = cadence.wave.error,
                                    .before_model = cadence.wave.model,
                                    .judged_since = cadence.wave.since,
                                    .judged_until = cadence.wave.until,
                                    .taken_back = cadence.taken_back,
                                    .cooling = cadence.cooling,
                                    .P_comp = digits_of(state.window.P_comp),
                                    .P_comm = {}},
                         .wave_seen = state.wave_seen,
                         .counted = significant(state.counted, 6),
                         .work = state.work.empty() ? json() : state.work,
                         .factors = state.factors.empty() ? json() : state.factors,
                         .baseline = {},
                         .moved = {},
                         .left = nodes_left(state.moves)};
  const PByRank p_comm = by_rank(state.window.P_comm);
  std::map<std::uint32_t, std::string> by_set;
  for (std::size_t i = 0; i < p_comm.size(); ++i)
    for (const auto& [set, P] : p_comm[i]) {
      std::string& digits = by_set[set];
      if (digits.empty()) digits.assign(p_comm.size(), digit_of(1));
      digits[i] = digit_of(P);
    }
  for (auto& [set, digits] : by_set) stored.window.P_comm.push_back({set, std::move(digits)});
  if (const auto& b = state.baseline) {
    stored.baseline = {.wave = b->wave,
                       .alpha = b->alpha,
                       .seconds = b->seconds,
                       .error = b->error,
                       .longest = b->longest,
                       .beside = b->beside,
                       .of_ranks = {},
                       .stayed = {},
                       .work = {},
                       .after = b->after};
    for (const auto& [rank, seconds] : b->compute) stored.baseline->of_ranks.push_back({rank, seconds});
    for (const auto& [rank, seconds] : b->stayed) stored.baseline->stayed.push_back({rank, seconds});
    for (const auto& [rank, instructions] : b->work)
      stored.baseline->work.push_back({rank, significant(instructions, 6)});
  }
  std::map<std::uint64_t, std::vector<std::size_t>> moved;  // by superstep
  for (const auto& [rank, m] : state.moves) moved[m.last].push_back(rank);
  for (auto& [superstep, moving] : moved) stored.moved.push_back({superstep, crds::runs_of(std::move(moving))});
  return reflect::write(stored);
}

json for_next_attempt(const json& stored) {
  const auto was = read_or_new<StoredScheduler>(stored);
  json next;
  if (!was.work.empty()) next["work"] = was.work;
  if (!was.factors.empty()) next["rankFactors"] = was.factors;
  return next;
}

SchedulerState scheduler_state_from_json(const json& j, std::size_t ranks, std::size_t sets) {
  SchedulerState state;
  const auto stored = read_or_new<StoredScheduler>(j);
  const StoredWindow& window = stored.window;
  state.window.cadence = {.k = window.k,
                          .alpha = window.alpha,
                          .alpha_next = window.alpha_next,
                          .gamma = window.gamma,
                          .elapsed = std::max(0.0, window.elapsed),
                          .owed = window.owed,
                          .wave = {.before = std::max(0.0, window.before),
                                   .error = std::max(0.0, window.before_error),
                                   .model = std::max(0.0, window.before_model),
                                   .since = window.judged_since,
                                   .until = window.judged_until},
                          .taken_back = window.taken_back,
                          .cooling = window.cooling};
  if (window.d > 0 && window.d < 1) state.window.cadence.d = window.d;
  state.wave_seen = stored.wave_seen;
  state.counted = std::max(0.0, stored.counted);
  state.work = stored.work;
  state.factors = stored.factors;
  read_moves(stored, ranks, state.moves);
  if (const auto& b = stored.baseline) {
    state.baseline = {.wave = b->wave,
                      .alpha = b->alpha,
                      .seconds = b->seconds,
                      .error = b->error,
                      .longest = b->longest,
                      .beside = b->beside,
                      .compute = {},
                      .stayed = {},
                      .work = {},
                      .after = b->after};
    for (const auto& [rank, seconds] : b->of_ranks) state.baseline->compute[rank] = seconds;
    for (const auto& [rank, seconds] : b->stayed) state.baseline->stayed[rank] = seconds;
    for (const auto& [rank, instructions] : b->work) state.baseline->work[rank] = instructions;
  }
  PByRank p_comm(ranks);
  if (window.P_comp.size() == ranks)
    for (const char digit : window.P_comp) state.window.P_comp.push_back(P_of(digit));
  for (const PFromSet& from : window.P_comm)
    for (std::size_t i = 0; i < ranks && from.P.size() == ranks; ++i)
      if (const double P = P_of(from.P[i]); P != 1) p_comm[i][from.set] = P;
  read_older(j, p_comm, state);
  state.window.P_comm = grid_of(p_comm, sets);
  return state;
}

}  // namespace bsp::reconcile
