// Arbitrary input for `convert`, as a manifest and as a launcher's script. What it makes of either can be read again.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/json/yaml.h"
#include "crds/manifest.h"
#include "operator/convert/convert.h"
#include "operator/convert/script.h"

namespace {

using namespace bsp;

template <class T>
bool accepted(const Result<T>& result) {
  if (!result)
    check(result.error().code == ErrorCode::kInvalid && !result.error().message.empty(), "a refusal says why");
  return result.has_value();
}

void convert_manifest(std::string_view text) {
  const auto converted = convert::convert(text, "mpijob.yaml");
  if (!accepted(converted)) return;
  const auto documents = read_yaml(converted->yaml);
  if (text.contains("{{") || text.contains("${")) return;  // a template, as what was printed is one
  check(documents.has_value(), "what was printed is read");
  for (const nlohmann::json& document : *documents)
    if (document.is_object() && !std::string_view(converted->yaml).contains("ranks: $") &&
        !std::string_view(converted->yaml).contains('%') && !std::string_view(converted->yaml).contains('@') &&
        !std::string_view(converted->yaml).contains("PLACEHOLDER") &&
        document.value("kind", nlohmann::json()) == "BSPJob" &&
        document.value("apiVersion", nlohmann::json()) == "migbsp.io/v1alpha1")
      check(crds::bsp_job_from_json(document).has_value(), "a converted job is valid");
}

void read_script(const std::string& text) {
  const auto launch =
      convert::read_script(text, true, convert::Variables({{"SET", "a b"}, {"IN_POD", std::nullopt}}, 3));
  if (!accepted(launch)) return;
  const auto script = convert::preparation(*launch, launch->words, {"EXPORTED"});
  if (accepted(script)) check(convert::read_shell(*script).has_value(), "what a rank's shell gets is a script");
}

void quote(const std::string& text) {
  const auto script = convert::read_shell("program " + convert::quoted(text));
  check(script && script->size() == 1 && script->front().commands.size() == 1, "a quoted text is no command");
  const auto& words = script->front().commands.front().words;
  check(words.size() == 2 && words.back().text == text && !words.back().expanded, "but one word, and the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  convert_manifest(text);
  read_script(text);
  quote(text);
  return 0;
}
