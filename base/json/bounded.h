// JSON of another process: its size is judged on the text, before anything is allocated for it.
//
// A value costs up to some 150 bytes as nlohmann::json and as little as two as text ("0,"), so 16 MiB of text can become
// 600 MiB of memory. measure() counts what the text can become at most: no allocation, no recursion, one pass.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp {

struct JsonSize {
  std::size_t values = 0;  // at most: each value but the first has a comma or an opening bracket before it
  std::size_t depth = 0;   // of nesting; a plain value has 0
};
// Of any text, valid or not.
JsonSize measure(std::string_view text);

struct JsonLimits {
  std::size_t bytes = 64 << 10;
  std::size_t values = 4096;
  std::size_t depth = 16;
};
// At most so many bytes of a text in UTF-8, and a whole number of characters.
void cut_text(std::string& text, std::size_t most);

// Of a message that is JSON and bytes behind it. What its reader pays is bounded before anything is built: by the sizes
// that the message announces, and by the JSON's text. The defaults are for an answer that hardly says anything.
struct MessageLimits {
  JsonLimits json{};
  std::size_t body = 0;
};

// kInvalid, and nothing was built, if the text is beyond a limit; or if it is not JSON.
Result<nlohmann::json> parse_bounded(std::string_view text, const JsonLimits& limits);

}  // namespace bsp
