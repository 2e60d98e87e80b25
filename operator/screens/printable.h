// Text of other people's objects, made safe for a terminal and cut to its width. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace bsp::screens {

// Characters that would control the terminal, reorder its line or are no valid UTF-8 become "?", since a tenant writes
// messages and names that an administrator reads. A newline or tab becomes a blank.
std::string printable(std::string_view text);
// The same, but newlines stay.
std::string printable_lines(std::string_view text);

// Characters, not bytes.
std::size_t width_of(std::string_view text);
// At most `columns` characters, the last of which is "…" if some are missing.
std::string cut(const std::string& text, std::size_t columns);
// Lines of at most `columns` characters, all but the first indented; longer words are cut. At most `most` lines.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns, std::size_t most = 3);

}  // namespace bsp::screens
