// A published table: from its columns to the runs behind each value (published/README.md describes the format).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "sim/reproduce/csv.h"
#include "sim/reproduce/runs.h"

namespace bsp::sim {

enum class Figure {
  kAlone,
  kDeciding,
  kMigrating,  // s, scenarios i, ii, iii
  kRestAlone,
  kRestMigrating,  // s, the last superstep without its computation
  kOverhead,
  kGain,  // %, (ii − i)/i and (i − iii)/i
};
// %, compared by difference instead of by ratio.
bool in_percent(Figure figure);
// "i", "ii", "iii", "gain", …: figures are grouped by it.
std::string_view to_string(Figure figure);

struct Cell {
  std::size_t row = 0;   // index in Table::rows
  std::string column{};  // as the file calls it
  Figure figure = Figure::kAlone;
  RunKey run{};
  std::optional<double> published{};

  [[nodiscard]] double ours(const RunResult& result) const;
};

struct Table {
  std::string name{};   // the file's
  std::string title{};  // of what application, on what, with which heuristic
  std::vector<std::string> key_columns{};
  std::vector<std::vector<std::string>> rows{};  // values of the key columns
  std::vector<std::string> value_columns{};
  std::vector<Cell> cells{};  // row by row, by value column

  [[nodiscard]] std::string row_name(std::size_t row) const;  // "25/100"
};

// kInvalid names file, line or column, and what would be right.
Result<Table> table_of(const Csv& csv);

using Results = std::map<RunKey, RunResult>;

// Ours against the published value: % of it, or points for a percentage.
double difference(const Cell& cell, const RunResult& result);
// The medians of |difference| by figure; nothing for figures without published values.
std::map<Figure, double> medians(const Table& table, const Results& results);
double median(std::vector<double> values);

}  // namespace bsp::sim
