#include "operator/reconcile/kernel/pods/pod_parts.h"

#include <algorithm>
#include <format>

#include "base/json/fields.h"
#include "crds/bspjob.h"
#include "crds/names.h"
#include "operator/reconcile/kernel/json_child.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {
constexpr int kStorageGroup = 64600;
}  // namespace

void put(json& list, const json& entry) {
  for (json& other : list)
    if (text_at(other, "name") == text_at(entry, "name")) {
      other = entry;
      return;
    }
  list.push_back(entry);
}

void put_env(json& container, std::string_view name, const std::string& value) {
  put(child(container, "env", json::value_t::array), {{"name", name}, {"value", value}});
}

json unprivileged() {
  return {{"allowPrivilegeEscalation", false},
          {"capabilities", {{"drop", {"ALL"}}}},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

json restricted(const json& pod_spec) {
  constexpr int kOurUser = 64600, kOther = 64601;
  bool taken = false;
  auto read_ids = [&](const json& object) {
    for (const char* id : {"runAsUser", "runAsGroup"})
      taken |= part_at(part_at(object, "securityContext"), id) == kOurUser;
  };
  read_ids(pod_spec);
  for (const json& container : part_at(pod_spec, "containers")) read_ids(container);
  const int user = taken ? kOther : kOurUser;
  json security = unprivileged();
  security.update(
      {{"runAsUser", user}, {"runAsGroup", user}, {"runAsNonRoot", true}, {"readOnlyRootFilesystem", true}});
  return security;
}

void add_resources(json& container, const crds::BspJob& job) {
  if (const json& resources = job.spec.sidecar.resources; !resources.empty()) container["resources"] = resources;
}

static json secret_volume(const char* name, const std::string& secret) {
  // The container that mounts it is not root.
  return {{"name", name}, {"secret", {{"secretName", secret}, {"defaultMode", 0444}}}};
}

void add_storage(json& spec, json& volumes, const crds::CheckpointStorage& storage, const json& beside) {
  if (const auto& s3 = storage.s3) {
    put(volumes, secret_volume(kSetsVolume, s3->credentials_secret));
    if (!s3->ca_secret.empty()) put(volumes, secret_volume(kSetsCaVolume, s3->ca_secret));
    return;
  }
  json volume{{"name", kSetsVolume}};
  if (storage.persistent_volume_claim)
    volume["persistentVolumeClaim"] = {{"claimName", storage.persistent_volume_claim->claim_name}};
  else
    volume["hostPath"] = {{"path", storage.host_path->path}, {"type", "Directory"}};
  put(volumes, volume);
  // A claim's file system belongs to root. The kubelet makes it writable for a group; not where that would change the group of
  // the user's own claims, whose template then has to name one. No process of the program gets it (kEnvGroups).
  const auto is_claim = [](const json& v) {
    return text_at(v, "name") != kSetsVolume &&
           (v.contains("persistentVolumeClaim") || v.contains("ephemeral") || v.contains("csi"));
  };
  if (!storage.persistent_volume_claim || std::ranges::any_of(beside, is_claim)) return;
  json& security = child(spec, "securityContext", json::value_t::object);
  if (!security.contains("fsGroup")) security["fsGroup"] = kStorageGroup;
}

static void mount_volume(json& container, const char* volume, std::string_view path, bool read_only) {
  json entry{{"name", volume}, {"mountPath", path}};
  if (read_only) entry["readOnly"] = true;
  child(container, "volumeMounts", json::value_t::array).push_back(std::move(entry));
}

void add_set_key(json& volumes, const crds::BspJobSpec& spec) {
  if (const auto& from = spec.restore_from; from && !from->key_secret.empty())
    put(volumes, secret_volume(kSetKeyVolume, from->key_secret));
}

void mount_set_key(json& container, const crds::BspJobSpec& spec) {
  if (const auto& from = spec.restore_from; from && !from->key_secret.empty())
    mount_volume(container, kSetKeyVolume, names::kSetKeyDir, true);
}

void mount_storage(json& container, const crds::CheckpointStorage& storage) {
  const auto mount = [&](const char* volume, std::string_view path, bool read_only) {
    mount_volume(container, volume, path, read_only);
  };
  const auto& s3 = storage.s3;
  if (!s3) {
    put_env(container, names::kEnvStorage, std::string(names::kStorageDir));
    return mount(kSetsVolume, names::kStorageDir, false);
  }
  put_env(container, names::kEnvStorage,
          std::format("s3://{}{}{}", s3->bucket, s3->prefix.empty() ? "" : "/", s3->prefix));
  put_env(container, names::kEnvStorageEndpoint, s3->endpoint);
  put_env(container, names::kEnvStorageRegion, s3->region);
  mount(kSetsVolume, names::kStorageCredentials, true);
  if (s3->ca_secret.empty()) return;
  put_env(container, names::kEnvStorageCa, std::format("{}/{}", names::kStorageCaDir, names::kStorageCaKey));
  mount(kSetsCaVolume, names::kStorageCaDir, true);
}

}  // namespace bsp::reconcile
