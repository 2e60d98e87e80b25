// "1 rank", "3 ranks".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bsp {

// `one`: an English noun with a plural in -s.
inline std::string counted(std::uint64_t n, std::string_view one) {
  std::string text = std::to_string(n);
  text.append(1, ' ').append(one);
  if (n != 1) text += 's';
  return text;
}

}  // namespace bsp
