// Read, change, write, and again if somebody else was faster: optimistic locking for any kube::Client.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "operator/kube/client.h"

namespace bsp::kube {

// `change` gets the object as it is now and returns whether anything is to be written. It may be called several
// times. Ends with kConflict only if the object changes faster than it can be written.
Result<Object> modify(Client& client, const Key& key, const std::function<bool(Object&)>& change);
// The same for its status.
Result<Object> modify_status(Client& client, const Key& key, const std::function<bool(Object&)>& change);

// The JSON merge patch that makes `after` of `before`; nothing where there is none, for a null of `after` would mean "remove".
std::optional<Object> merge_patch(const Object& before, const Object& after);

bool has_finalizer(const Object& object, const std::string& finalizer);
bool is_being_deleted(const Object& object);
// Neither writes if nothing has to change. An object that is being deleted takes no new finalizer: kConflict.
Result<Object> add_finalizer(Client& client, const Key& key, const std::string& finalizer);
// An object that is gone needs no finalizer removed: fine. Another one that has its name by now keeps its own.
Result<void> remove_finalizer(Client& client, const Key& key, const std::string& uid, const std::string& finalizer);

}  // namespace bsp::kube
