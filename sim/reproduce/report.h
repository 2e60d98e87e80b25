// The comparison as Markdown: every cell, every statement, the medians, the order of gains, the yardsticks.
//
// Pure: the same tables and results give the same text.
#pragma once

#include <span>
#include <string>

#include "sim/reproduce/cells.h"
#include "sim/reproduce/statements.h"

namespace bsp::sim {

// Which of two gains is greater, published and ours, over all pairs that the tables print: the same row under two α₀,
// and the same row and column of MigCube and MigHull. Pairs closer than 0.1 points in print are not counted.
struct Order {
  std::string name;
  int pairs = 0, same = 0;
};
std::vector<Order> orders_of_gains(std::span<const Table> tables, const Results& results);

// (Σ ii − Σ i) / Σ i over the table's cells of scenario ii, %: published (where both are printed) and ours, over the
// same cells.
struct Overhead {
  double published = 0, ours = 0;
};
std::optional<Overhead> overhead_of(const Table& table, const Results& results);

struct Score {
  std::uint32_t of = 0, exact = 0, set_and_count = 0;
};
// Of explicit statements (implied = false) or of the implied ones.
Score score_of(std::span<const Statement> statements, const Results& results, bool implied);

// The runs in which ours are held against the yardsticks.
std::vector<RunKey> yardstick_runs();

struct ReportParts {
  std::span<const Table> tables;
  std::span<const Statement> statements;  // with the implied ones
  const Results& results;
  std::string pictures{};     // directory of the pictures as the text refers to it; "" = none
  std::string assumptions{};  // prose that ends it
  bool yardsticks = false;    // results have yardstick_runs()
};
std::string report_of(const ReportParts& parts);

}  // namespace bsp::sim
