// Tables and ages as kubectl prints them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"

namespace bsp::cli {

// Columns as wide as their widest cell and three blanks more, at least six (kubectl's tabwriter). Characters are
// counted, not bytes; no blanks at the end of a line.
class Table {
 public:
  explicit Table(std::vector<std::string> header);
  void add(std::vector<std::string> row);
  // The header and all rows, each line with a newline.
  [[nodiscard]] std::string text(std::string_view indent = "") const;
  // A row in the widths of what text() would print; they grow with it. For --watch.
  std::string line(const std::vector<std::string>& row);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

 private:
  void widen(const std::vector<std::string>& row);
  [[nodiscard]] std::string format(const std::vector<std::string>& row) const;

  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
};

// 45s, 3m20s, 12m, 3h5m, 26h, 3d4h, 20d: kubectl's rounding. "<unknown>" if `since` is not set.
std::string age(Time since, Time now);

}  // namespace bsp::cli
