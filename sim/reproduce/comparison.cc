#include "sim/reproduce/comparison.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>

namespace bsp::sim {
namespace {

using nlohmann::json;

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(); }

json cell_json(const Cell& cell, const Results& results) {
  const RunResult& result = results.at(cell.run);
  return {{"row", cell.row},
          {"column", cell.column},
          {"quantity", to_string(cell.quantity)},
          {"percent", in_percent(cell.quantity)},
          {"published", or_null(cell.published)},
          {"ours", cell.ours(result)},
          {"difference", cell.published ? json(difference(cell, result)) : json()}};
}

json table_json(const Table& table, const Results& results) {
  json cells = json::array(), medians_of = json::array(), row_names = json::array();
  for (const Cell& cell : table.cells) cells.push_back(cell_json(cell, results));
  for (const auto& [quantity, value] : medians(table, results))
    medians_of.push_back({{"quantity", to_string(quantity)}, {"percent", in_percent(quantity)}, {"value", value}});
  for (std::size_t row = 0; row < table.rows.size(); ++row) row_names.push_back(table.row_name(row));
  const auto overhead = overhead_of(table, results);
  return {{"name", table.name},
          {"title", table.title},
          {"keyColumns", table.key_columns},
          {"valueColumns", table.value_columns},
          {"rows", table.rows},
          {"rowNames", row_names},
          {"cells", cells},
          {"medians", medians_of},
          {"overhead", overhead ? json{{"published", overhead->published}, {"ours", overhead->ours}} : json()}};
}

json statement_json(const Statement& s, std::span<const Statement> all, const Results& results) {
  const Verdict verdict = judge(s, all, results.at(s.run));
  return {{"run", s.run.name()},  {"text", s.text()},       {"implied", s.implied},
          {"ours", verdict.ours}, {"exact", verdict.exact}, {"setAndCount", verdict.set_and_count}};
}

json score_json(const Score& score) {
  return {{"of", score.of}, {"exact", score.exact}, {"setAndCount", score.set_and_count}};
}

json yardstick_json(const RunKey& key, const RunResult& result) {
  return {{"case", key.case_name()},
          {"heuristic", key.heuristic},
          {"alone", result.alone},
          {"migrating", result.migrating},
          {"moves", result.moves.size()}};
}

// Gains of the table's iii cells in %, published and ours, by row and column.
struct Gain {
  double published, ours;
};
using Gains = std::map<std::pair<std::size_t, std::string>, Gain>;
const Cell* cell_of(const Table& table, std::size_t row, Quantity quantity) {
  const auto found =
      std::ranges::find_if(table.cells, [&](const Cell& c) { return c.row == row && c.quantity == quantity; });
  return found == table.cells.end() || !found->published ? nullptr : &*found;
}
Gains gains_of(const Table& table, const Results& results) {
  Gains gains;
  for (const Cell& cell : table.cells) {
    const Cell* alone = cell_of(table, cell.row, Quantity::kAlone);
    if (cell.quantity != Quantity::kMigrating || !cell.published || alone == nullptr) continue;
    gains[{cell.row, cell.column}] = {
        100 * (1 - *cell.published / *alone->published),
        100 * (1 - cell.ours(results.at(cell.run)) / alone->ours(results.at(alone->run)))};
  }
  return gains;
}
void count_pair(Order& order, const Gain& a, const Gain& b) {
  const double said = a.published - b.published, done = a.ours - b.ours;
  if (std::abs(said) < 0.1) return;
  ++order.pairs;
  if (said * done > 0) ++order.same;
}

}  // namespace

