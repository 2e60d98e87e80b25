// Read, change, write, and retry on a conflict: optimistic locking for any kube::Client.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "operator/kube/client.h"

namespace bsp::kube {

// `change` gets the current object and returns whether to write it; it may be called several times. kConflict only if
// other writers win 8 times in a row.
Result<Object> modify(Client& client, const Key& key, const std::function<bool(Object&)>& change);
// The same for its status.
Result<Object> modify_status(Client& client, const Key& key, const std::function<bool(Object&)>& change);

// The JSON merge patch that turns `before` into `after`. nullopt if none can: a null in `after` would mean "remove".
std::optional<Object> merge_patch(const Object& before, const Object& after);

bool has_finalizer(const Object& object, const std::string& finalizer);
bool is_being_deleted(const Object& object);
// Writes nothing if nothing changes. Succeeds if the object no longer exists. Leaves a new object of the same name alone.
Result<void> remove_finalizer(Client& client, const Key& key, const std::string& uid, const std::string& finalizer);

}  // namespace bsp::kube
