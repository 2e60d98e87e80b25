// The frame of every object: apiVersion, kind, metadata, spec, status. Used by the .cc files of crds/.
#pragma once

#include "crds/names.h"
#include "crds/reflect.h"

namespace bsp::crds {

// apiVersion and kind must be ours; names of the top level are checked like those of spec.
Result<void> check_frame(const nlohmann::json& j, std::string_view kind);
Result<void> check_metadata(const ObjectMeta& metadata);

template <class Spec, class Status>
Result<void> read_object(const nlohmann::json& j, std::string_view kind, ObjectMeta& metadata, Spec& spec,
                         Status& status) {
  BSP_CHECK_OK(check_frame(j, kind));
  reflect::Problem problem;
  if (const auto m = j.find("metadata"); m != j.end())
    reflect::read(*m, metadata, "metadata", /*strict=*/true, problem);
  reflect::read(j.at("spec"), spec, "spec", /*strict=*/true, problem);
  if (const auto s = j.find("status"); s != j.end() && !s->is_null())
    reflect::read(*s, status, "status", /*strict=*/false, problem);
  if (problem) return fail(ErrorCode::kInvalid, problem.message);
  return check_metadata(metadata);
}

}  // namespace bsp::crds
