#include "operator/convert/resources.h"

#include <array>
#include <charconv>
#include <cmath>
#include <format>
#include <nlohmann/json.hpp>
#include <string_view>

#include "crds/meta.h"
#include "operator/convert/source.h"

namespace bsp::convert {
namespace {

struct Unit {
  std::string_view suffix, smaller;
  double times;
};

// The unit below each one, so that rounding up adds little.
constexpr auto kUnits = std::to_array<Unit>({{"", "m", 1000},
                                             {"n", "n", 1},
                                             {"u", "n", 1000},
                                             {"m", "m", 1},
                                             {"k", "", 1000},
                                             {"M", "k", 1000},
                                             {"G", "M", 1000},
                                             {"T", "G", 1000},
                                             {"P", "T", 1000},
                                             {"E", "P", 1000},
                                             {"Ki", "", 1024},
                                             {"Mi", "Ki", 1024},
                                             {"Gi", "Ki", 1024 * 1024},
                                             {"Ti", "Mi", 1024 * 1024},
                                             {"Pi", "Gi", 1024 * 1024},
                                             {"Ei", "Ti", 1024 * 1024}});

// Pages aren't divided. `size` is the resource's, such as 2Mi.
Result<std::string> divided_pages(std::string_view size, const std::string& text, std::uint64_t parts) {
  BSP_TRY(const std::uint64_t bytes, crds::quantity_value(text));
  std::uint64_t number = 0;
  const char* unit = std::from_chars(size.data(), size.data() + size.size(), number).ptr;
  const auto page = crds::quantity_value(size);
  if (!page || *page == 0 || number == 0)
    return fail(ErrorCode::kInvalid, "has pages of an unknown size: name it hugepages-2Mi or hugepages-1Gi");
  const std::uint64_t pages = (bytes + *page - 1) / *page;
  return std::format("{}{}", (pages + parts - 1) / parts * number, std::string(unit, size.data() + size.size()));
}

}  // namespace

Result<std::string> divided(std::string_view resource, const nlohmann::json& quantity, std::uint64_t parts) {
  const std::string text = text_of(quantity);
  constexpr std::string_view kPages = "hugepages-";
  if (resource.starts_with(kPages)) return divided_pages(resource.substr(kPages.size()), text, parts);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const Unit& unit : kUnits)
    if (error == std::errc() && unit.suffix == suffix) {
      const double whole = value / static_cast<double>(parts);
      if (std::floor(whole) == whole) return std::format("{:.0f}{}", whole, unit.suffix);
      return std::format("{:.0f}{}", std::ceil(whole * unit.times), unit.smaller);
    }
  return fail(ErrorCode::kInvalid, std::format("is \"{}\": must be a quantity such as 2, 500m or 4Gi", text));
}

}  // namespace bsp::convert
