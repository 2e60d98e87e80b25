// The one seam between the operator and where its objects live.
//
// Implemented by operator/local/store.h (files, one machine) and by operator/kube/api_client.h (the HTTPS
// client of a Kubernetes API server). Objects are JSON exactly as kubectl shows them: apiVersion, kind,
// metadata{name, namespace, uid, resourceVersion, generation, labels, annotations, ownerReferences,
// finalizers, creationTimestamp, deletionTimestamp}, spec, status. This file knows no BSPJob.
#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"

namespace bsp::kube {

using Object = nlohmann::json;

struct Kind {
  std::string api_version;  // "v1", "migbsp.io/v1alpha1"
  std::string kind;         // "Pod"
  auto operator<=>(const Kind&) const = default;
};

struct Key {
  Kind kind;
  std::string name_space;
  std::string name;
  auto operator<=>(const Key&) const = default;
};

enum class EventType { kAdded, kModified, kDeleted };

struct WatchEvent {
  EventType type;
  Object object;
};

class Client {
 public:
  virtual ~Client() = default;

  // kNotFound if there is none.
  virtual Result<Object> get(const Key& key) = 0;
  // Label selector: all pairs must match. Sorted by name. Here and in wait() the empty namespace means all that
  // this client sees.
  virtual Result<std::vector<Object>> list(const Kind& kind, const std::string& name_space,
                                           const std::map<std::string, std::string>& labels = {}) = 0;
  // kConflict if it exists. The result carries uid, resourceVersion, creationTimestamp.
  virtual Result<Object> create(const Object& object) = 0;
  // Replaces metadata (labels, annotations, finalizers) and spec; status stays. kConflict if
  // metadata.resourceVersion is given and stale. No new resourceVersion if nothing changes.
  virtual Result<Object> update(const Object& object) = 0;
  // Replaces status only. Same rules.
  virtual Result<Object> update_status(const Object& object) = 0;
  // JSON merge patch (RFC 7386) with members of `status`, and metadata.resourceVersion for the same lock: only what changes goes
  // over the wire. Here by way of update_status().
  virtual Result<Object> patch_status(const Key& key, const Object& merge);
  // With finalizers: sets deletionTimestamp; the object goes when the last finalizer is removed.
  // Pods: sets deletionTimestamp; the node (kubelet) removes the object when the pod is gone.
  // Only the object with that uid: kConflict if another one has its name by now. "": whichever has it.
  virtual Result<void> remove(const Key& key, const std::string& uid) = 0;
  // Blocks up to timeout for changes since the last call with this cursor; the first call (empty
  // cursor) returns everything as kAdded. The cursor is opaque.
  virtual Result<std::vector<WatchEvent>> wait(const std::vector<Kind>& kinds, const std::string& name_space,
                                               std::string& cursor, std::chrono::milliseconds timeout) = 0;
  // The same for who does not want a large cluster in memory at once: the beginning may come in parts, and
  // `complete` tells that all of it has been given by now. Use one of the two for a cursor.
  virtual Result<std::vector<WatchEvent>> wait_part(const std::vector<Kind>& kinds, const std::string& name_space,
                                                    std::string& cursor, std::chrono::milliseconds timeout,
                                                    bool& complete) {
    auto events = wait(kinds, name_space, cursor, timeout);
    complete = events.has_value();
    return events;
  }
};

}  // namespace bsp::kube
