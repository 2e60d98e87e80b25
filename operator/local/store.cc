#include "operator/local/store.h"

#include <sys/random.h>

#include <algorithm>
#include <filesystem>
#include <format>

#include "base/core/clock.h"
#include "base/core/fault.h"
#include "base/core/read_file.h"
#include "base/json/fields.h"
#include "operator/local/files.h"
#include "operator/local/store_watch.h"

namespace bsp::local {
namespace fs = std::filesystem;
using kube::Key;
using kube::Kind;
using kube::Object;

namespace {

bool name_is_good(const std::string& name) {
  if (name.empty() || name.size() > 253 || name.front() == '.' || name.front() == '-') return false;
  return std::ranges::all_of(
      name, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; });
}

std::string new_uid() {
  unsigned char b[16];
  check(::getrandom(b, sizeof b, 0) == sizeof b, "getrandom gives 16 bytes");
  b[6] = (b[6] & 0x0f) | 0x40;  // RFC 4122, version 4
  b[8] = (b[8] & 0x3f) | 0x80;
  std::string uid;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) uid += '-';
    uid += std::format("{:02x}", b[i]);
  }
  return uid;
}

std::string describe(const Key& key) { return std::format("{} {}/{}", key.kind.kind, key.name_space, key.name); }

bool is_being_deleted(const Object& object) {
  return !part_at(part_at(object, "metadata"), "deletionTimestamp").is_null();
}

bool has_finalizers(const Object& object) { return !part_at(part_at(object, "metadata"), "finalizers").empty(); }

// An object without status and metadata.
Object without_server_fields(Object object) {
  object.erase("status");
  object.erase("metadata");
  return object;
}

// The object may have been recreated under the same name since the caller read it.
Result<void> check_uid(const std::string& uid, const Object& current, const Key& key) {
  if (uid.empty() || uid == text_at(part_at(current, "metadata"), "uid")) return {};
  return fail(ErrorCode::kConflict, std::format("{} no longer has uid {}", describe(key), uid), true);
}

Result<void> check_version(const Object& given, const Object& current, const Key& key) {
  const std::string version = text_at(part_at(given, "metadata"), "resourceVersion");
  if (!version.empty() && version != text_at(part_at(current, "metadata"), "resourceVersion"))
    return fail(ErrorCode::kConflict,
                std::format("{} has changed since version {}: read it again", describe(key), version), true);
  return check_uid(text_at(part_at(given, "metadata"), "uid"), current, key);
}

Result<Object> parse(const std::string& path, const std::string& content) {
  Object object = Object::parse(content, nullptr, /*allow_exceptions=*/false);
  if (!part_at(object, "metadata").is_object()) return fail(ErrorCode::kFailed, path + " is not an object; remove it");
  return object;
}

}  // namespace

Result<Key> key_of(const Object& object) {
  if (!object.is_object()) return fail(ErrorCode::kInvalid, "not an object");
  const Object& metadata = part_at(object, "metadata");
  if (!metadata.is_object()) return fail(ErrorCode::kInvalid, "metadata: is required");
  Key key{{text_at(object, "apiVersion"), text_at(object, "kind")},
          text_at(metadata, "namespace"),
          text_at(metadata, "name")};
  if (key.kind.api_version.empty()) return fail(ErrorCode::kInvalid, "apiVersion: is required");
  if (key.kind.kind.empty()) return fail(ErrorCode::kInvalid, "kind: is required");
  if (key.name.empty()) return fail(ErrorCode::kInvalid, "metadata.name: is required");
  return key;
}

bool matches(const Object& object, const std::map<std::string, std::string>& labels) {
  const Object& have = part_at(part_at(object, "metadata"), "labels");
  return std::ranges::all_of(labels, [&](const auto& pair) { return part_at(have, pair.first) == pair.second; });
}

Store::Store(StoreOptions options) : options_(std::move(options)), watches_(std::make_unique<Watches>()) {}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(StoreOptions options) {
  if (!name_is_good(options.name_space))
    return fail(ErrorCode::kInvalid,
                std::format("namespace \"{}\" must consist of a-z, 0-9 and '-'", options.name_space));
  std::unique_ptr<Store> store(new Store(std::move(options)));
  if (auto made = make_directories(store->directory()); !made)
    return std::unexpected(made.error().in("opening the object store"));
  return store;
}

