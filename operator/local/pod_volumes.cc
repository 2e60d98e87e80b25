#include "operator/local/pod_volumes.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <format>
#include <ranges>

#include "base/core/base64.h"
#include "base/core/mount_table.h"
#include "base/core/read_file.h"
#include "base/json/fields.h"
#include "crds/meta.h"
#include "operator/local/files.h"
#include "operator/local/podman.h"

namespace bsp::local {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

bool is_mount_point(const std::string& path) {
  struct stat here{};
  struct stat above{};
  return ::stat(path.c_str(), &here) == 0 && ::stat((path + "/..").c_str(), &above) == 0 && here.st_dev != above.st_dev;
}

// Mounts an image's layers read-only. Podman's own image mounts are an overlay on an overlay: there the kernel reports
// the inner mount for a mapped file, and criu can't find that in the container.
Result<void> mount_image(const VolumePlan& v) {
  if (is_mount_point(v.path)) return {};
  BSP_TRY(const std::vector<std::string> layers, podman::image_layers(v.image));
  if (layers.size() == 1) {
    if (::mount(layers[0].c_str(), v.path.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return fail_errno("mounting image " + v.image);
    return {};
  }
  std::string lower;
  for (const std::string& layer : layers) lower += (lower.empty() ? "lowerdir=" : ":") + layer;
  if (::mount("overlay", v.path.c_str(), "overlay", MS_RDONLY, lower.c_str()) != 0)
    return fail_errno("mounting the layers of image " + v.image);
  return {};
}

// What is there already may be the program's own.
Result<void> create_directories(const VolumePlan& v) {
  for (const std::string& name : v.directories) {
    const std::string path = v.path + "/" + name;
    std::error_code none;
    if (fs::exists(fs::symlink_status(path, none))) continue;
    BSP_CHECK_OK(make_directories(path));
    if (::chmod(path.c_str(), 0777) != 0) return fail_errno(path);
  }
  return {};
}

std::map<std::string, std::string> files_in(const std::string& directory) {
  std::map<std::string, std::string> files;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none))
    if (auto content = read_file(entry.path().string())) files[entry.path().filename().string()] = std::move(*content);
  return files;
}

Result<void> replace_link(const std::string& link, const std::string& target) {
  const std::string fresh = fs::path(link).parent_path().string() + "/..link";
  (void)::unlink(fresh.c_str());
  if (::symlink(target.c_str(), fresh.c_str()) != 0 || ::rename(fresh.c_str(), link.c_str()) != 0)
    return fail_errno("linking " + link);
  return {};
}

}  // namespace

Result<std::map<std::string, std::string>> referenced_files(const std::string& kind, const std::string& name,
                                                            const PlanInput& input) {
  BSP_TRY(const json object, input.lookup(kind, name));
  std::map<std::string, std::string> files;
  const json &data = part_at(object, "data"), &plain = part_at(object, "stringData");
  for (const auto& [key, value] : data.items()) {
    if (kind == "ConfigMap") {
      files[key] = text_at(data, key);
      continue;
    }
    auto decoded = base64_decode(text_at(data, key));
    if (!decoded) return std::unexpected(decoded.error().in(std::format("Secret {}: data.{}", name, key)));
    files[key] = std::move(*decoded);
  }
  for (const auto& [key, value] : plain.items()) files[key] = text_at(plain, key);
  return files;
}