std::vector<Order> orders_of_gains(std::span<const Table> tables, const Results& results) {
  std::vector<Order> orders;
  for (const Table& table : tables) {
    Order order{.name = table.title + ": α₀ against α₀"};
    const Gains gains = gains_of(table, results);
    for (auto a = gains.begin(); a != gains.end(); ++a)
      for (auto b = std::next(a); b != gains.end() && b->first.first == a->first.first; ++b)
        count_pair(order, a->second, b->second);
    if (order.pairs > 0) orders.push_back(order);
  }
  for (auto a = tables.begin(); a != tables.end(); ++a)
    for (auto b = std::next(a); b != tables.end(); ++b) {
      if (a->key_columns != b->key_columns || a->rows != b->rows || a->cells.empty() ||
          a->cells[0].run.heuristic == b->cells[0].run.heuristic)
        continue;
      Order order{.name = std::format("{} against {}", a->cells[0].run.heuristic, b->cells[0].run.heuristic)};
      const Gains one = gains_of(*a, results), other = gains_of(*b, results);
      for (const auto& [where, gain] : one)
        if (const auto found = other.find(where); found != other.end()) count_pair(order, gain, found->second);
      if (order.pairs > 0) orders.push_back(order);
    }
  return orders;
}

std::optional<Overhead> overhead_of(const Table& table, const Results& results) {
  double published_ii = 0, published_i = 0, ours_ii = 0, ours_i = 0;
  for (const Cell& cell : table.cells) {
    const Cell* alone = cell_of(table, cell.row, Quantity::kAlone);
    if (cell.quantity != Quantity::kDeciding || !cell.published || alone == nullptr) continue;
    published_ii += *cell.published;
    published_i += *alone->published;
    ours_ii += cell.ours(results.at(cell.run));
    ours_i += alone->ours(results.at(alone->run));
  }
  if (published_i == 0) return std::nullopt;
  return Overhead{100 * (published_ii / published_i - 1), 100 * (ours_ii / ours_i - 1)};
}

Score score_of(std::span<const Statement> statements, const Results& results, bool implied) {
  Score score;
  for (const Statement& s : statements) {
    if (s.implied != implied) continue;
    const Verdict verdict = judge(s, statements, results.at(s.run));
    score.of += s.weight;
    if (verdict.exact) score.exact += s.weight;
    if (verdict.set_and_count) score.set_and_count += s.weight;
  }
  return score;
}

std::vector<RunKey> yardstick_runs() {
  std::vector<RunKey> runs;
  for (const RunKey& which :
       {RunKey{.application = "lattice-boltzmann", .processes = 25, .size = 1000},
        RunKey{.application = "smith-waterman", .processes = 25, .size = 25},
        RunKey{.application = "lu", .processes = 25, .size = 500},
        RunKey{.application = "fractal", .processes = 25, .size = 10},
        RunKey{.application = "lattice-boltzmann", .processes = 60, .size = 100, .mapping = "Ascending"}})
    for (const char* heuristic :
         {"Nothing", "GreedyLB", "RefineLB", "Top", "Percentage", "AutoMig", "MigCube", "MigHull", "Bottleneck"}) {
      runs.push_back(which);
      runs.back().heuristic = heuristic;
    }
  return runs;
}

json to_json(const Comparison& c) {
  json tables = json::array(), statements = json::array(), orders = json::array(), yardsticks = json::array();
  for (const Table& table : c.tables) tables.push_back(table_json(table, c.results));
  for (const Statement& s : c.statements) statements.push_back(statement_json(s, c.statements, c.results));
  for (const Order& order : orders_of_gains(c.tables, c.results))
    orders.push_back({{"name", order.name}, {"pairs", order.pairs}, {"same", order.same}});
  if (c.yardsticks)
    for (const RunKey& key : yardstick_runs()) yardsticks.push_back(yardstick_json(key, c.results.at(key)));
  return {{"tables", tables},
          {"statements", statements},
          {"score",
           {{"said", score_json(score_of(c.statements, c.results, false))},
            {"implied", score_json(score_of(c.statements, c.results, true))}}},
          {"orders", orders},
          {"yardsticks", yardsticks}};
}

}  // namespace bsp::sim
