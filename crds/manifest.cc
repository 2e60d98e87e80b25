#include "crds/manifest.h"

#include <format>

#include "base/json/yaml.h"
#include "crds/names.h"

namespace bsp::crds {
namespace {

// "spec.ranks: must be …" -> the line of spec.ranks, or 0 for what isn't there.
int line_of(const std::string& message, const YamlLines& lines) {
  const auto it = lines.find(std::string_view(message).substr(0, message.find(": ")));
  return it == lines.end() ? 0 : it->second;
}

std::unexpected<Error> fail_at(std::string_view file, int line, std::string_view what) {
  return fail(ErrorCode::kInvalid,
              line > 0 ? std::format("{}:{}: {}", file, line, what) : std::format("{}: {}", file, what));
}

}  // namespace

Result<BspJob> read_bsp_job(std::string_view yaml, std::string_view file) {
  std::vector<YamlLines> lines;
  const auto documents = read_yaml(yaml, &lines);
  if (!documents) return fail_at(file, documents.error().line, documents.error().message);
  if (documents->empty())
    return fail_at(file, 0,
                   std::format("holds no object; a {} begins with the lines \"apiVersion: {}\" and \"kind: {}\"",
                               names::kBspJobKind, names::kApiVersion, names::kBspJobKind));
  if (documents->size() > 1)
    return fail_at(file, 0,
                   std::format("holds {} documents; put each into a file of its own and keep one {} in this one",
                               documents->size(), names::kBspJobKind));
  auto object = bsp_job_from_json(documents->front());
  if (!object) return fail_at(file, line_of(object.error().message, lines.front()), object.error().message);
  if (auto valid = validate(object->spec); !valid)
    return fail_at(file, line_of(valid.error().message, lines.front()), valid.error().message);
  return object;
}

}  // namespace bsp::crds
