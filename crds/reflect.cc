#include "crds/reflect.h"

namespace bsp::reflect {

std::string_view type_name(const json& j) {
  switch (j.type()) {
    case json::value_t::null:
      return "nothing";
    case json::value_t::object:
      return "an object";
    case json::value_t::array:
      return "a list";
    case json::value_t::string:
      return "a string";
    case json::value_t::boolean:
      return "true or false";
    case json::value_t::number_float:
      return "a number with a fraction";
    default:
      return "a number";
  }
}

void Reader::too_long(std::string& text, const Path& path, const Field& field) {
  if (rules_.cut)
    cut_text(text, field.most);
  else
    problem_.at(path, std::format("must have at most {} bytes", field.most));
}

void Reader::refuse_whole(const json& j, const Path& path, bool is_unsigned, std::int64_t least, std::uint64_t most) {
  const double real = j.is_number() ? j.get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(real) || real != std::trunc(real))
    return problem_.at(path, std::format("must be a whole number, not {}", type_name(j)));
  if (is_unsigned && real < 0) return problem_.at(path, std::format("must not be negative, but is {}", j.dump()));
  if (real < 0) return problem_.at(path, std::format("{} is too small; the least is {}", j.dump(), least));
  problem_.at(path, std::format("{} is too large; the most is {}", j.dump(), most));
}

void Reader::refuse_unknown(const json& object, const std::vector<std::string_view>& known, const Path& path) {
  for (const auto& [name, value] : object.items()) {
    if (std::ranges::contains(known, name)) continue;
    const std::string near = crds::nearest(name, known);
    return problem_.at(Path{&path, name},
                       "unknown field" + (near.empty() ? crds::suggestion(name, known)
                                                       : std::format("; did you mean {}?", Path{&path, near}.text())));
  }
}

}  // namespace bsp::reflect
