// Whole numbers as a shell computes them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace bsp::convert {

// What $((text)) is. nullopt if it isn't made of + - * / % ( ), numbers and variables of which `value` knows the number.
[[nodiscard]] std::optional<std::int64_t> compute(
    std::string_view text, const std::function<std::optional<std::string>(std::string_view)>& value);

}  // namespace bsp::convert
