// The comparison's numbers against values computed by hand from the same results. page_test.py tests the page.
#include "sim/reproduce/comparison.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace bsp::sim {
namespace {

using nlohmann::json;

Table table_named(std::string_view name, std::string_view text) {
  return table_of(parse_csv(name, text).value()).value();
}

TEST(Comparison, HasEveryCellWithItsDifference) {
  const std::vector<Table> tables{
      table_named("sw", "order,scenario_i,a4_ii,a4_iii\n10,13.34,14.71,11.94\n25,40.74,,34.82\n")};
  Results results;
  results[tables[0].cells[0].run] = {.alone = 13.2, .deciding = 14, .migrating = 12};
  results[tables[0].cells[3].run] = {.alone = 41, .deciding = 42.5, .migrating = 35};
  const json table = to_json({.tables = tables, .statements = {}, .results = results})["tables"][0];
  EXPECT_EQ(table["rows"], (json{{"10"}, {"25"}}));
  ASSERT_EQ(table["cells"].size(), 6u);
  const json& first = table["cells"][0];
  EXPECT_EQ(first["column"], "scenario_i");
  EXPECT_EQ(first["quantity"], "i");
  EXPECT_EQ(first["published"], 13.34);
  EXPECT_EQ(first["ours"], 13.2);
  EXPECT_NEAR(first["difference"].get<double>(), 100 * (13.2 / 13.34 - 1), 1e-12);
  const json& missing = table["cells"][4];
  EXPECT_EQ(missing["row"], 1);
  EXPECT_TRUE(missing["published"].is_null() && missing["difference"].is_null());
  EXPECT_EQ(missing["ours"], 42.5);
  ASSERT_EQ(table["medians"].size(), 3u);
  EXPECT_NEAR(table["medians"][0]["value"].get<double>(), 50 * (1 - 13.2 / 13.34 + 41 / 40.74 - 1), 1e-12);
  EXPECT_NEAR(table["overhead"]["published"].get<double>(), 100 * (14.71 / 13.34 - 1), 1e-12);  // order 25 prints no ii
}

TEST(Comparison, OverheadComparesSumsOverTheSameCells) {
  const Table table = table_named("x", "order,scenario_i,a4_ii,a8_ii\n10,10,11,12\n20,30,33,\n");
  Results results;
  for (const Cell& cell : table.cells)
    results[cell.run] = {.alone = cell.row == 0 ? 10.0 : 20.0, .deciding = cell.row == 0 ? 10.5 : 22.0};
  const auto overhead = overhead_of(table, results);
  ASSERT_TRUE(overhead);
  EXPECT_NEAR(overhead->published, 100 * (56.0 / 50 - 1), 1e-12);  // 11 + 12 + 33 over 10 + 10 + 30
  EXPECT_NEAR(overhead->ours, 100 * (43.0 / 40 - 1), 1e-12);       // 10.5 + 10.5 + 22 over 10 + 10 + 20
}

TEST(Comparison, GainsAreComparedInPairs) {
  const std::vector<Table> tables{
      table_named("migcube", "mapping,supersteps,scenario_i,a4_iii,a8_iii,a16_iii\nAscending,20,10,8,7,7.005\n"),
      table_named("mighull", "mapping,supersteps,scenario_i,a4_iii,a8_iii,a16_iii\nAscending,20,10,7,8,9\n")};
  Results results;
  const auto set = [&](const char* heuristic, double a4, double a8, double a16) {
    RunKey key = tables[0].cells[0].run;
    key.heuristic = heuristic;
    for (const auto& [alpha, iii] : {std::pair{4u, a4}, std::pair{8u, a8}, std::pair{16u, a16}}) {
      key.alpha = alpha;
      results[key] = {.alone = 10, .deciding = 10, .migrating = iii};
    }
  };
  set("MigCube", 9, 8, 8.5);
  set("MigHull", 8, 7, 9);
  const auto orders = orders_of_gains(tables, results);
  ASSERT_EQ(orders.size(), 3u);
  EXPECT_EQ(orders[0].pairs, 2);  // a8 and a16 are practically equal in print
  EXPECT_EQ(orders[0].same, 2);
  EXPECT_EQ(orders[1].pairs, 3);  // printed 7 < 8 < 9, ours 8, 7, 9
  EXPECT_EQ(orders[1].same, 2);
  EXPECT_EQ(orders[2].pairs, 3);  // MigCube printed worse, better, better; ours worse, worse, better
  EXPECT_EQ(orders[2].same, 2);
}

TEST(Comparison, SameResultsGiveTheSameText) {
  const std::vector<Table> tables{table_named("lu", "order,processes,scenario_i\n500,25,1.68\n")};
  const Results results{{tables[0].cells[0].run, {.alone = 1.7}}};
  const Comparison comparison{.tables = tables, .statements = {}, .results = results};
  EXPECT_EQ(to_json(comparison).dump(), to_json(comparison).dump());
}

}  // namespace
}  // namespace bsp::sim
