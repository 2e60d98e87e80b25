// Tables of cells: the meaning of columns, and errors for unknown ones.
#include <gmock/gmock.h>

#include <filesystem>

#include "sim/reproduce/cells.h"

namespace bsp::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Result<Table> parsed(std::string_view name, std::string_view text) {
  BSP_TRY(const Csv csv, parse_csv(name, text));
  return table_of(csv);
}
std::string error_of(std::string_view text) {
  const auto table = parsed("mine", text);
  return table ? "no error" : table.error().message;
}

TEST(Tables, ReadsEveryPublishedFile) {
  const std::map<std::string, std::size_t> cells{{"lattice_boltzmann", 18 * 7},
                                                 {"lattice_boltzmann_100", 6 * 7},
                                                 {"lattice_boltzmann_barrier", 3 * 2},
                                                 {"smith_waterman", 3 * 9},
                                                 {"lu", 8 * 3},
                                                 {"fractal", 5 * 3},
                                                 {"migcube", 10 * 7},
                                                 {"migcube_cpu", 5 * 7},
                                                 {"mighull", 10 * 7},
                                                 {"mighull_cpu", 5 * 7}};
  for (const auto& [name, count] : cells) {
    const auto csv = read_csv(std::string(BSP_SOURCE_DIR "/sim/reproduce/published/") + name + ".csv");
    ASSERT_TRUE(csv) << csv.error().message;
    const auto table = table_of(*csv);
    ASSERT_TRUE(table) << table.error().message;
    EXPECT_EQ(table->cells.size(), count) << name;
    for (const Cell& cell : table->cells) EXPECT_TRUE(cell.published) << name << " " << cell.column;
  }
}

TEST(Tables, ATableOfOneNumberOfProcessesOrMappingSaysSo) {
  EXPECT_EQ(parsed("x", "processes,supersteps,scenario_i\n100,10,1\n100,50,5\n")->title,
            "Lattice Boltzmann on the five Sets: Top (processes 100)");
  EXPECT_EQ(parsed("x", "processes,supersteps,scenario_i\n50,10,1\n100,10,1\n")->title,
            "Lattice Boltzmann on the five Sets: Top");
}

TEST(Tables, ColumnsNameScenarioAndAlpha) {
  const auto table = parsed("x", "processes,supersteps,scenario_i,a8_iii,ii_a16,gain_a2\n25,100,34.7,37.9,,12.5\n");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->cells.size(), 4u);
  const RunKey run{.application = "lattice-boltzmann", .processes = 25, .size = 100, .heuristic = "Top", .alpha = 8};
  EXPECT_EQ(table->cells[0].run, run);  // scenario i shares a run with the first α
  EXPECT_EQ(table->cells[0].quantity, Quantity::kAlone);
  EXPECT_EQ(table->cells[1].run, run);
  EXPECT_EQ(table->cells[1].quantity, Quantity::kMigrating);
  EXPECT_EQ(table->cells[2].run.alpha, 16u);
  EXPECT_EQ(table->cells[2].published, std::nullopt);
  EXPECT_EQ(table->cells[3].run.alpha, 2u);
  EXPECT_EQ(table->cells[3].quantity, Quantity::kGain);
}

TEST(Tables, KeyColumnsSelectTheApplication) {
  const auto key = [](std::string_view name, std::string_view text) { return parsed(name, text).value().cells[0].run; };
  EXPECT_EQ(key("x", "order,scenario_i\n25,1\n"),
            (RunKey{.application = "smith-waterman", .processes = 25, .size = 25, .heuristic = "Percentage"}));
  EXPECT_EQ(key("x", "order,processes,scenario_i\n500,50,1\n"),
            (RunKey{.application = "lu", .processes = 50, .size = 500, .heuristic = "Percentage"}));
  EXPECT_EQ(key("x", "domain,processes,heuristic,scenario_i\n20,50,Top,1\n"),
            (RunKey{.application = "fractal", .processes = 50, .size = 20, .heuristic = "Top"}));
  EXPECT_EQ(key("my_mighull", "mapping,supersteps,alpha,scenario_iii\nCPU,20,16,1\n"),
            (RunKey{.application = "lattice-boltzmann",
                    .processes = 60,
                    .size = 20,
                    .heuristic = "MigHull",
                    .alpha = 16,
                    .mapping = "CPU",
                    .as_published = true}));
  EXPECT_FALSE(key("x", "mapping,supersteps,heuristic,a4_iii\nCPU,20,Top,1\n").as_published);
}

