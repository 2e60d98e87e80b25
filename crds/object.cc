#include "crds/object.h"

namespace bsp::crds {

using nlohmann::json;

Result<void> check_frame(const json& j, std::string_view kind) {
  if (!j.is_object())
    return fail(ErrorCode::kInvalid, std::format("the manifest must be an object, not {}", reflect::type_name(j)));
  const std::vector<std::string_view> known{"apiVersion", "kind", "metadata", "spec", "status"};
  auto unknown = [&]() -> Result<void> {
    for (const auto& [name, value] : j.items())
      if (std::ranges::find(known, name) == known.end())
        return fail(ErrorCode::kInvalid, std::format("{}: unknown field{}", name, suggestion(name, known)));
    return {};
  };
  for (const auto& [name, wanted] : {std::pair{"apiVersion", names::kApiVersion}, {"kind", kind}}) {
    const auto it = j.find(name);
    if (it == j.end()) {
      BSP_CHECK_OK(unknown());  // "Kind: unknown, did you mean kind?" explains why kind is missing
      return fail(ErrorCode::kInvalid, std::format("{}: is required; write {}: {}", name, name, wanted));
    }
    if (*it != wanted)
      return fail(ErrorCode::kInvalid, std::format("{}: must be {}, not {}", name, wanted, it->dump()));
  }
  BSP_CHECK_OK(unknown());
  if (!j.contains("spec") || j.at("spec").is_null()) return fail(ErrorCode::kInvalid, "spec: is required");
  return {};
}

Result<void> check_metadata(const ObjectMeta& metadata) {
  if (metadata.name.empty()) return fail(ErrorCode::kInvalid, "metadata.name: is required");
  auto label = [](const std::string& text) {
    if (text.size() > 63 || text.front() == '-' || text.back() == '-') return false;
    return std::ranges::all_of(text,
                               [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
  };
  for (const auto& [field, text] : {std::pair{"name", &metadata.name}, {"namespace", &metadata.name_space}})
    if (!text->empty() && !label(*text))
      return fail(ErrorCode::kInvalid,
                  std::format("metadata.{}: \"{}\" must be 1 to 63 of a-z, 0-9 and '-', beginning and "
                              "ending with a letter or digit",
                              field, *text));
  return {};
}

}  // namespace bsp::crds
