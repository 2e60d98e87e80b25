#include "operator/convert/resources.h"

#include <array>
#include <charconv>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>
#include <string_view>

namespace bsp::convert {
namespace {

struct Unit {
  std::string_view suffix, smaller;
  double times;
};

// The unit below each one, so that rounding up adds little.
constexpr auto kUnits = std::to_array<Unit>({{"", "m", 1000},
                                             {"m", "m", 1},
                                             {"k", "", 1000},
                                             {"M", "k", 1000},
                                             {"G", "M", 1000},
                                             {"T", "G", 1000},
                                             {"Ki", "", 1024},
                                             {"Mi", "Ki", 1024},
                                             {"Gi", "Ki", 1024 * 1024},
                                             {"Ti", "Mi", 1024 * 1024}});

}  // namespace

Result<std::string> divided(const nlohmann::json& quantity, std::uint32_t parts) {
  const std::string text = quantity.is_string() ? quantity.get<std::string>() : quantity.dump();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& unit : kUnits)
    if (error == std::errc() && unit.suffix == suffix) {
      const double whole = value / parts;
      if (std::floor(whole) == whole) return std::format("{:.0f}{}", whole, unit.suffix);
      return std::format("{:.0f}{}", std::ceil(whole * unit.times), unit.smaller);
    }
  return fail(ErrorCode::kInvalid, std::format("is \"{}\": must be a quantity such as 2, 500m or 4Gi", text));
}

}  // namespace bsp::convert
