// Statements about moves: reading them, and judging them against constructed runs.
#include "sim/reproduce/statements.h"

#include <gmock/gmock.h>

#include "sim/reproduce/comparison.h"

namespace bsp::sim {
namespace {

using testing::HasSubstr;

constexpr std::string_view kHeader =
    "application,processes,size,heuristic,alpha,superstep,kind,process,count,from,to,node,weight\n";

std::vector<Statement> read(const std::string& rows) {
  const auto csv = parse_csv("moves", std::string(kHeader) + rows);
  EXPECT_TRUE(csv) << csv.error().message;
  auto statements = statements_of(*csv);
  EXPECT_TRUE(statements) << statements.error().message;
  return statements ? *statements : std::vector<Statement>{};
}

const RunResult kRun{
    .calls = {{2, 0}, {6, 1}, {14, 2}},
    .moves = {
        {5, "A1", "Labtec", "Aquario", 6}, {7, "A2", "Labtec", "Aquario", 14}, {8, "A3", "Corisco", "Aquario", 14}}};

TEST(Statements, SameProcessIsExactAndAnotherCountsForTheSet) {
  const auto s = read(
      "smith-waterman,10,10,Percentage,2,6,move,5,,Labtec,Aquario,A1,1\n"
      "smith-waterman,10,10,Percentage,2,14,move,6,,Labtec,Aquario,,1\n"
      "smith-waterman,10,10,Percentage,2,14,move,9,,Corisco,ICE,,1\n");
  const Verdict first = judge(s[0], s, kRun), second = judge(s[1], s, kRun), third = judge(s[2], s, kRun);
  EXPECT_TRUE(first.exact && first.set_and_count);
  EXPECT_FALSE(second.exact);
  EXPECT_TRUE(second.set_and_count) << "any one from Labtec to Aquario at 14";
  EXPECT_FALSE(third.exact || third.set_and_count) << "none went to ICE";
  EXPECT_THAT(second.ours, HasSubstr("1 Labtec → Aquario at 14"));
}

TEST(Statements, CountsAllStatementsAboutTheCall) {
  const auto s = read(
      "smith-waterman,10,10,Percentage,2,14,move,7,,Labtec,Aquario,,1\n"
      "smith-waterman,10,10,Percentage,2,14,move,9,,Labtec,Aquario,,1\n");
  EXPECT_TRUE(judge(s[0], s, kRun).exact);
  EXPECT_FALSE(judge(s[0], s, kRun).set_and_count) << "two should have moved, one did";
}

TEST(Statements, GroupsNothingAndSomething) {
  const auto s = read(
      "smith-waterman,10,10,Percentage,2,,group,,2,Labtec,Aquario,,2\n"
      "smith-waterman,10,10,Percentage,2,14,group,,2,Labtec,Aquario,,2\n"
      "smith-waterman,10,10,Percentage,2,2,none,,,,,,1\n"
      "smith-waterman,10,10,Percentage,2,6,none,,,,,,1\n"
      "smith-waterman,10,10,Percentage,2,5,none,,,,,,1\n"
      "smith-waterman,10,10,Percentage,2,,some,,,,,,1\n");
  const auto right = [&](std::size_t k) { return judge(s[k], s, kRun).set_and_count; };
  EXPECT_TRUE(right(0));
  EXPECT_FALSE(right(1));
  EXPECT_TRUE(right(2));
  EXPECT_FALSE(right(3));
  EXPECT_FALSE(right(4)) << "there is no call after superstep 5";
  EXPECT_TRUE(right(5));
  EXPECT_EQ(score_of(s, {{s[0].run, kRun}}, false).set_and_count, 2u + 1 + 1);
  EXPECT_EQ(score_of(s, {{s[0].run, kRun}}, false).of, 8u);
}

TEST(Statements, EqualScenariosImplyThatNothingMoved) {
  const auto table =
      table_of(parse_csv("x", "order,scenario_ii,scenario_iii,a8_ii,a8_iii\n10,14,14,15,13\n").value()).value();
  Results results;
  for (const Cell& cell : table.cells) results[cell.run] = kRun;
  const auto implied = implied_statements(std::span(&table, 1), results);
  ASSERT_EQ(implied.size(), 1u);
  EXPECT_EQ(implied[0].run.alpha, 4u);
  EXPECT_FALSE(judge(implied[0], implied, kRun).set_and_count);
  for (auto& [key, result] : results) result.calls.clear();
  EXPECT_TRUE(implied_statements(std::span(&table, 1), results).empty()) << "nothing can move without a call";
}

TEST(Statements, ReadsThePublishedStatements) {
  const auto csv = read_csv(BSP_SOURCE_DIR "/sim/reproduce/published/moves.csv");
  ASSERT_TRUE(csv) << csv.error().message;
  const auto statements = statements_of(*csv);
  ASSERT_TRUE(statements) << statements.error().message;
  std::uint32_t sum = 0;
  for (const Statement& s : *statements) sum += s.weight;
  EXPECT_EQ(sum, 66u);
}

TEST(Statements, BadInputNamesLineAndColumn) {
  const auto error_of = [](const std::string& row) {
    const auto statements = statements_of(parse_csv("moves", std::string(kHeader) + row).value());
    return statements ? "no error" : statements.error().message;
  };
  EXPECT_THAT(error_of("lu,25,500,Percentage,4,,gone,,,,,,1\n"),
              testing::AllOf(HasSubstr("line 2"), HasSubstr("'gone'")));
  EXPECT_THAT(error_of("lu,25,500,Percentage,4,,move,,,Labtec,Aquario,,1\n"), HasSubstr("column process"));
  EXPECT_THAT(error_of("lu,25,500,Percentage,4,,group,,3,,Aquario,,1\n"), HasSubstr("from and to"));
  EXPECT_THAT(error_of("qr,25,500,Percentage,4,,none,,,,,,1\n"), HasSubstr("'qr'"));
}

}  // namespace
}  // namespace bsp::sim
