#include "base/core/mount_table.h"

#include <charconv>
#include <sstream>

namespace bsp {
namespace {

// The kernel writes a space as \040, and so on.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 4], code, 8).ptr == &text[i + 4]) {
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::vector<MountEntry> mounts_in(std::string_view mountinfo) {
  std::vector<MountEntry> mounts;
  std::istringstream lines{std::string(mountinfo)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, path, options, type;
    for (int field = 1; field <= 4; ++field) words >> word;
    if (!(words >> path >> options)) continue;
    while (words >> word && word != "-") continue;
    words >> type;
    mounts.push_back({unescaped(path), options == "rw" || options.starts_with("rw,"), std::move(type)});
  }
  return mounts;
}

}  // namespace bsp
