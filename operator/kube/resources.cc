#include "operator/kube/resources.h"

#include <format>

#include "operator/kube/fields.h"

namespace bsp::kube {
namespace {

// A missing kind may appear soon, if its CustomResourceDefinition was just created. Don't ask more often than this.
constexpr auto kDiscoverAgain = std::chrono::seconds(2);

std::string root_of(const std::string& api_version) {
  return (api_version.find('/') == std::string::npos ? "/api/" : "/apis/") + api_version;
}

}  // namespace

std::string Resource::collection(const std::string& name_space) const {
  if (!namespaced || name_space.empty()) return root + "/" + plural;
  return std::format("{}/namespaces/{}/{}", root, percent_encode(name_space), plural);
}

std::string Resource::item(const std::string& name_space, const std::string& name) const {
  return collection(name_space) + "/" + percent_encode(name);
}

Result<Resource> Resources::find(const Kind& kind) {
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    if (const auto group = groups_.find(kind.api_version); group != groups_.end()) {
      const auto it = group->second.by_kind.find(kind.kind);
      if (it != group->second.by_kind.end()) return it->second;
      known = std::chrono::steady_clock::now() - group->second.discovered < kDiscoverAgain;
    }
  }
  if (!known) {
    BSP_TRY(Group fresh, discover(kind.api_version));
    const std::lock_guard lock(mutex_);
    Group& group = groups_[kind.api_version] = std::move(fresh);
    if (const auto it = group.by_kind.find(kind.kind); it != group.by_kind.end()) return it->second;
  }
  return fail(ErrorCode::kUnavailable,
              std::format("the API server doesn't serve {} of {}; is its CustomResourceDefinition installed?",
                          kind.kind, kind.api_version),
              true);
}

void Resources::forget(const std::string& api_version) {
  const std::lock_guard lock(mutex_);
  groups_.erase(api_version);
}

Result<Resources::Group> Resources::discover(const std::string& api_version) {
  Group group;
  group.discovered = std::chrono::steady_clock::now();
  const std::string root = root_of(api_version);
  BSP_TRY(const Answer answer, api_.send({.target = root}));
  if (answer.status == 404) return group;  // the server has no such group
  if (!answer.ok())
    return std::unexpected(error_of(answer.status, answer.body).in("discovering the API server's resources"));
  BSP_TRY(const Object list, parse_object(answer.body, root));
  const Object& resources = part_at(list, "resources");
  if (!resources.is_array()) return fail(ErrorCode::kFailed, root + ": resources: not a list", true);
  for (const Object& entry : resources) {
    const std::string name = text_at(entry, "name");
    if (name.empty() || name.find('/') != std::string::npos) continue;
    group.by_kind[text_at(entry, "kind")] = {root, name, flag_at(entry, "namespaced", true)};
  }
  for (const Object& entry : resources)
    for (auto& [kind, resource] : group.by_kind) {
      resource.has_status |= text_at(entry, "name") == resource.plural + "/status";
      resource.has_resize |= text_at(entry, "name") == resource.plural + "/resize";
    }
  return group;
}

}  // namespace bsp::kube
