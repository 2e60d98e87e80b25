#include "sim/reproduce/held_out.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace bsp::sim {
namespace {

using calibration::Choice;
using nlohmann::json;

bool counts(const Cell& cell, Half half) {
  return cell.quantity == Quantity::kMigrating && cell.published && cell.row % 2 == (half == Half::kEven ? 0 : 1);
}

// nullopt: the half has none of the table's published iii.
std::optional<double> median_error(const Table& table, const Results& results, const Choice& choice, Half half) {
  std::vector<double> differences;
  for (const Cell& cell : table.cells)
    if (counts(cell, half)) differences.push_back(std::abs(difference(cell, results.at(chosen(cell, choice)))));
  if (differences.empty()) return std::nullopt;
  return median(std::move(differences));
}

json choice_json(const Choice& choice) {
  return {{"imageCopies", choice.image_copies},
          {"mig", choice.mig},
          {"horizon", choice.horizon == decide::Horizon::kSuperstep ? "superstep" : "window"}};
}

json errors_json(std::span<const Table> tables, const Results& results, const Choice& choice, Half half) {
  json by_table = json::array();
  for (const Table& table : tables)
    if (const auto error = median_error(table, results, choice, half))
      by_table.push_back({{"title", table.title}, {"median", *error}});
  return {{"mean", error_of(tables, results, choice, half)}, {"tables", std::move(by_table)}};
}

}  // namespace

std::vector<Choice> choices() {
  std::vector<Choice> all;  // in each list the calibration's value first, so that it stays where nothing depends on it
  for (const decide::Horizon horizon : {decide::Horizon::kSuperstep, decide::Horizon::kWindow})
    for (const double copies : {2.0, 1.0})
      for (const double mig : {0.005, 0.012}) all.push_back({copies, mig, horizon});
  return all;
}

RunKey chosen(const Cell& cell, const Choice& choice) {
  RunKey key = cell.run;
  if (!key.as_published) key.choice = choice;  // that program reads none of it
  return key;
}

std::vector<RunKey> held_out_runs(std::span<const Table> tables) {
  std::set<RunKey> keys;
  for (const Table& table : tables)
    for (const Cell& cell : table.cells)
      for (const Choice& choice : choices())
        if (counts(cell, Half::kEven) || counts(cell, Half::kOdd)) keys.insert(chosen(cell, choice));
  return {keys.begin(), keys.end()};
}

double error_of(std::span<const Table> tables, const Results& results, const Choice& choice, Half half) {
  double sum = 0;
  int count = 0;
  for (const Table& table : tables)
    if (const auto error = median_error(table, results, choice, half)) sum += *error, ++count;
  return count > 0 ? sum / count : 0;
}

Choice choose(std::span<const Table> tables, const Results& results, Half half) {
  const std::vector<Choice> all = choices();
  std::vector<double> errors(all.size());
  std::ranges::transform(all, errors.begin(), [&](const Choice& c) { return error_of(tables, results, c, half); });
  return all[static_cast<std::size_t>(std::ranges::min_element(errors) - errors.begin())];
}

json held_out_json(std::span<const Table> tables, const Results& results) {
  json folds = json::array();
  for (const auto& [half, other] : {std::pair{Half::kEven, Half::kOdd}, std::pair{Half::kOdd, Half::kEven}}) {
    const Choice choice = choose(tables, results, half);
    folds.push_back({{"fitted", half == Half::kEven ? "even" : "odd"},
                     {"choice", choice_json(choice)},
                     {"errors",
                      {{"fitted", errors_json(tables, results, choice, half)},
                       {"heldOut", errors_json(tables, results, choice, other)},
                       {"calibration", errors_json(tables, results, Choice{}, other)}}}});
  }
  return {{"candidates", choices().size()}, {"halves", std::move(folds)}};
}

}  // namespace bsp::sim
