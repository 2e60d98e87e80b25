// Arbitrary input for the manifest parser. What it accepts can be stored and read again as the same object.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/json/yaml.h"
#include "crds/manifest.h"
#include "crds/rankmigration.h"

namespace {

// As the operator stores it: through JSON text.
template <class Object>
void store_and_read(const bsp::Result<Object>& object, bsp::Result<Object> (*from_json)(const nlohmann::json&)) {
  if (!object) {
    bsp::check(object.error().code == bsp::ErrorCode::kInvalid && !object.error().message.empty(),
               "a refusal says why");
    // The message goes to a status and to events.
    bsp::check(!nlohmann::json(object.error().message).dump().empty(), "and can be reported");
    return;
  }
  nlohmann::json stored;
  to_json(stored, *object);
  const auto again = from_json(nlohmann::json::parse(stored.dump()));
  bsp::check(again.has_value(), "what was read can be stored and read");
  nlohmann::json second;
  to_json(second, *again);
  bsp::check(second == stored, "and is the same");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  store_and_read(bsp::crds::read_bsp_job(text, "job.yaml"), bsp::crds::bsp_job_from_json);
  if (const auto documents = bsp::read_yaml(text))
    for (const nlohmann::json& document : *documents) {
      store_and_read(bsp::crds::rank_migration_from_json(document), bsp::crds::rank_migration_from_json);
      const auto again = bsp::read_yaml(bsp::write_yaml(document));
      bsp::check(again.has_value(), "what was printed is read");
    }
  return 0;
}
