#include "operator/screens/printable.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace bsp::screens {
namespace {

// The character that begins at `at`, and moves `at` behind it. nullopt for a byte that begins none.
std::optional<char32_t> next_character(std::string_view text, std::size_t& at) {
  const auto first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  const std::size_t more = first >= 0xf0 && first < 0xf5 ? 3 : first >= 0xe0 ? 2 : first >= 0xc2 ? 1 : 0;
  if (more == 0 || first >= 0xf5 || at + more > text.size()) return std::nullopt;
  char32_t value = first & (0x3fu >> more);
  for (std::size_t i = 0; i < more; ++i) {
    const auto byte = static_cast<unsigned char>(text[at + i]);
    if ((byte & 0xc0) != 0x80) return std::nullopt;
    value = value << 6 | (byte & 0x3fu);
  }
  const char32_t least = more == 1 ? 0x80 : more == 2 ? 0x800 : 0x10000;
  if (value < least || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return std::nullopt;
  at += more;
  return value;
}

// C0, DEL, C1, line and paragraph separators, what reorders or hides text, and what is no character at all.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff0 && c <= 0xfffb) ||
         (c & 0xfffe) == 0xfffe || (c >= 0xe0000 && c < 0xe1000);
}

// The first `characters` of them.
std::string_view first(std::string_view text, std::size_t characters) {
  std::size_t at = 0;
  while (at < text.size() && characters > 0) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
    --characters;
  }
  return text.substr(0, at);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const auto c = next_character(text, at);
    if (c == U'\n' || c == U'\t')
      out += ' ';
    else if (!c || is_control(*c))
      out += '?';
    else
      out += text.substr(begin, at - begin);
  }
  return out;
}

std::string printable_lines(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += printable(text.substr(at, end - at));
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

std::string cut(const std::string& text, std::size_t columns) {
  if (width_of(text) <= columns || columns == 0) return text;
  return std::string(first(text, columns - 1)) + "…";
}

std::vector<std::string> wrapped(const std::string& text, std::size_t columns, std::size_t most) {
  std::vector<std::string> lines;
  const std::size_t indent = std::min(text.find_first_not_of(' '), text.size());
  const std::string margin(std::min(indent + 2, columns / 2), ' ');
  std::string line = text.substr(0, indent);
  bool empty = true;  // no word in the line
  for (std::size_t at = indent; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!empty && width_of(line) + 1 + width_of(word) > columns) {
      if (lines.size() + 1 == most) {  // the rest doesn't fit
        lines.push_back(cut(line + " " + text.substr(at), columns));
        return lines;
      }
      lines.push_back(cut(line, columns));  // a word may be longer
      line = margin;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
    at = end + 1;
  }
  lines.push_back(cut(line, columns));
  return lines;
}

}  // namespace bsp::screens
