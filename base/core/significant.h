#pragma once

#include <cstdlib>
#include <format>

namespace bsp {

// x with that many significant decimal digits: for what people read, where the others say nothing.
inline double significant(double x, int digits) {
  return std::strtod(std::format("{:.{}g}", x, digits).c_str(), nullptr);
}

}  // namespace bsp