TEST(Tables, CommentsEmptyLinesAndWindowsEndings) {
  const auto table = parsed("x", "# mine\r\norder, scenario_i\r\n\r\n10 , 13.34\r\n");
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->cells.at(0).published, 13.34);
}

TEST(Tables, BadInputNamesTheRemedy) {
  EXPECT_THAT(error_of(""), HasSubstr("mine.csv is empty"));
  EXPECT_THAT(error_of("order,order,scenario_i\n"), HasSubstr("column 'order' twice"));
  EXPECT_THAT(error_of("order,scenario_i\n10\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("1 values, but the header has 2")));
  EXPECT_THAT(error_of("threads,scenario_i\n10,1\n"), HasSubstr("its key columns fit no application"));
  EXPECT_THAT(error_of("order,time\n10,1\n"), AllOf(HasSubstr("'time'"), HasSubstr("scenario_iii")));
  EXPECT_THAT(error_of("order,a0_iii\n10,1\n"), HasSubstr("'a0_iii'"));
  EXPECT_THAT(error_of("order,scenario_i\nten,1\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("column order"), HasSubstr("'ten'")));
  EXPECT_THAT(error_of("order,scenario_i\n10.5,1\n"), HasSubstr("whole number"));
  EXPECT_THAT(error_of("order,scenario_i\n10,fast\n"), AllOf(HasSubstr("column scenario_i"), HasSubstr("'fast'")));
  EXPECT_THAT(error_of("order,scenario_i\n10,-3\n"), HasSubstr("column scenario_i"));
  EXPECT_THAT(error_of("order,heuristic,scenario_i\n10,Best,1\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("'Best'"), HasSubstr("Percentage"), HasSubstr("GreedyLB")));
  EXPECT_THAT(error_of("mapping,supersteps,scenario_i\nSideways,20,1\n"),
              AllOf(HasSubstr("'Sideways'"), HasSubstr("RoundRobin")));
  EXPECT_THAT(error_of("domain,processes,scenario_i\n2000,10,1\n"), HasSubstr("domain"));
  EXPECT_THAT(error_of("order,alpha,scenario_i\n10,0,1\n"), HasSubstr("column alpha"));
  const auto missing = read_csv("/nowhere/table.csv");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("/nowhere/table.csv"));
  const auto directory = read_csv("/");
  ASSERT_FALSE(directory);
  EXPECT_THAT(directory.error().message, HasSubstr("Is a directory"));
}

TEST(Tables, DifferencesAndMedians) {
  const auto table = parsed("x", "order,scenario_i,scenario_ii,gain\n10,10,20,5\n25,10,,\n50,8,20,1\n").value();
  Results results;
  for (const Cell& cell : table.cells) results[cell.run] = {.alone = 9, .deciding = 25, .migrating = 4.5};
  EXPECT_DOUBLE_EQ(difference(table.cells[0], results.at(table.cells[0].run)), -10);
  EXPECT_DOUBLE_EQ(difference(table.cells[2], results.at(table.cells[2].run)), 45);  // points: 50 % instead of 5 %
  const auto found = medians(table, results);
  EXPECT_DOUBLE_EQ(found.at(Quantity::kAlone), 10);     // of 10, 10, 12.5
  EXPECT_DOUBLE_EQ(found.at(Quantity::kDeciding), 25);  // of 25, 25
  EXPECT_DOUBLE_EQ(found.at(Quantity::kGain), (45 + 49) / 2.0);
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
}

}  // namespace
}  // namespace bsp::sim