Result<std::vector<VolumePlan>> plan_volumes(const json& pod_spec, const PlanInput& input, const std::string& pod_dir) {
  std::vector<VolumePlan> volumes;
  int index = 0;
  for (const json& v : part_at(pod_spec, "volumes")) {
    const std::string path = std::format("spec.volumes[{}]", index++);
    VolumePlan plan{.name = text_at(v, "name"),
                    .type = VolumeType::kDirectory,
                    .path = "",
                    .image = "",
                    .size_bytes = 0,
                    .file_mode = 0644,
                    .files = {}};
    if (plan.name.empty() || plan.name.find('/') != std::string::npos)
      return fail(ErrorCode::kInvalid, path + ".name: required, and without '/'");
    plan.path = std::format("{}/volumes/{}", pod_dir, plan.name);
    if (v.contains("emptyDir") || v.size() == 1) {  // the default, as in Kubernetes
      const json& empty = part_at(v, "emptyDir");
      if (text_at(empty, "medium") == "Memory") plan.type = VolumeType::kTmpfs;
      if (const json& limit = part_at(empty, "sizeLimit"); !limit.is_null()) {
        auto size = crds::quantity_value(limit.is_string() ? limit.get<std::string>() : limit.dump());
        if (!size) return std::unexpected(size.error().in(path + ".emptyDir.sizeLimit"));
        plan.size_bytes = *size;
      }
    } else if (v.contains("secret") || v.contains("configMap")) {
      const bool secret = v.contains("secret");
      const json& source = part_at(v, secret ? "secret" : "configMap");
      const std::string name = text_at(source, secret ? "secretName" : "name");
      auto files = referenced_files(secret ? "Secret" : "ConfigMap", name, input);
      if (!files) return std::unexpected(files.error().in(path));
      plan.type = VolumeType::kFiles;
      plan.file_mode = whole_number<unsigned>(part_at(source, "defaultMode")).value_or(0644u);
      if (source.contains("items")) {
        for (const json& item : part_at(source, "items")) {
          const auto it = files->find(text_at(item, "key"));
          if (it == files->end())
            return fail(ErrorCode::kInvalid, std::format("{}: {} has no key {}", path, name, text_at(item, "key")));
          plan.files[text_at(item, "path")] = it->second;
        }
      } else {
        plan.files = std::move(*files);
      }
      for (const auto& [file, content] : plan.files)
        if (file.empty() || file.find('/') != std::string::npos || file.starts_with('.'))
          return fail(ErrorCode::kInvalid, std::format("{}: \"{}\" is not a valid file name", path, file));
    } else if (v.contains("hostPath")) {
      plan.type = VolumeType::kHostPath;
      plan.path = text_at(part_at(v, "hostPath"), "path");
      if (!plan.path.starts_with('/'))
        return fail(ErrorCode::kInvalid, path + ".hostPath.path: must be an absolute path");
    } else if (v.contains("image")) {
      plan.type = VolumeType::kImage;
      plan.image = text_at(part_at(v, "image"), "reference");
      if (plan.image.empty()) return fail(ErrorCode::kInvalid, path + ".image.reference: is required");
    } else {
      return fail(
          ErrorCode::kInvalid,
          path + ": unsupported volume type; local mode supports emptyDir, secret, configMap, hostPath and image");
    }
    volumes.push_back(std::move(plan));
  }
  return volumes;
}

Result<void> create_volumes(const std::vector<VolumePlan>& volumes) {
  for (const VolumePlan& v : volumes) {
    if (v.type == VolumeType::kHostPath) continue;
    BSP_CHECK_OK(make_directories(v.path));
    if (v.type == VolumeType::kImage) {
      BSP_CHECK_OK(mount_image(v));
      continue;
    }
    if (v.type == VolumeType::kTmpfs) {
      if (is_mount_point(v.path)) continue;
      const std::string size = v.size_bytes != 0 ? std::format(",size={}", v.size_bytes) : "";
      if (::mount("tmpfs", v.path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, ("mode=0777" + size).c_str()) != 0)
        return fail_errno("mounting the tmpfs of volume " + v.name);
    }
    // Any user in the container may write to an emptyDir and read a mounted secret.
    if (::chmod(v.path.c_str(), v.type == VolumeType::kFiles ? 0755 : 0777) != 0) return fail_errno(v.path);
    if (v.type == VolumeType::kFiles) BSP_CHECK_OK(write_files(v));
    BSP_CHECK_OK(create_directories(v));
  }
  return {};
}

// <name> links to ..data/<name>, and ..data to a directory with all files, so replacing that link replaces them all at once.
Result<void> write_files(const VolumePlan& volume) {
  const std::string data = volume.path + "/..data";
  std::error_code none;
  const std::string old = fs::read_symlink(data, none).string();
  if (!old.empty() && files_in(data) == volume.files) return {};
  const std::string fresh = old == "..1" ? "..2" : "..1";
  const std::string directory = volume.path + "/" + fresh;
  BSP_CHECK_OK(remove_tree(directory));
  BSP_CHECK_OK(make_directories(directory));
  if (::chmod(directory.c_str(), 0755) != 0) return fail_errno(directory);
  for (const auto& [name, content] : volume.files) {
    const std::string file = directory + "/" + name;
    BSP_CHECK_OK(replace_file(file, directory + "/..tmp", content));
    if (::chmod(file.c_str(), volume.file_mode) != 0) return fail_errno(file);
  }
  BSP_CHECK_OK(replace_link(data, fresh));
  for (const auto& [name, content] : volume.files)
    BSP_CHECK_OK(replace_link(volume.path + "/" + name, "..data/" + name));
  for (const auto& entry : fs::directory_iterator(volume.path, none)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("..") && !volume.files.contains(name)) fs::remove(entry.path(), none);
  }
  return old.empty() ? Result<void>{} : remove_tree(volume.path + "/" + old);
}

Result<void> remove_mounted_tree(const std::string& dir) {
  BSP_TRY(const std::string table, read_file("/proc/self/mountinfo"));
  const std::vector<MountEntry> mounts = mounts_in(table);
  // In reverse order: inner mounts come after outer ones.
  for (const std::string& point : mounts | std::views::transform(&MountEntry::path) | std::views::reverse)
    if (point.starts_with(dir + "/") && ::umount2(point.c_str(), MNT_DETACH) != 0 && errno != EINVAL && errno != ENOENT)
      return fail_errno("unmounting " + point);
  return remove_tree(dir);
}

}  // namespace bsp::local
