#include "operator/kube/modify.h"

#include <algorithm>

#include "operator/kube/fields.h"

namespace bsp::kube {
namespace {

constexpr int kModifyTries = 8;

Result<Object> modify_with(Client& client, const Key& key, const std::function<bool(Object&)>& change,
                           Result<Object> (Client::*write)(const Object&)) {
  for (int tries = 1;; ++tries) {
    BSP_TRY(Object object, client.get(key));
    if (!change(object)) return object;
    auto written = (client.*write)(object);
    if (written || written.error().code != ErrorCode::kConflict || tries == kModifyTries) return written;
  }
}

Object differences(const Object& before, const Object& after) {
  Object patch = Object::object();
  for (const auto& [name, value] : before.items())
    if (!after.contains(name)) patch[name] = nullptr;
  for (const auto& [name, value] : after.items()) {
    const auto old = before.find(name);
    if (old == before.end())
      patch[name] = value;
    else if (*old != value)
      patch[name] = old->is_object() && value.is_object() ? differences(*old, value) : value;
  }
  return patch;
}

}  // namespace

std::optional<Object> merge_patch(const Object& before, const Object& after) {
  if (!before.is_object() || !after.is_object()) return std::nullopt;
  Object patch = differences(before, after);
  Object patched = before;
  patched.merge_patch(patch);
  if (patched != after) return std::nullopt;
  return patch;
}

Result<Object> modify(Client& client, const Key& key, const std::function<bool(Object&)>& change) {
  return modify_with(client, key, change, &Client::update);
}

Result<Object> modify_status(Client& client, const Key& key, const std::function<bool(Object&)>& change) {
  return modify_with(client, key, change, &Client::update_status);
}

bool has_finalizer(const Object& object, const std::string& finalizer) {
  const Object& all = part_at(part_at(object, "metadata"), "finalizers");
  return all.is_array() && std::ranges::find(all, Object(finalizer)) != all.end();
}

bool is_being_deleted(const Object& object) { return !metadata_text(object, "deletionTimestamp").empty(); }

Result<void> remove_finalizer(Client& client, const Key& key, const std::string& uid, const std::string& finalizer) {
  const auto done = modify(client, key, [&](Object& object) {
    if (metadata_text(object, "uid") != uid || !has_finalizer(object, finalizer)) return false;
    Object& all = object["metadata"]["finalizers"];
    for (std::size_t i = all.size(); i-- > 0;)
      if (all[i] == finalizer) all.erase(i);
    return true;
  });
  if (!done && done.error().code != ErrorCode::kNotFound) return std::unexpected(done.error());
  return {};
}

}  // namespace bsp::kube