std::string Store::directory() const { return namespace_dir(options_.name_space); }

std::string Store::namespace_dir(const std::string& name_space) const {
  return std::format("{}/{}", options_.root, name_space.empty() ? options_.name_space : name_space);
}

std::string Store::kind_dir(const Kind& kind, const std::string& name_space) const {
  return std::format("{}/{}", namespace_dir(name_space), kind.kind);
}

Result<std::string> Store::file_of(const Key& key) const {
  if (!name_is_good(key.name))
    return fail(ErrorCode::kInvalid,
                std::format("metadata.name: \"{}\" must consist of a-z, 0-9, '-' and '.'", key.name));
  if (!key.name_space.empty() && !name_is_good(key.name_space))
    return fail(ErrorCode::kInvalid, std::format("metadata.namespace: \"{}\" is not a valid name", key.name_space));
  return std::format("{}/{}.json", kind_dir(key.kind, key.name_space), key.name);
}

Result<Object> Store::get(const Key& key) {
  BSP_TRY(const std::string path, file_of(key));
  auto content = read_file(path);
  if (!content) {
    if (content.error().code != ErrorCode::kNotFound) return std::unexpected(content.error());
    return fail(ErrorCode::kNotFound, describe(key) + " does not exist");
  }
  return parse(path, *content);
}

Result<std::vector<Object>> Store::list(const Kind& kind, const std::string& name_space,
                                        const std::map<std::string, std::string>& labels) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(kind_dir(kind, name_space), error))
    if (is_object_file(entry.path().filename().string())) paths.push_back(entry.path().string());
  std::ranges::sort(paths);
  std::vector<Object> objects;
  for (const std::string& path : paths) {
    auto content = read_file(path);
    if (!content && content.error().code == ErrorCode::kNotFound) continue;  // deleted meanwhile
    if (!content) return std::unexpected(content.error());
    BSP_TRY(Object object, parse(path, *content));
    if (matches(object, labels)) objects.push_back(std::move(object));
  }
  return objects;
}

// Call it with the lock held.
Result<void> Store::write(const Key& key, Object& object) {
  const std::string revision_path = namespace_dir(key.name_space) + "/.revision";
  std::uint64_t revision = 0;
  if (auto content = read_file(revision_path)) revision = std::strtoull(content->c_str(), nullptr, 10);
  ++revision;
  // Store the number before the object: if we are killed in between, a number is skipped but never used twice.
  BSP_CHECK_OK(replace_file(revision_path, revision_path + ".tmp", std::to_string(revision)));
  object["metadata"]["resourceVersion"] = std::to_string(revision);
  BSP_TRY(const std::string path, file_of(key));
  fault_point("store.write");
  return replace_file(path, kind_dir(key.kind, key.name_space) + "/.tmp",
                      object.dump(-1, ' ', false, Object::error_handler_t::replace));
}

Result<Object> Store::create(const Object& given) {
  BSP_TRY(const Key key, key_of(given));
  BSP_TRY(const std::string path, file_of(key));
  Object object = given;
  if (options_.admission) {
    BSP_TRY(Object admitted, options_.admission(given, nullptr));
    object = std::move(admitted);
  }
  if (key.kind != kNode) object.erase("status");
  Object& metadata = object["metadata"];
  metadata["uid"] = new_uid();
  metadata["creationTimestamp"] = to_rfc3339(SystemClock().now());
  metadata["generation"] = 1;
  metadata.erase("deletionTimestamp");
  if (key.kind != kNode && key.name_space.empty()) metadata["namespace"] = options_.name_space;
  BSP_CHECK_OK(make_directories(kind_dir(key.kind, key.name_space)));
  BSP_TRY(const Fd lock, lock_file(namespace_dir(key.name_space) + "/.lock"));
  if (fs::exists(path)) return fail(ErrorCode::kConflict, describe(key) + " already exists");
  BSP_CHECK_OK(write(key, object));
  return object;
}

