#include "operator/record/call.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <set>
#include <span>
#include <string_view>

#include "operator/decide/model/columns.h"

namespace bsp::record {
namespace {

std::unexpected<Error> wrong(std::string_view field, std::string_view what) {
  return fail(ErrorCode::kInvalid, std::format("{}: {}", field, what));
}

bool is_amount(double v) { return v >= 0 && v <= kMostValue; }
bool is_share(double v) { return v >= 0 && v <= 1; }

std::string out_of_range(double value, bool (*good)(double)) {
  return std::format("must be a number from 0 to {}, is {}", good == is_share ? 1 : kMostValue, value);
}

Result<void> check_values(std::string_view field, std::span<const double> values, bool (*good)(double) = is_amount) {
  const auto bad = std::ranges::find_if_not(values, good);
  if (bad == values.end()) return {};
  return wrong(std::format("{}[{}]", field, bad - values.begin()), out_of_range(*bad, good));
}

Result<void> check_grid(std::string_view field, const decide::Grid<double>& grid) {
  for (std::size_t i = 0; i < grid.rows(); ++i)
    BSP_CHECK_OK(check_values(std::format("{}, row {}", field, i), grid.row(i)));
  return {};
}

Result<void> check_grid(std::string_view field, const decide::SparseGrid& grid, bool (*good)(double) = is_amount) {
  for (std::size_t i = 0; i < grid.rows(); ++i) {
    const std::span<const double> row = grid.row(i);
    const auto bad = std::ranges::find_if_not(row, good);
    if (bad == row.end()) continue;
    const auto column = grid.pattern().columns(i)[static_cast<std::size_t>(bad - row.begin())];
    return wrong(std::format("{}, row {}[{}]", field, i, column), out_of_range(*bad, good));
  }
  return {};
}

Result<void> check_count(std::string_view field, std::uint64_t count) {
  if (count <= kMostCount) return {};
  return wrong(field, std::format("must be at most {}, is {}", kMostCount, count));
}

Result<void> check_cadence(const std::string& field, const decide::Cadence& c) {
  for (const auto& [name, count] : {std::pair{"k", c.k.value},
                                    {"alpha", c.alpha},
                                    {"alphaNext", c.alpha_next},
                                    {"gamma", c.gamma},
                                    {"wave.since", c.wave.since.value},
                                    {"wave.until", c.wave.until.value},
                                    {"takenBack", c.taken_back}})
    BSP_CHECK_OK(check_count(std::format("{}.{}", field, name), count));
  if (!is_amount(c.elapsed)) return wrong(field + ".elapsed", out_of_range(c.elapsed, is_amount));
  if (!is_amount(std::abs(c.owed))) return wrong(field + ".owed", out_of_range(std::abs(c.owed), is_amount));
  if (!(c.d >= 0 && c.d < 1)) return wrong(field + ".d", std::format("must be at least 0 and below 1, is {}", c.d));
  return {};
}

Result<void> check_params(const decide::Params& p) {
  if (auto good = decide::validate(p); !good) return std::unexpected(good.error().in("params"));
  for (const auto& [name, count] : {std::pair{"params.alpha0", p.alpha0},
                                    {"params.omega", p.omega},
                                    {"params.cooldown", p.cooldown},
                                    {"params.expectedSupersteps", p.expected_supersteps}})
    BSP_CHECK_OK(check_count(name, count));
  BSP_CHECK_OK(check_values("params.delta", {&p.delta, 1}));
  return check_values("params.beta", {&p.beta, 1});
}

Result<void> check_snapshot(const decide::Snapshot& s) {
  if (s.ranks.empty()) return wrong("snapshot.ranks", "must have at least one rank");
  if (auto good = decide::columns_of(s); !good) return std::unexpected(good.error().in("snapshot"));
  for (std::size_t p = 0; p < s.platform.processors.size(); ++p) {
    const double cpu = s.platform.processors[p].cpu, error = s.platform.processors[p].cpu_error;
    if (!(cpu >= kLeastCpu && cpu <= kMostValue))
      return wrong(std::format("snapshot.platform.processors.cpu[{}]", p),
                   std::format("must be from {} to {} instructions/s, is {}", kLeastCpu, kMostValue, cpu));
    if (!is_amount(error))
      return wrong(std::format("snapshot.platform.processors.cpuError[{}]", p), out_of_range(error, is_amount));
  }
  BSP_CHECK_OK(check_grid("snapshot.platform.T", s.platform.T));
  BSP_CHECK_OK(check_grid("snapshot.platform.Mig", s.platform.Mig));
  BSP_CHECK_OK(check_grid("snapshot.platform.capacity", s.platform.capacity));
  for (const auto& [name, prices] : {std::pair{"shared", &s.platform.shared}, {"apart", &s.platform.apart}})
    for (std::size_t j = 0; j < prices->size(); ++j)
      for (const double price : {(*prices)[j].byte, (*prices)[j].message})
        if (!is_amount(price))
          return wrong(std::format("snapshot.platform.{}[{}]", name, j), out_of_range(price, is_amount));
  for (std::size_t i = 0; i < s.ranks.size(); ++i) {
    BSP_CHECK_OK(check_values(std::format("snapshot.ranks.memoryBytes, rank {}", i), {&s.ranks[i].memory_bytes, 1}));
    for (std::size_t k = 0; k < s.ranks[i].partners.size(); ++k)
      for (const auto& [name, value] :
           {std::pair{"bytes", s.ranks[i].partners[k].bytes}, {"messages", s.ranks[i].partners[k].messages}})
        if (!is_amount(value))
          return wrong(std::format("snapshot.ranks.partners[{}].{}[{}]", i, name, k), out_of_range(value, is_amount));
    BSP_CHECK_OK(check_count(std::format("snapshot.ranks.lastMove[{}]", i), s.ranks[i].last_move.value));
  }
  return {};
}

Result<void> check_state(const Call& call) {
  const decide::State& s = call.state;
  const std::size_t ranks = call.snapshot.ranks.size(), sets = call.snapshot.platform.sets.size();
  BSP_CHECK_OK(check_cadence("state.cadence", s.cadence));
  if (s.P_comp.size() > ranks)
    return wrong("state.pComp", std::format("has {} entries, but there are {} ranks", s.P_comp.size(), ranks));
  if (s.P_comm.rows() > ranks || s.P_comm.cols() > sets)
    return wrong("state.pComm", std::format("is {}x{}, but there are {} ranks and {} Sets", s.P_comm.rows(),
                                            s.P_comm.cols(), ranks, sets));
  BSP_CHECK_OK(check_values("state.pComp", s.P_comp, is_share));
  return check_grid("state.pComm", s.P_comm, is_share);
}

// What Window requires: supersteps in order, from k on, and a call that is due after the last one and no other.
Result<void> check_supersteps(const Call& call) {
  const std::size_t ranks = call.snapshot.ranks.size(), sets = call.snapshot.platform.sets.size();
  const decide::Cadence c = decide::open_cadence(call.state.cadence, call.params);
  if (call.supersteps.empty()) return wrong("supersteps", "must have at least one, after which the call was");
  std::uint64_t least = c.k.value;
  decide::EarlyCall early;
  for (std::size_t n = 0; n < call.supersteps.size(); ++n) {
    const decide::MeasuredSuperstep& t = call.supersteps[n];
    const std::string field = std::format("supersteps[{}]", n);
    BSP_CHECK_OK(check_count(field + ".superstep", t.superstep.value));
    if (t.superstep.value < least)
      return wrong(field + ".superstep", std::format("must be at least {} here, is {}", least, t.superstep.value));
    least = t.superstep.value + 1;
    for (const auto& [name, list] :
         {std::pair{"instructions", &t.instructions}, {"computeSeconds", &t.compute_seconds}}) {
      if (list->size() != ranks)
        return wrong(std::format("{}.{}", field, name),
                     std::format("has {} entries, but there are {} ranks", list->size(), ranks));
      BSP_CHECK_OK(check_values(std::format("{}.{}", field, name), *list));
    }
    BSP_CHECK_OK(check_values(field + ".communicationSeconds", {&t.communication_seconds, 1}));
    for (const auto& [name, grid] : {std::pair{"recvBytes", &t.recv_bytes}, {"recvSeconds", &t.recv_seconds}}) {
      if (grid->rows() != ranks || grid->cols() != sets)
        return wrong(std::format("{}.{}", field, name), std::format("is {}x{}, but there are {} ranks and {} Sets",
                                                                    grid->rows(), grid->cols(), ranks, sets));
      BSP_CHECK_OK(check_grid(std::format("{}.{}", field, name), *grid));
    }
    early.add(c, decide::balance_of(t), call.params);
    const bool last = n + 1 == call.supersteps.size();
    // An older operator didn't wait for as many as are needed now.
    const std::uint64_t measured = last ? c.alpha : n + 1;
    const bool due = early.due() || decide::call_due(c, t.superstep, measured, call.params);
    if (due != last)
      return wrong(field + ".superstep",
                   due ? std::format("{}: the call was due after it, and yet another one follows", t.superstep.value)
                       : std::format("{} is the last one, but the call was due after {}", t.superstep.value,
                                     c.k.value + c.alpha - 1));
  }
  return {};
}

// Everything that explain() looks up must exist.
Result<void> check_plan(const Call& call) {
  const decide::Plan& plan = call.plan;
  const std::size_t ranks = call.snapshot.ranks.size(), sets = call.snapshot.platform.sets.size(),
                    processors = call.snapshot.platform.processors.size();
  const auto below = [](const std::string& list, const char* column, std::size_t row, std::uint32_t id,
                        std::size_t most) -> Result<void> {
    if (id < most) return {};
    return wrong(std::format("plan.{}.{}[{}]", list, column, row), std::format("must be below {}, is {}", most, id));
  };
  std::vector<bool> listed(ranks, false);
  for (std::size_t n = 0; n < plan.pm_list.size(); ++n) {
    BSP_CHECK_OK(below("pmList", "rank", n, plan.pm_list[n].rank.value, ranks));
    BSP_CHECK_OK(below("pmList", "target", n, plan.pm_list[n].target.value, sets));
    listed[plan.pm_list[n].rank.value] = true;
  }
  for (std::size_t n = 0; n < plan.levels.size(); ++n) {
    BSP_CHECK_OK(below("levels", "rank", n, plan.levels[n].rank.value, ranks));
    if (plan.levels[n].level > 0 && !listed[plan.levels[n].rank.value])
      return wrong(std::format("plan.levels.rank[{}]", n),
                   std::format("rank {} is not in plan.pmList", plan.levels[n].rank.value));
  }
  if (plan.chosen_level > 0 && plan.chosen_level >= plan.levels.size())
    return wrong("plan.chosenLevel", std::format("must be below {}, is {}", plan.levels.size(), plan.chosen_level));
  std::vector<int> times_named(ranks, 0);
  for (std::size_t n = 0; n < plan.moves.size(); ++n) {
    const decide::Move& m = plan.moves[n];
    BSP_CHECK_OK(below("moves", "rank", n, m.rank.value, ranks));
    BSP_CHECK_OK(below("moves", "from", n, m.from.value, processors));
    BSP_CHECK_OK(below("moves", "to", n, m.to.value, processors));
    BSP_CHECK_OK(below("moves", "fromSet", n, m.from_set.value, sets));
    BSP_CHECK_OK(below("moves", "toSet", n, m.to_set.value, sets));
    ++times_named[m.rank.value];
  }
  for (std::size_t n = 0; n < plan.stays.size(); ++n) {
    BSP_CHECK_OK(below("stays", "rank", n, plan.stays[n].rank.value, ranks));
    BSP_CHECK_OK(below("stays", "target", n, plan.stays[n].target.value, sets));
    ++times_named[plan.stays[n].rank.value];
  }
  if (const auto bad = std::ranges::find_if(times_named, [](int times) { return times != 1; });
      bad != times_named.end())
    return wrong("plan", std::format("rank {} must stand once among moves and stays, stands {} times",
                                     bad - times_named.begin(), *bad));
  if (plan.superstep != call.supersteps.back().superstep)
    return wrong("plan.superstep", std::format("must be {}, the last one measured, is {}",
                                               call.supersteps.back().superstep.value, plan.superstep.value));
  BSP_CHECK_OK(check_cadence("plan.now", plan.now));
  return check_cadence("plan.next", plan.next);
}

}  // namespace

std::string run_of(const Call& call) {
  return std::format("{}/{}/{}/{}", call.name_space, call.job, call.uid, call.attempt);
}

Result<void> check_order(Superstep last, const Call& call) {
  if (call.plan.superstep >= last) return {};
  return wrong("plan.superstep",
               std::format("is {}, and the call before was after {}: two runs in one file, or lines out "
                           "of order; leave the lines of one run in it, as they were written",
                           call.plan.superstep.value, last.value));
}

Result<void> validate(const Call& call) {
  BSP_CHECK_OK(check_params(call.params));
  BSP_CHECK_OK(check_snapshot(call.snapshot));
  BSP_CHECK_OK(check_state(call));
  BSP_CHECK_OK(check_supersteps(call));
  return check_plan(call);
}

}  // namespace bsp::record
