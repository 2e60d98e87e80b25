// The report's numbers against values computed by hand from the same results.
#include "sim/reproduce/report.h"

#include <gmock/gmock.h>

#include "sim/reproduce/pictures.h"

namespace bsp::sim {
namespace {

using testing::HasSubstr;

Table table_named(std::string_view name, std::string_view text) {
  return table_of(parse_csv(name, text).value()).value();
}

TEST(Report, ShowsEveryCellWithItsDifference) {
  const std::vector<Table> tables{
      table_named("sw", "order,scenario_i,a4_ii,a4_iii\n10,13.34,14.71,11.94\n25,40.74,,34.82\n")};
  Results results;
  results[tables[0].cells[0].run] = {.alone = 13.2, .deciding = 14, .migrating = 12};
  results[tables[0].cells[3].run] = {.alone = 41, .deciding = 42.5, .migrating = 35};
  const std::string text = report_of({.tables = tables, .statements = {}, .results = results});
  EXPECT_THAT(text, HasSubstr("| 10 | 13.34 → 13.20 (-1.0 %) | 14.71 → 14.00 (-4.8 %) | 11.94 → 12.00 (+0.5 %) |\n"));
  EXPECT_THAT(text, HasSubstr("| 25 | 40.74 → 41.00 (+0.6 %) | – → 42.50 | 34.82 → 35.00 (+0.5 %) |\n"));
  EXPECT_THAT(text, HasSubstr("Medians of the absolute differences: i 0.8 %, ii 4.8 %, iii 0.5 %.\n"));
  EXPECT_THAT(text, HasSubstr("6 (5 published)"));
  EXPECT_THAT(text, HasSubstr("published 10.27 %, ours 6.06 %"));  // 14.71/13.34, 14/13.2; order 25 prints no ii
}

TEST(Report, OverheadComparesSumsOverTheSameCells) {
  const Table table = table_named("x", "order,scenario_i,a4_ii,a8_ii\n10,10,11,12\n20,30,33,\n");
  Results results;
  for (const Cell& cell : table.cells)
    results[cell.run] = {.alone = cell.row == 0 ? 10.0 : 20.0, .deciding = cell.row == 0 ? 10.5 : 22.0};
  const auto overhead = overhead_of(table, results);
  ASSERT_TRUE(overhead);
  EXPECT_NEAR(overhead->published, 100 * (56.0 / 50 - 1), 1e-12);  // 11 + 12 + 33 over 10 + 10 + 30
  EXPECT_NEAR(overhead->ours, 100 * (43.0 / 40 - 1), 1e-12);       // 10.5 + 10.5 + 22 over 10 + 10 + 20
}

TEST(Report, GainsAreComparedInPairs) {
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

TEST(Report, SameResultsGiveSameText) {
  const std::vector<Table> tables{table_named("lu", "order,processes,scenario_i\n500,25,1.68\n")};
  const Results results{{tables[0].cells[0].run, {.alone = 1.7}}};
  const ReportParts parts{
      .tables = tables, .statements = {}, .results = results, .pictures = "figures", .assumptions = "## Open\n"};
  EXPECT_EQ(report_of(parts), report_of(parts));
  EXPECT_THAT(report_of(parts), testing::EndsWith("## Open\n"));
  EXPECT_THAT(report_of(parts), HasSubstr("(figures/lu.svg)"));
}

TEST(Pictures, ShowEachPublishedAndEachOwnValueOnce) {
  const Table table = table_named("sw", "order,scenario_i,a4_ii,a4_iii\n10,10,11,9\n25,20,,18\n");
  Results results;
  for (const Cell& cell : table.cells) results[cell.run] = {.alone = 10, .deciding = 11, .migrating = 9};
  const std::string svg = picture_of(table, results);
  const auto count = [&](std::string_view what) {
    std::size_t n = 0;
    for (std::size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_EQ(count("<circle"), 7u);  // ii: one published, two ours; iii: two and two
  EXPECT_EQ(count("fill=\"none\" stroke=\"#1b6ca8\"/>"), 3u);
  EXPECT_EQ(count("<polyline"), 4u);
  EXPECT_THAT(svg, testing::StartsWith("<svg "));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
}

}  // namespace
}  // namespace bsp::sim
