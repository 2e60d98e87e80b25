#include "operator/cli/prices.h"

#include <format>
#include <ranges>
#include <string_view>
#include <utility>

#include "base/core/positive_number.h"

namespace bsp::cli {

Setter prices(std::map<std::string, double>& into, std::string example) {
  return [&into, example = std::move(example)](const std::string& value) -> std::string {
    into.clear();
    for (const auto each : std::views::split(value, ',')) {
      const std::string part(std::string_view{each});
      const std::size_t equals = part.find('=');
      const auto price = positive_number(equals == std::string::npos ? "" : part.substr(equals + 1));
      if (equals == 0 || !price || !into.emplace(part.substr(0, equals), *price).second)
        return std::format("\"{}\" must be NAME=PRICE with each name once and a price above 0, for example {}", part,
                           example);
    }
    return "";
  };
}

}  // namespace bsp::cli
