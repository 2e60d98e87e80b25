// Comma-separated tables: a header line, then rows with the same number of values. Lines that start with # are
// comments. Quotes aren't supported.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::sim {

struct Csv {
  std::string name;  // of the file, without directory and extension
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<std::size_t> lines;  // line numbers of the rows, for messages

  [[nodiscard]] std::optional<std::size_t> column(std::string_view header_name) const;
  // A row's value in that column; "" if there is no such column.
  [[nodiscard]] std::string_view at(std::size_t row, std::string_view header_name) const;
  // The place of a row: "my.csv, line 3".
  [[nodiscard]] std::string where(std::size_t row) const;
};

// kInvalid names file and line.
Result<Csv> parse_csv(std::string_view name, std::string_view text);
Result<Csv> read_csv(const std::string& path);

// A required value as a number >= least. kInvalid names file, line and column.
Result<double> number_at(const Csv& csv, std::size_t row, std::string_view column, double least);
Result<std::uint64_t> whole_at(const Csv& csv, std::size_t row, std::string_view column, std::uint64_t least);

}  // namespace bsp::sim
