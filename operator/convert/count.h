// A number of the job, or what a person has to fill in for it.
#pragma once

#include <cstdint>
#include <format>
#include <string>

namespace bsp::convert {

struct Count {
  std::uint64_t number = 1;
  std::string text = {};  // a placeholder, or a product that holds one: the number isn't known

  bool operator==(const Count&) const = default;
  [[nodiscard]] bool is_known() const { return text.empty(); }
  [[nodiscard]] bool is_one() const { return text.empty() && number == 1; }
  [[nodiscard]] std::string shown() const { return text.empty() ? std::to_string(number) : text; }
};

inline Count operator*(const Count& a, const Count& b) {
  if (a.is_known() && b.is_known()) return {.number = a.number * b.number};
  if (a.is_one()) return b;
  if (b.is_one()) return a;
  return {.text = std::format("{} * {}", a.shown(), b.shown())};
}

}  // namespace bsp::convert
