#pragma once

#include <cstdlib>
#include <format>

namespace bsp {

// x rounded to that many significant decimal digits, for output that people read.
inline double significant(double x, int digits) {
  return std::strtod(std::format("{:.{}g}", x, digits).c_str(), nullptr);
}

}  // namespace bsp