Result<Object> Store::update(const Object& given) {
  BSP_TRY(const Key key, key_of(given));
  BSP_TRY(const std::string path, file_of(key));
  BSP_TRY(const Object before, get(key));  // return NotFound before creating a lock file
  BSP_TRY(const Fd lock, lock_file(namespace_dir(key.name_space) + "/.lock"));
  BSP_TRY(const Object current, get(key));
  BSP_CHECK_OK(check_version(given, current, key));
  Object next = given;
  if (options_.admission) {
    BSP_TRY(Object admitted, options_.admission(given, &current));
    next = std::move(admitted);
  }
  Object metadata = part_at(current, "metadata");
  for (const char* field : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    metadata.erase(field);
    if (const Object& value = part_at(part_at(next, "metadata"), field); !value.is_null()) metadata[field] = value;
  }
  if (without_server_fields(next) != without_server_fields(current))
    metadata["generation"] = count_at<std::int64_t>(metadata, "generation") + 1;
  next["metadata"] = std::move(metadata);
  next.erase("status");
  if (const Object& status = part_at(current, "status"); !status.is_null()) next["status"] = status;
  if (next == current) return current;
  if (key.kind != kPod && is_being_deleted(next) && !has_finalizers(next)) {
    if (::unlink(path.c_str()) != 0) return fail_errno("removing " + path);
    return next;
  }
  BSP_CHECK_OK(write(key, next));
  return next;
}

Result<Object> Store::resize_pod(const Key& key, const Object& patch) {
  BSP_TRY(const Object before, get(key));
  BSP_TRY(const Fd lock, lock_file(namespace_dir(key.name_space) + "/.lock"));
  BSP_TRY(const Object current, get(key));
  Object next = current;
  for (const Object& given : part_at(part_at(patch, "spec"), "containers")) {
    Object* found = nullptr;
    for (Object& container : next["spec"]["containers"])
      if (text_at(container, "name") == text_at(given, "name")) found = &container;
    if (!found)
      return fail(ErrorCode::kInvalid, std::format("pod {} has no container {}", key.name, text_at(given, "name")));
    (*found)["resources"].merge_patch(part_at(given, "resources"));
  }
  if (next == current) return current;
  BSP_CHECK_OK(write(key, next));
  return next;
}

Result<Object> Store::update_status(const Object& given) {
  BSP_TRY(const Key key, key_of(given));
  BSP_TRY(const Object before, get(key));
  BSP_TRY(const Fd lock, lock_file(namespace_dir(key.name_space) + "/.lock"));
  BSP_TRY(Object current, get(key));
  BSP_CHECK_OK(check_version(given, current, key));
  Object next = current;
  next.erase("status");
  if (const Object& status = part_at(given, "status"); !status.is_null()) next["status"] = status;
  if (next == current) return current;
  BSP_CHECK_OK(write(key, next));
  return next;
}

Result<Object> Store::patch_status(const Key& key, const Object& merge) {
  BSP_TRY(Object object, get(key));
  object.merge_patch(merge);  // with the version that the caller has seen, if it names one
  return update_status(object);
}

Result<void> Store::remove(const Key& key, const std::string& uid) {
  BSP_TRY(const std::string path, file_of(key));
  BSP_TRY(const Object before, get(key));
  BSP_TRY(const Fd lock, lock_file(namespace_dir(key.name_space) + "/.lock"));
  BSP_TRY(Object current, get(key));
  BSP_CHECK_OK(check_uid(uid, current, key));
  // A pod that isn't bound to a node has no containers to wait for.
  const bool on_node = key.kind == kPod && !text_at(part_at(current, "spec"), "nodeName").empty();
  if (!on_node && !has_finalizers(current)) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno("removing " + path);
    return {};
  }
  if (is_being_deleted(current)) return {};
  current["metadata"]["deletionTimestamp"] = to_rfc3339(SystemClock().now());
  return write(key, current);
}

Result<void> Store::purge(const Key& key, const std::string& uid) {
  BSP_TRY(const std::string path, file_of(key));
  if (!fs::exists(path)) return {};
  BSP_TRY(const Fd lock, lock_file(namespace_dir(key.name_space) + "/.lock"));
  auto current = get(key);
  if (!current && current.error().code == ErrorCode::kNotFound) return {};
  if (!current) return std::unexpected(current.error());
  if (text_at(part_at(*current, "metadata"), "uid") != uid || has_finalizers(*current)) return {};
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno("removing " + path);
  return {};
}

}  // namespace bsp::local
