#include "sim/reproduce/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <format>

#include "base/core/read_file.h"

namespace bsp::sim {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string> split_at_commas(std::string_view line) {
  std::vector<std::string> values;
  while (true) {
    const std::size_t comma = line.find(',');
    values.emplace_back(trimmed(line.substr(0, comma)));
    if (comma == std::string_view::npos) return values;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

std::optional<std::size_t> Csv::column(std::string_view header_name) const {
  const auto found = std::ranges::find(header, header_name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

std::string_view Csv::at(std::size_t row, std::string_view header_name) const {
  const auto c = column(header_name);
  return c ? std::string_view(rows[row][*c]) : std::string_view();
}

std::string Csv::where(std::size_t row) const { return std::format("{}.csv, line {}", name, lines[row]); }

Result<Csv> parse_csv(std::string_view name, std::string_view text) {
  Csv csv{.name = std::string(name), .header = {}, .rows = {}, .lines = {}};
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    const std::string_view content = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (content.empty() || content.starts_with('#')) continue;
    std::vector<std::string> values = split_at_commas(content);
    if (csv.header.empty()) {
      csv.header = std::move(values);
      for (auto column = csv.header.begin(); column != csv.header.end(); ++column)
        if (column->empty() || std::find(csv.header.begin(), column, *column) != column)
          return fail(
              ErrorCode::kInvalid,
              std::format("{}.csv, line {}: the header names column '{}' twice, or one is empty", name, line, *column));
      continue;
    }
    if (values.size() != csv.header.size())
      return fail(ErrorCode::kInvalid, std::format("{}.csv, line {}: {} values, but the header has {} columns", name,
                                                   line, values.size(), csv.header.size()));
    csv.rows.push_back(std::move(values));
    csv.lines.push_back(line);
  }
  if (csv.header.empty())
    return fail(ErrorCode::kInvalid, std::format("{}.csv is empty: its first line names the columns", name));
  return csv;
}

Result<Csv> read_csv(const std::string& path) {
  BSP_TRY(const std::string text, read_file(path));
  return parse_csv(std::filesystem::path(path).stem().string(), text);
}

Result<double> number_at(const Csv& csv, std::size_t row, std::string_view column, double least) {
  const std::string_view text = csv.at(row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) ||
      value < least)
    return fail(ErrorCode::kInvalid, std::format("{}, column {}: '{}' must be a number of at least {}", csv.where(row),
                                                 column, text, least));
  return value;
}

Result<std::uint64_t> whole_at(const Csv& csv, std::size_t row, std::string_view column, std::uint64_t least) {
  BSP_TRY(const double value, number_at(csv, row, column, static_cast<double>(least)));
  if (value != std::floor(value) || value > 1e9)
    return fail(ErrorCode::kInvalid, std::format("{}, column {}: '{}' must be a whole number of at most 1000000000",
                                                 csv.where(row), column, csv.at(row, column)));
  return static_cast<std::uint64_t>(value);
}

}  // namespace bsp::sim
