#include "base/json/bounded.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace bsp {

JsonSize measure(std::string_view text) {
  JsonSize size{.values = 1, .depth = 0};
  std::size_t open = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') {
      ++size.values;
      size.depth = std::max(size.depth, ++open);
    }
    if ((c == '}' || c == ']') && open > 0) --open;
    if (c == ',') ++size.values;
  }
  return size;
}

void cut_text(std::string& text, std::size_t most) {
  if (text.size() <= most) return;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
}

Result<nlohmann::json> parse_bounded(std::string_view text, const JsonLimits& limits) {
  const auto too_much = [](std::size_t has, std::string_view what, std::size_t most) {
    return fail(ErrorCode::kInvalid, std::format("JSON has {} {}, more than the limit of {}", has, what, most));
  };
  if (text.size() > limits.bytes) return too_much(text.size(), "bytes", limits.bytes);
  const JsonSize size = measure(text);
  if (size.values > limits.values) return too_much(size.values, "values", limits.values);
  if (size.depth > limits.depth) return too_much(size.depth, "levels", limits.depth);
  auto parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) return fail(ErrorCode::kInvalid, "not valid JSON");
  return parsed;
}

}  // namespace bsp
