// The one seam between the operator and the store of its objects.
//
// Implemented by operator/local/store.h (files on one machine) and operator/kube/api_client.h (the HTTPS client of a
// Kubernetes API server). Objects are JSON exactly as kubectl shows them: apiVersion, kind,
// metadata{name, namespace, uid, resourceVersion, generation, labels, annotations, ownerReferences,
// finalizers, creationTimestamp, deletionTimestamp}, spec, status. This file knows no BSPJob.
#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <map>
#include <optional>
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
  // Set if it is of a list, to when that was asked for: what was known before counts no more, even of a later version, since a
  // store that was restored from a backup has gone back.
  std::optional<std::chrono::steady_clock::time_point> listed = {};
};

class Client {
 public:
  virtual ~Client() = default;

  // kNotFound if it doesn't exist.
  virtual Result<Object> get(const Key& key) = 0;
  // `labels`: all pairs must match. Sorted by name. Here and in wait(), an empty namespace means all namespaces that
  // this client sees.
  virtual Result<std::vector<Object>> list(const Kind& kind, const std::string& name_space,
                                           const std::map<std::string, std::string>& labels = {}) = 0;
  // kConflict if it exists. The result has uid, resourceVersion and creationTimestamp.
  virtual Result<Object> create(const Object& object) = 0;
  // Replaces metadata (labels, annotations, finalizers) and spec, but not status. kConflict if metadata.resourceVersion
  // is given and stale. If nothing changes, resourceVersion stays.
  virtual Result<Object> update(const Object& object) = 0;
  // Replaces status only, by the same rules.
  virtual Result<Object> update_status(const Object& object) = 0;
  // JSON merge patch (RFC 7386) of `status`, with metadata.resourceVersion for optimistic locking: only the changes go
  // over the wire.
  virtual Result<Object> patch_status(const Key& key, const Object& merge) = 0;
  // Strategic merge patch of a pod's subresource `resize`: what its containers are to have from now on.
  virtual Result<Object> resize_pod(const Key& pod, const Object& patch) = 0;
  // With finalizers: sets deletionTimestamp; removing the last finalizer deletes the object.
  // Pods: sets deletionTimestamp; the node (kubelet) deletes the object once the pod has terminated.
  // kConflict if the object of that name has another uid; "" matches any.
  virtual Result<void> remove(const Key& key, const std::string& uid) = 0;
  // Waits up to `timeout` for changes since the last call with this cursor. The first call (empty cursor) returns
  // everything as kAdded. The cursor is opaque.
  virtual Result<std::vector<WatchEvent>> wait(const std::vector<Kind>& kinds, const std::string& name_space,
                                               std::string& cursor, std::chrono::milliseconds timeout) = 0;
  // The same without holding a large cluster in memory at once: the first list may come in parts, and `complete` is
  // true once all of it has been returned. Use only one of the two functions with a cursor.
  virtual Result<std::vector<WatchEvent>> wait_part(const std::vector<Kind>& kinds, const std::string& name_space,
                                                    std::string& cursor, std::chrono::milliseconds timeout,
                                                    bool& complete) {
    auto events = wait(kinds, name_space, cursor, timeout);
    complete = events.has_value();
    return events;
  }
};

}  // namespace bsp::kube
