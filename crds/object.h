// The frame of every object: apiVersion, kind, metadata, spec, status. Used by the .cc files of crds/.
#pragma once

#include "crds/fields.h"
#include "crds/names.h"
#include "crds/reflect.h"
#include "crds/stored_status.h"

namespace bsp::crds {

// apiVersion and kind must be ours; names of the top level are checked like those of spec.
Result<void> check_frame(const nlohmann::json& j, std::string_view kind);
Result<void> check_metadata(const ObjectMeta& metadata);

template <class Spec, class Status>
Result<void> read_object(const nlohmann::json& j, std::string_view kind, ObjectMeta& metadata, Spec& spec,
                         Status& status) {
  BSP_CHECK_OK(check_frame(j, kind));
  // Other programs may extend a status, but not a spec.
  reflect::Reader strict({.strict = true}), lenient({});
  if (const auto m = j.find("metadata"); m != j.end()) strict.read(*m, metadata, {nullptr, "metadata"});
  strict.read(j.at("spec"), spec, {nullptr, "spec"});
  if (const auto s = j.find("status"); s != j.end() && !s->is_null()) {
    BSP_TRY(const auto whole, whole_status(*s));
    lenient.read(whole, status, {nullptr, "status"});
  }
  for (reflect::Reader* reader : {&strict, &lenient})
    if (reader->problem()) return fail(ErrorCode::kInvalid, reader->problem().message);
  return check_metadata(metadata);
}

}  // namespace bsp::crds
