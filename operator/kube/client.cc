#include "operator/kube/client.h"

#include <format>
#include <nlohmann/json.hpp>

#include "operator/kube/fields.h"

namespace bsp::kube {

Result<Object> Client::patch_status(const Key& key, const Object& merge) {
  BSP_TRY(Object object, get(key));
  const std::string version = metadata_text(merge, "resourceVersion");
  if (!version.empty() && version != metadata_text(object, "resourceVersion"))
    return fail(ErrorCode::kConflict, std::format("{} {} has been modified", key.kind.kind, key.name), true);
  object.merge_patch(merge);
  return update_status(object);
}

Result<Object> Client::resize_pod(const Key& /*pod*/, const Object& /*patch*/) {
  return fail(ErrorCode::kInvalid, "pods can't be resized here, only in a cluster");
}

}  // namespace bsp::kube
