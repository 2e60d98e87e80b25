#include "sim/reproduce/report.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <set>

namespace bsp::sim {
namespace {

std::string number(double value) {
  if (value != 0 && std::abs(value) < 0.1) return std::format("{:.5f}", value);
  return std::format("{:.2f}", value);
}

// Published → ours (difference).
std::string cell_text(const Cell& cell, const RunResult& result) {
  const std::string ours = number(cell.ours(result));
  if (!cell.published) return std::format("– → {}", ours);
  return std::format("{} → {} ({:+.1f}{})", number(*cell.published), ours, difference(cell, result),
                     in_percent(cell.figure) ? " points" : " %");
}

std::string row_of(const std::vector<std::string>& values) {
  std::string line = "|";
  for (const std::string& value : values) line += " " + value + " |";
  return line + "\n";
}
std::string rule_of(std::size_t columns) {
  std::string line = "|";
  for (std::size_t c = 0; c < columns; ++c) line += " --- |";
  return line + "\n";
}

std::string table_text(const Table& table, const ReportParts& parts) {
  std::vector<std::string> header = table.key_columns;
  header.insert(header.end(), table.value_columns.begin(), table.value_columns.end());
  std::string text = row_of(header) + rule_of(header.size());
  std::size_t next = 0;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    std::vector<std::string> values = table.rows[row];
    for (; next < table.cells.size() && table.cells[next].row == row; ++next)
      values.push_back(cell_text(table.cells[next], parts.results.at(table.cells[next].run)));
    text += row_of(values);
  }
  return text;
}

std::string medians_text(const Table& table, const Results& results) {
  std::string text;
  for (const auto& [figure, value] : medians(table, results))
    text += std::format("{}{} {:.1f}{}", text.empty() ? "" : ", ", to_string(figure), value,
                        in_percent(figure) ? " points" : " %");
  return text.empty() ? "nothing published to compare with" : text;
}

std::string summary_text(const ReportParts& parts) {
  std::string text =
      "| table | cells | median of the absolute differences | overhead of deciding, (Σii − Σi)/Σi |\n" + rule_of(4);
  for (const Table& table : parts.tables) {
    const auto overhead = overhead_of(table, parts.results);
    const auto compared = std::ranges::count_if(table.cells, [](const Cell& c) { return c.published.has_value(); });
    text += row_of(
        {table.title, std::format("{} ({} published)", table.cells.size(), compared),
         medians_text(table, parts.results),
         overhead ? std::format("published {:.2f} %, ours {:.2f} %", overhead->published, overhead->ours) : "–"});
  }
  return text;
}

std::string moves_text(const ReportParts& parts) {
  std::string text = "| run | the source says | ours | process and superstep | Set and count |\n" + rule_of(5);
  for (const Statement& s : parts.statements) {
    if (s.implied) continue;
    const Verdict verdict = judge(s, parts.statements, parts.results.at(s.run));
    text += row_of(
        {s.run.name(), s.text(), verdict.ours, verdict.exact ? "yes" : "no", verdict.set_and_count ? "yes" : "no"});
  }
  text += "\nImplied by a printed iii that equals its ii, so nothing moved; ours moved something nevertheless in:\n\n";
  bool any = false;
  for (const Statement& s : parts.statements) {
    if (!s.implied) continue;
    const Verdict verdict = judge(s, parts.statements, parts.results.at(s.run));
    if (verdict.set_and_count) continue;
    any = true;
    text += std::format("* {}: {}\n", s.run.name(), verdict.ours);
  }
  if (!any) text += "* none of them\n";
  return text;
}

std::string score_text(const ReportParts& parts) {
  const Score said = score_of(parts.statements, parts.results, false),
              implied = score_of(parts.statements, parts.results, true);
  return std::format(
      "Of {} published statements about moves {} are right in Set and count, {} in process and superstep. {} of them "
      "stand in the texts "
      "({} and {} right), {} are cells whose iii equals their ii, so that nothing moved ({} right). A statement about "
      "five "
      "unnamed processes counts as five.\n",
      said.of + implied.of, said.set_and_count + implied.set_and_count, said.exact + implied.exact, said.of,
      said.set_and_count, said.exact, implied.of, implied.set_and_count);
}

std::string orders_text(const ReportParts& parts) {
  std::string text = "| gains compared | pairs | in the published order |\n" + rule_of(3);
  for (const Order& order : orders_of_gains(parts.tables, parts.results))
    text += row_of({order.name, std::to_string(order.pairs),
                    std::format("{} ({:.0f} %)", order.same, 100.0 * order.same / std::max(order.pairs, 1))});
  return text;
}

std::string yardsticks_text(const ReportParts& parts) {
  std::vector<std::string> heuristics;
  std::map<std::string, std::map<std::string, const RunResult*>> by_case;
  for (const RunKey& key : yardstick_runs()) {
    if (std::ranges::find(heuristics, key.heuristic) == heuristics.end()) heuristics.push_back(key.heuristic);
    by_case[key.case_name()][key.heuristic] = &parts.results.at(key);
  }
  std::vector<std::string> header{"run", "i"};
  header.insert(header.end(), heuristics.begin(), heuristics.end());
  std::string text = row_of(header) + rule_of(header.size());
  for (const auto& [name, results] : by_case) {
    std::vector<std::string> values{name, number(results.begin()->second->alone)};
    for (const std::string& heuristic : heuristics) {
      const RunResult& r = *results.at(heuristic);
      values.push_back(std::format("{} ({:+.1f} %, {} moves)", number(r.migrating), 100 * (r.migrating / r.alone - 1),
                                   r.moves.size()));
    }
    text += row_of(values);
  }
  return text;
}

// Gains of the table's iii cells in %, published and ours, by row and column.
struct Gain {
  double published, ours;
};
using Gains = std::map<std::pair<std::size_t, std::string>, Gain>;
const Cell* cell_of(const Table& table, std::size_t row, Figure figure) {
  const auto found =
      std::ranges::find_if(table.cells, [&](const Cell& c) { return c.row == row && c.figure == figure; });
  return found == table.cells.end() || !found->published ? nullptr : &*found;
}
Gains gains_of(const Table& table, const Results& results) {
  Gains gains;
  for (const Cell& cell : table.cells) {
    const Cell* alone = cell_of(table, cell.row, Figure::kAlone);
    if (cell.figure != Figure::kMigrating || !cell.published || alone == nullptr) continue;
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
    const Cell* alone = cell_of(table, cell.row, Figure::kAlone);
    if (cell.figure != Figure::kDeciding || !cell.published || alone == nullptr) continue;
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

std::string report_of(const ReportParts& parts) {
  std::string text = parts.yardsticks ? "# The published tables, reproduced\n\n" : "# Tables of your own\n\n";
  text += parts.yardsticks ? "`./dev reproduce` writes this file: every" : "Every";
  text +=
      " number below comes from a run of `sim/` (SimGrid around `operator/decide`) with the one\n"
      "calibration in `sim/applications/calibration.h`. Values are seconds of simulated run time, published → ours "
      "(difference).\n"
      "Scenario i is the application alone, ii with the scheduler deciding but not migrating, iii with migrations.\n\n";
  text += summary_text(parts) + "\n";
  if (!parts.statements.empty()) text += score_text(parts) + "\n";
  for (const Table& table : parts.tables) {
    text += std::format("## {}\n\nMedians of the absolute differences: {}.\n\n", table.title,
                        medians_text(table, parts.results));
    if (!parts.pictures.empty()) text += std::format("![{}]({}/{}.svg)\n\n", table.title, parts.pictures, table.name);
    text += table_text(table, parts) + "\n";
  }
  if (!orders_of_gains(parts.tables, parts.results).empty())
    text += "## The order of the gains\n\n" + orders_text(parts) + "\n";
  if (!parts.statements.empty()) text += "## Moves\n\n" + score_text(parts) + "\n" + moves_text(parts) + "\n";
  if (parts.yardsticks)
    text +=
        "## Against others\n\nScenario iii of one run of each application with every heuristic, and with Charm++'s "
        "GreedyLB and RefineLB "
        "(`sim/yardsticks`) or nothing\ndeciding at the same calls, for the same price.\n\n" +
        yardsticks_text(parts) + "\n";
  return text + parts.assumptions;
}

}  // namespace bsp::sim
