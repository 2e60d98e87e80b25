// Parses another process's JSON after checking the text's size, before anything is allocated for it.
//
// A value costs up to some 150 bytes as nlohmann::json but as little as two as text ("0,"), so 16 MiB of text can take
// 600 MiB of memory. measure() gives an upper bound in one pass, without allocation or recursion.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp {

struct JsonSize {
  std::size_t values = 0;  // upper bound: every value but the first follows a comma or an opening bracket
  std::size_t depth = 0;   // of nesting; 0 for a scalar
};
// Accepts any text, valid JSON or not.
JsonSize measure(std::string_view text);

struct JsonLimits {
  std::size_t bytes = 64 << 10;
  std::size_t values = 4096;
  std::size_t depth = 16;
};
// Truncates UTF-8 text to at most `most` bytes, at a character boundary.
void cut_text(std::string& text, std::size_t most);

// Limits of a message that is JSON followed by raw bytes. They bound the reader's memory before anything is parsed: by
// the sizes that the message announces, and by the JSON's text. The defaults suit an answer with hardly any content.
struct MessageLimits {
  JsonLimits json{};
  std::size_t body = 0;
};

// kInvalid if the text isn't JSON or exceeds a limit; the limits are checked before parsing.
Result<nlohmann::json> parse_bounded(std::string_view text, const JsonLimits& limits);

}  // namespace bsp
