// Any object that a tenant may write (BSPJob, Pod, Node, as YAML or JSON) through everything that the operator derives
// from it: tests/unit/reconcile/whole_way.h.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json/fields.h"
#include "base/json/yaml.h"
#include "tests/unit/reconcile/whole_way.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace hostile = bsp::reconcile::hostile;
  const auto documents = bsp::read_yaml({reinterpret_cast<const char*>(data), size});
  if (!documents) return 0;
  for (const nlohmann::json& object : *documents) {
    const std::string kind = bsp::text_at(object, "kind");
    if (kind == "Node")
      hostile::use_node(object);
    else if (kind == "Pod")
      hostile::use_pod(object);
    else if (const std::string wrong = hostile::use_job(object); !wrong.empty())
      bsp::check(false, "a refusal names the field and the remedy: " + wrong);
  }
  return 0;
}
