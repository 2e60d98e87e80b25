// The comparison as JSON: every cell, every statement, the medians, the order of gains, the yardsticks.
//
// Pure: the same tables and results produce the same JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <span>
#include <string>

#include "sim/reproduce/cells.h"
#include "sim/reproduce/statements.h"

namespace bsp::sim {

// How often the published and our gains agree on which of two is greater, over all pairs in the tables: the same row
// with two α₀, and the same row and column of MigCube and MigHull. Pairs that differ by less than 0.1 points in print
// don't count.
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

// The runs that compare our heuristics with the yardsticks.
std::vector<RunKey> yardstick_runs();

struct Comparison {
  std::span<const Table> tables;
  std::span<const Statement> statements;  // including the implied ones
  const Results& results;
  bool yardsticks = false;  // whether the results include yardstick_runs()
};
// Everything that page.py shows.
nlohmann::json to_json(const Comparison& comparison);

}  // namespace bsp::sim
