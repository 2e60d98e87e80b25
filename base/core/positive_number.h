// A number above 0 as people write it, such as a price.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

namespace bsp {

// Nothing but a decimal number above 0, such as 0.81: not "0,81", "0.81 EUR" or 1e400.
inline std::optional<double> positive_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || !(number > 0) || !std::isfinite(number))
    return std::nullopt;
  return number;
}

}  // namespace bsp
