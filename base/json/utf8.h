// A program's bytes as text: JSON holds only UTF-8, and a program writes what it likes.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace bsp {

// Length of the text's first character; 0 if it isn't valid UTF-8. Follows table 3-7 of the Unicode standard.
inline std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0), second = byte(1);
  if (text.empty()) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF)
    return follows(1) && follows(2) && !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second > 0x9F) ? 3 : 0;
  if (first >= 0xF0 && first <= 0xF4)
    return follows(1) && follows(2) && follows(3) && !(first == 0xF0 && second < 0x90) &&
                   !(first == 0xF4 && second > 0x8F)
               ? 4
               : 0;
  return 0;
}

// The one function for what a program wrote: each byte that isn't part of a character becomes U+FFFD.
inline std::string as_text(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    text += length > 0 ? bytes.substr(0, length) : std::string_view("\xEF\xBF\xBD");
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

}  // namespace bsp
