#include "sim/reproduce/cells.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <format>

namespace bsp::sim {
namespace {

constexpr std::string_view kKeyColumns[] = {"mapping",    "processes", "order", "domain",
                                            "supersteps", "heuristic", "alpha"};

struct QuantityName {
  std::string_view name;
  Quantity quantity;
};
constexpr QuantityName kQuantityNames[] = {
    {"i", Quantity::kAlone},           {"ii", Quantity::kDeciding},         {"iii", Quantity::kMigrating},
    {"i_s", Quantity::kRestAlone},     {"iii_s", Quantity::kRestMigrating}, {"gain", Quantity::kGain},
    {"overhead", Quantity::kOverhead},
};

// The meaning of a value column; alpha only if its name has one.
struct Meaning {
  Quantity quantity;
  std::optional<std::uint64_t> alpha;
};

std::optional<std::uint64_t> alpha_in(std::string_view text) {
  if (!text.starts_with('a') || text.size() < 2 || text.size() > 9) return std::nullopt;
  std::uint64_t alpha = 0;
  for (const char c : text.substr(1)) {
    if (c < '0' || c > '9') return std::nullopt;
    alpha = alpha * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (alpha == 0) return std::nullopt;
  return alpha;
}

std::optional<Quantity> quantity_named(std::string_view name) {
  const auto found = std::ranges::find(kQuantityNames, name, &QuantityName::name);
  if (found == std::end(kQuantityNames)) return std::nullopt;
  return found->quantity;
}

// scenario_iii, a4_iii, iii_a4, gain, gain_a4.
std::optional<Meaning> meaning_of(std::string_view column) {
  if (column.starts_with("scenario_")) column.remove_prefix(9);
  if (const auto quantity = quantity_named(column)) return Meaning{*quantity, std::nullopt};
  const std::size_t bar = column.find('_');
  if (bar == std::string_view::npos) return std::nullopt;
  std::string_view first = column.substr(0, bar), second = column.substr(bar + 1);
  if (!alpha_in(first)) std::swap(first, second);
  const auto alpha = alpha_in(first);
  const auto quantity = quantity_named(second);
  if (!alpha || !quantity) return std::nullopt;
  return Meaning{*quantity, alpha};
}

struct Kind {
  std::vector<std::string_view> keys;  // besides heuristic and alpha
  std::string_view application, title, heuristic;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {{"mapping", "supersteps"},
       "lattice-boltzmann",
       "Lattice Boltzmann, 60 processes on 40 machines of Grid'5000",
       "MigCube"},
      {{"processes", "supersteps"}, "lattice-boltzmann", "Lattice Boltzmann on the five Sets", "Top"},
      {{"order", "processes"}, "lu", "LU decomposition on the five Sets", "Percentage"},
      {{"order"}, "smith-waterman", "Smith-Waterman on the five Sets, one process per column", "Percentage"},
      {{"domain", "processes"}, "fractal", "Fractal image compression on the five Sets", "AutoMig"},
      {{"processes"},
       "lattice-boltzmann",
       "Communication and barrier of a Lattice Boltzmann superstep, 2000 supersteps",
       "Top"}};
  return all;
}

Result<const Kind*> kind_of(const Csv& csv) {
  std::vector<std::string_view> keys;
  for (const std::string& column : csv.header)
    if (std::ranges::find(kKeyColumns, column) != std::end(kKeyColumns) && column != "heuristic" && column != "alpha")
      keys.push_back(column);
  for (const Kind& kind : kinds())
    if (std::ranges::is_permutation(kind.keys, keys)) return &kind;
  return fail(
      ErrorCode::kInvalid,
      std::format(
          "{}.csv: its key columns fit no application: use mapping,supersteps or processes,supersteps (Lattice "
          "Boltzmann), "
          "order,processes (LU), order (Smith-Waterman), domain,processes (fractal), or processes alone (the barrier)",
          csv.name));
}

std::string default_heuristic(const Csv& csv, const Kind& kind) {
  std::string name = csv.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (kind.heuristic == "MigCube" && name.find("mighull") != std::string::npos) return "MigHull";
  return std::string(kind.heuristic);
}

Result<RunKey> key_of_row(const Csv& csv, const Kind& kind, std::size_t row) {
  RunKey key{.application = std::string(kind.application),
             .processes = 60,
             .size = 2000,
             .heuristic = default_heuristic(csv, kind)};
  if (!csv.at(row, "heuristic").empty()) key.heuristic = csv.at(row, "heuristic");
  if (!csv.at(row, "alpha").empty()) {
    BSP_TRY(key.alpha, whole_at(csv, row, "alpha", 1));
  }
  key.mapping = csv.at(row, "mapping");
  key.as_published = !key.mapping.empty() && (key.heuristic == "MigCube" || key.heuristic == "MigHull");
  for (const std::string_view column : kind.keys) {
    if (column == "mapping") continue;
    BSP_TRY(const double value, number_at(csv, row, column, 1));
    if (column != "domain") BSP_CHECK_OK(whole_at(csv, row, column, 1).transform([](std::uint64_t) {}));
    if (column == "processes") {
      if (value > 100'000)
        return fail(ErrorCode::kInvalid, std::format("{}, column processes: at most 100000", csv.where(row)));
      key.processes = static_cast<std::uint32_t>(value);
    } else {
      key.size = value;
    }
  }
  if (kind.application == "smith-waterman") key.processes = static_cast<std::uint32_t>(std::min(key.size, 100'001.0));
  return key;
}

}  // namespace

bool in_percent(Quantity quantity) { return quantity == Quantity::kOverhead || quantity == Quantity::kGain; }

std::string_view to_string(Quantity quantity) {
  const auto found = std::ranges::find(kQuantityNames, quantity, &QuantityName::quantity);
  return found->name;
}

double Cell::ours(const RunResult& r) const {
  switch (quantity) {
    case Quantity::kAlone:
      return r.alone;
    case Quantity::kDeciding:
      return r.deciding;
    case Quantity::kMigrating:
      return r.migrating;
    case Quantity::kRestAlone:
      return r.rest_alone;
    case Quantity::kRestMigrating:
      return r.rest_migrating;
    case Quantity::kOverhead:
      return 100 * (r.deciding - r.alone) / r.alone;
    case Quantity::kGain:
      return 100 * (r.alone - r.migrating) / r.alone;
  }
  check(false, "every quantity is computed");
  return 0;
}

std::string Table::row_name(std::size_t row) const {
  std::string joined;
  for (const std::string& value : rows[row]) joined += (joined.empty() ? "" : "/") + value;
  return joined;
}

Result<Table> table_of(const Csv& csv) {
  BSP_TRY(const Kind* kind, kind_of(csv));
  Table table{.name = csv.name, .title = std::format("{}: {}", kind->title, default_heuristic(csv, *kind))};
  std::vector<Meaning> meanings;
  for (const std::string& column : csv.header) {
    if (std::ranges::find(kKeyColumns, column) != std::end(kKeyColumns)) {
      table.key_columns.push_back(column);
      continue;
    }
    const auto meaning = meaning_of(column);
    if (!meaning)
      return fail(
          ErrorCode::kInvalid,
          std::format(
              "{}.csv: column '{}' is unknown: a value is scenario_i, scenario_ii, scenario_iii, aN_ii, aN_iii, "
              "gain, overhead, gain_aN, overhead_aN, or scenario_i_s, scenario_iii_s",
              csv.name, column));
    table.value_columns.push_back(column);
    meanings.push_back(*meaning);
  }
  // Scenario i doesn't depend on α: with the first α of the row's columns, it needs no separate run.
  const auto with_alpha = std::ranges::find_if(meanings, [](const Meaning& m) { return m.alpha.has_value(); });
  for (std::size_t row = 0; row < csv.rows.size(); ++row) {
    BSP_TRY(const RunKey of_row, key_of_row(csv, *kind, row));
    std::vector<std::string> values;
    for (const std::string& column : table.key_columns) values.emplace_back(csv.at(row, column));
    table.rows.push_back(std::move(values));
    for (std::size_t v = 0; v < table.value_columns.size(); ++v) {
      Cell cell{.row = row, .column = table.value_columns[v], .quantity = meanings[v].quantity, .run = of_row};
      if (meanings[v].alpha) cell.run.alpha = *meanings[v].alpha;
      if (!meanings[v].alpha && cell.quantity == Quantity::kAlone && with_alpha != meanings.end())
        cell.run.alpha = *with_alpha->alpha;
      if (!csv.at(row, cell.column).empty()) {
        BSP_TRY(cell.published, number_at(csv, row, cell.column, in_percent(cell.quantity) ? -1e9 : 1e-9));
      }
      if (const auto valid = validate(cell.run); !valid) return std::unexpected(valid.error().in(csv.where(row)));
      table.cells.push_back(std::move(cell));
    }
  }
  // A table of one number of processes or of one mapping says so.
  const auto same = [&](const std::vector<std::string>& row) { return row[0] == table.rows[0][0]; };
  if (table.key_columns.size() > 1 && table.rows.size() > 1 && std::ranges::all_of(table.rows, same))
    table.title += std::format(" ({} {})", table.key_columns[0], table.rows[0][0]);
  return table;
}

double difference(const Cell& cell, const RunResult& result) {
  const double ours = cell.ours(result);
  return in_percent(cell.quantity) ? ours - *cell.published : 100 * (ours / *cell.published - 1);
}

double median(std::vector<double> values) {
  check(!values.empty(), "a median is of something");
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::map<Quantity, double> medians(const Table& table, const Results& results) {
  std::map<Quantity, std::vector<double>> sizes;
  for (const Cell& cell : table.cells)
    if (cell.published) sizes[cell.quantity].push_back(std::abs(difference(cell, results.at(cell.run))));
  std::map<Quantity, double> out;
  for (auto& [quantity, values] : sizes) out[quantity] = median(std::move(values));
  return out;
}

}  // namespace bsp::sim
