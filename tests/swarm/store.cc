#include "tests/swarm/store.h"

#include <algorithm>
#include <format>

#include "operator/kube/fields.h"
#include "operator/kube/modify.h"

namespace bsp::simulation {

using kube::EventType;
using kube::Key;
using kube::Kind;
using kube::Object;

Key key_of(const Object& object) {
  return {{text_at(object, "apiVersion"), text_at(object, "kind")},
          kube::metadata_text(object, "namespace"),
          kube::metadata_text(object, "name")};
}

namespace {
std::unexpected<Error> absent(const Key& key) {
  return fail(ErrorCode::kNotFound, std::format("{} {} does not exist", key.kind.kind, key.name));
}
std::unexpected<Error> silent() { return fail(ErrorCode::kUnavailable, "the API server does not answer", true); }
}  // namespace

const Object* Store::find(const Key& key) const {
  const auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second.get();
}

Object Store::put(const Key& key, Object object, EventType type) {
  object["metadata"]["resourceVersion"] = std::to_string(++version_);
  const auto shared = std::make_shared<const Object>(std::move(object));
  if (type == EventType::kDeleted)
    objects_.erase(key);
  else
    objects_[key] = shared;
  changes_.push_back({type, shared, tick_});
  if (on_change) on_change(changes_.back());
  return *shared;
}

Result<Object> Store::create(Object object) {
  const Key key = key_of(object);
  if (find(key)) return fail(ErrorCode::kConflict, std::format("{} {} exists", key.kind.kind, key.name));
  Object& metadata = object["metadata"];
  metadata["uid"] = std::format("uid-{}", ++uids_);
  metadata["generation"] = 1;
  metadata["creationTimestamp"] = "2026-09-21T12:00:00Z";
  if (key.kind != kNode) object.erase("status");
  return put(key, std::move(object), EventType::kAdded);
}

Result<Object> Store::update(const Object& object, bool status) {
  const Key key = key_of(object);
  const Object* const before = find(key);
  if (!before) return absent(key);
  const std::string version = kube::metadata_text(object, "resourceVersion"), uid = kube::metadata_text(object, "uid");
  if ((!version.empty() && version != kube::metadata_text(*before, "resourceVersion")) ||
      (!uid.empty() && uid != kube::metadata_text(*before, "uid")))
    return fail(ErrorCode::kConflict, std::format("{} {} has been modified", key.kind.kind, key.name), true);
  Object next = *before;
  if (status) {
    next["status"] = part_at(object, "status");
  } else {
    for (const auto& [name, value] : object.items())
      if (name != "metadata" && name != "status") next[name] = value;
    for (const char* name : {"labels", "annotations", "finalizers"})
      if (const Object& value = part_at(part_at(object, "metadata"), name); value.is_null())
        next["metadata"].erase(name);
      else
        next["metadata"][name] = value;
    if (part_at(next, "spec") != part_at(*before, "spec"))
      next["metadata"]["generation"] = part_at(part_at(next, "metadata"), "generation").get<int>() + 1;
  }
  if (next == *before) return next;
  const bool goes =
      kube::is_being_deleted(next) && key.kind != kPod && part_at(part_at(next, "metadata"), "finalizers").empty();
  return put(key, std::move(next), goes ? EventType::kDeleted : EventType::kModified);
}

Result<void> Store::remove(const Key& key, const std::string& uid) {
  const Object* const before = find(key);
  if (!before) return absent(key);
  if (!uid.empty() && uid != kube::metadata_text(*before, "uid"))
    return fail(ErrorCode::kConflict, std::format("{} {} is another one", key.kind.kind, key.name));
  if (kube::is_being_deleted(*before)) return {};
  const bool runs = key.kind == kPod && !text_at(part_at(*before, "spec"), "nodeName").empty();
  if (!runs && part_at(part_at(*before, "metadata"), "finalizers").empty()) return erase(key), Result<void>();
  Object next = *before;
  next["metadata"]["deletionTimestamp"] = "2026-09-21T12:00:00Z";
  put(key, std::move(next), EventType::kModified);
  return {};
}

void Store::erase(const Key& key) {
  if (const Object* const before = find(key)) put(key, Object(*before), EventType::kDeleted);
}

std::shared_ptr<const Object> Store::at(const Key& key, int tick) const {
  std::shared_ptr<const Object> then;
  for (const Change& change : changes_)
    if (change.at <= tick && key_of(*change.object) == key)
      then = change.type == EventType::kDeleted ? nullptr : change.object;
  return then;
}

void Store::restore(int tick) {
  decltype(objects_) then;
  for (const Change& change : changes_)
    if (change.at > tick)
      break;
    else if (change.type == EventType::kDeleted)
      then.erase(key_of(*change.object));
    else
      then[key_of(*change.object)] = change.object;
  // What is restored later still needs the whole story.
  for (const auto& [key, object] : objects_)
    if (!then.contains(key)) changes_.push_back({EventType::kDeleted, object, tick_});
  for (const auto& [key, object] : then)
    if (const Object* const now = find(key); !now || *now != *object)
      changes_.push_back({EventType::kModified, object, tick_});
  objects_ = std::move(then);
  restored_at_ = changes_.size();
  version_ += 1000;
}

// --- The client ------------------------------------------------------------------------------------------------
template <class Write>
auto StoreClient::write(Write write) -> decltype(write()) {
  if (!weather_.reachable()) return silent();
  auto done = write();
  if (done && weather_.loses_answer()) return silent();
  return done;
}

Result<Object> StoreClient::get(const Key& key) {
  if (!weather_.reachable()) return silent();
  const Object* const object = store_.find(key);
  if (!object) return absent(key);
  return *object;
}

Result<std::vector<Object>> StoreClient::list(const Kind& kind, const std::string& name_space,
                                              const std::map<std::string, std::string>& labels) {
  if (!weather_.reachable()) return silent();
  std::vector<Object> found;
  for (const auto& [key, object] : store_.objects()) {
    const Object& theirs = part_at(part_at(*object, "metadata"), "labels");
    if (key.kind == kind && (name_space.empty() || key.name_space == name_space) &&
        std::ranges::all_of(labels, [&](const auto& label) { return text_at(theirs, label.first) == label.second; }))
      found.push_back(*object);
  }
  return found;
}

Result<Object> StoreClient::create(const Object& object) {
  return write([&] { return store_.create(object); });
}
Result<Object> StoreClient::update(const Object& object) {
  return write([&] { return store_.update(object, false); });
}
Result<Object> StoreClient::update_status(const Object& object) {
  return write([&] { return store_.update(object, true); });
}
Result<Object> StoreClient::patch_status(const Key& key, const Object& merge) {
  return write([&]() -> Result<Object> {
    const Object* const before = store_.find(key);
    if (!before) return absent(key);
    Object next = *before;
    next.merge_patch(merge);
    return store_.update(next, true);
  });
}
Result<Object> StoreClient::resize_pod(const Key&, const Object&) {
  return fail(ErrorCode::kInvalid, "no pod is resized in this world");
}
Result<void> StoreClient::remove(const Key& key, const std::string& uid) {
  return write([&] { return store_.remove(key, uid); });
}

// The cursor is the number of changes that have been shown.
Result<std::vector<kube::WatchEvent>> StoreClient::wait(const std::vector<Kind>& kinds, const std::string&,
                                                        std::string& cursor, std::chrono::milliseconds) {
  if (!weather_.reachable()) return silent();
  std::vector<kube::WatchEvent> events;
  std::size_t next = cursor.empty() ? 0 : std::stoul(cursor);
  if (cursor.empty() || next < store_.restored_at()) {
    cursor = std::to_string(store_.changes().size());
    return list(kinds);
  }
  for (const int until = weather_.seen_until(); next < store_.changes().size() && store_.changes()[next].at <= until;
       ++next) {
    const Store::Change& change = store_.changes()[next];
    const Key key = key_of(*change.object);
    if (!std::ranges::contains(kinds, key.kind)) continue;
    events.push_back({change.type, *change.object});
    if (change.type == EventType::kDeleted)
      shown_.erase(key);
    else
      shown_[key] = change.object;
  }
  cursor = std::to_string(next);
  return events;
}

// As kube::Reflector does it.
std::vector<kube::WatchEvent> StoreClient::list(const std::vector<Kind>& kinds) {
  const auto now = std::chrono::steady_clock::now();
  std::vector<kube::WatchEvent> events;
  for (const auto& [key, object] : shown_)
    if (const Object* const there = store_.find(key);
        !there || kube::metadata_text(*there, "uid") != kube::metadata_text(*object, "uid"))
      events.push_back({EventType::kDeleted, *object});
  shown_.clear();
  for (const auto& [key, object] : store_.objects())
    if (std::ranges::contains(kinds, key.kind)) {
      shown_[key] = object;
      events.push_back({EventType::kAdded, *object, now});
    }
  return events;
}

}  // namespace bsp::simulation
