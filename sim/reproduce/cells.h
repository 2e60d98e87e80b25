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

enum class Quantity {
  kAlone,
  kDeciding,
  kMigrating,  // s, scenarios i, ii, iii
  kRestAlone,
  kRestMigrating,  // s, the last superstep without its computation
  kOverhead,
  kGain,  // %, (ii − i)/i and (i − iii)/i
};
// %; compared by difference, not by ratio.
bool in_percent(Quantity quantity);
// "i", "ii", "iii", "gain", …: the report groups quantities by this name.
std::string_view to_string(Quantity quantity);

struct Cell {
  std::size_t row = 0;   // index in Table::rows
  std::string column{};  // its name in the file
  Quantity quantity = Quantity::kAlone;
  RunKey run{};
  std::optional<double> published{};

  [[nodiscard]] double ours(const RunResult& result) const;
};

struct Table {
  std::string name{};   // of the file
  std::string title{};  // application, platform and heuristic
  std::vector<std::string> key_columns{};
  std::vector<std::vector<std::string>> rows{};  // values of the key columns
  std::vector<std::string> value_columns{};
  std::vector<Cell> cells{};  // row by row, by value column

  [[nodiscard]] std::string row_name(std::size_t row) const;  // "25/100"
};

// kInvalid names file, line or column, and the remedy.
Result<Table> table_of(const Csv& csv);

using Results = std::map<RunKey, RunResult>;

// The difference of ours from the published value: in % of it, or in points for a percentage.
double difference(const Cell& cell, const RunResult& result);
// The medians of |difference| by quantity, without quantities that have no published values.
std::map<Quantity, double> medians(const Table& table, const Results& results);
double median(std::vector<double> values);

}  // namespace bsp::sim
