// Choosing by one half of the rows: the halves share no cell, and a choice rests on its own half only.
#include "sim/reproduce/held_out.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/applications/platforms.h"

namespace bsp::sim {
namespace {

using calibration::Choice;
using ::testing::Contains;
using ::testing::DoubleNear;

Table small_table() {
  return table_of(parse_csv("sw", "order,scenario_i,a4_iii\n10,13,11\n25,40,30\n50,92,\n").value()).value();
}

// iii is as published with `even` in even rows and with `odd` in odd rows, and 10 % too long otherwise.
Results results_right_with(const Table& table, const Choice& even, const Choice& odd) {
  Results results;
  for (const Cell& cell : table.cells)
    for (const Choice& choice : choices()) {
      const double published = cell.published.value_or(1);
      const RunKey key = chosen(cell, choice);
      const bool right = key == chosen(cell, cell.row % 2 == 0 ? even : odd);
      results[key] = {.alone = 1, .deciding = 1, .migrating = right ? published : 1.1 * published};
    }
  return results;
}

TEST(HeldOut, CandidatesBeginWithTheCalibrationAndDifferInEveryValue) {
  const std::vector<Choice> all = choices();
  EXPECT_EQ(all.front(), Choice{});
  EXPECT_EQ(std::ranges::count(all, Choice{}), 1);
  for (const auto differ : {+[](const Choice& c) { return c.image_copies != Choice{}.image_copies; },
                            +[](const Choice& c) { return c.mig != Choice{}.mig; },
                            +[](const Choice& c) { return c.horizon != Choice{}.horizon; }})
    EXPECT_TRUE(std::ranges::any_of(all, differ));
}

TEST(HeldOut, EachHalfChoosesByItsOwnRows) {
  const std::vector<Table> tables{small_table()};
  Choice window{}, costly{};
  window.horizon = decide::Horizon::kWindow;
  costly.mig = 0.012;
  const Results results = results_right_with(tables[0], window, costly);
  EXPECT_EQ(choose(tables, results, Half::kEven), window);
  EXPECT_EQ(choose(tables, results, Half::kOdd), costly);
  EXPECT_THAT(error_of(tables, results, window, Half::kEven), DoubleNear(0, 1e-9));
  EXPECT_THAT(error_of(tables, results, window, Half::kOdd), DoubleNear(10, 1e-9));
  const nlohmann::json folds = held_out_json(tables, results)["halves"];
  EXPECT_EQ(folds[0]["choice"]["horizon"], "window");
  EXPECT_NEAR(folds[0]["errors"]["fitted"]["mean"].get<double>(), 0, 1e-9);
  EXPECT_NEAR(folds[0]["errors"]["heldOut"]["mean"].get<double>(), 10, 1e-9);
  EXPECT_EQ(folds[1]["choice"]["mig"], 0.012);
}

TEST(HeldOut, AmongEqualsTheCalibrationStays) {
  const std::vector<Table> tables{small_table()};
  Results results;
  for (const RunKey& key : held_out_runs(tables)) results[key] = {.alone = 1, .deciding = 1, .migrating = 1};
  EXPECT_EQ(choose(tables, results, Half::kEven), Choice{});
}

TEST(HeldOut, RunsEveryPublishedIiiWithEveryCandidate) {
  const Table table = small_table();
  const std::vector<RunKey> keys = held_out_runs(std::vector{table});
  for (const Cell& cell : table.cells)
    for (const Choice& choice : choices()) {
      if (cell.quantity != Quantity::kMigrating || !cell.published) continue;
      EXPECT_THAT(keys, Contains(chosen(cell, choice)));
    }
  EXPECT_TRUE(std::ranges::none_of(keys, [](const RunKey& key) { return key.processes == 50; }));  // prints no iii
  EXPECT_EQ(keys.size(), 2 * choices().size());
}

TEST(HeldOut, RunsThePublishedProgramOnce) {
  const Table table =
      table_of(parse_csv("migcube", "mapping,supersteps,scenario_i,a4_iii\nCPU,20,20.08,13.78\n").value()).value();
  EXPECT_EQ(held_out_runs(std::vector{table}).size(), 1u);
}

TEST(HeldOut, WhatAMoveCarriesKeepsScenarioI) {
  const RunKey key{.application = "lattice-boltzmann", .processes = 25, .size = 20, .heuristic = "Top"};
  RunKey other = key;
  other.choice.image_copies = 1;
  EXPECT_EQ(run(other)->alone, run(key)->alone);
}

}  // namespace
}  // namespace bsp::sim
