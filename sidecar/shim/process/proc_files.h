// What /proc says of this process. What can't be read is never taken for nothing: a caller that gets no answer postpones the gate or
// ends the rank, by name.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace bsp::shim {

// A file's contents, also of a small one elsewhere; nothing, with errno, if it can't be read.
std::optional<std::string> read_text(const std::string& path);

// The numbers among the names in a directory; nothing, with errno, if it can't be read.
std::optional<std::vector<int>> numbers_in(const char* directory);

// Why descriptors couldn't be listed, by errno.
std::string why_unlisted();

// For the time between the close of an epoch and the next one, when no gate can be postponed any more: what numbers_in() and
// read_text() return, or exits with a message. The file of a thread or descriptor that has ended meanwhile is "".
std::vector<int> numbers_needed(const char* directory);
std::string text_needed(const std::string& path);

}  // namespace bsp::shim
