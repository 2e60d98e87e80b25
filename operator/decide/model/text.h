// Values of a plan as text.
#pragma once

#include <cmath>
#include <format>
#include <string>

namespace bsp::decide {

// Milliseconds below 1 s, else seconds: three significant figures are what a prediction is good for.
inline std::string seconds(double s) {
  if (s != 0 && std::abs(s) < 1) return std::format("{:.3g} ms", s * 1e3);
  return std::format("{:.4g} s", s);
}

}  // namespace bsp::decide
