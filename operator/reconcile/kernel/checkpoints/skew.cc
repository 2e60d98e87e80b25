#include "operator/reconcile/kernel/checkpoints/skew.h"

#include <algorithm>
#include <charconv>
#include <format>
#include <string_view>

#include "base/json/fields.h"
#include "crds/names.h"
#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::reconcile {
namespace {

using nlohmann::json;

constexpr std::size_t kMostShown = 1000;  // bytes: the status holds it once a set

const json& app_of(const json& pod) {
  static const json none;
  for (const json& container : part_at(part_at(pod, "spec"), "containers"))
    if (text_at(container, "name") == names::kAppContainer) return container;
  return none;
}

bool mounts_sets(const json& pod) {
  for (const json& volume : part_at(part_at(pod, "spec"), "volumes"))
    if (text_at(volume, "name") == kSetsVolume) return true;
  return false;
}

std::string env_of(const json& container, std::string_view name) {
  for (const json& variable : part_at(container, "env"))
    if (text_at(variable, "name") == name) return text_at(variable, "value");
  return "";
}

// The operator's own volumes, and the token volume, whose name the API server makes up for each pod.
bool is_added(std::string_view volume) { return volume.starts_with("bsp-") || volume.starts_with("kube-api-access-"); }

// "persistentVolumeClaim data". An unnamed source is an emptyDir.
std::string source_of(const json& volume) {
  for (const auto& [kind, source] : volume.items()) {
    if (kind == "name" || !source.is_object()) continue;
    std::string text = kind;
    for (const char* field : {"claimName", "server", "path", "secretName", "name", "driver", "reference"})
      if (const std::string value = text_at(source, field); !value.empty()) text += " " + value;
    return text;
  }
  return "emptyDir";
}

std::uint64_t checksum(std::string_view text) {  // FNV-1a: the same in every version
  std::uint64_t sum = 14695981039346656037ull;
  for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return sum;
}

// A long one differs in its checksum at least.
std::string shortened(std::string text) {
  if (text.size() <= kMostShown) return text;
  std::size_t shown = kMostShown;
  while (shown > 0 && (static_cast<unsigned char>(text[shown]) & 0xc0) == 0x80) --shown;  // no half of a character
  return std::format("{} … {:016x}", text.substr(0, shown), checksum(text));
}

std::string of_rank(const crds::RankPlace& place, std::string_view what, std::string_view was, std::string_view is) {
  return std::format("rank {} had {}{}{} and would have {} in {}", place.rank.value, what, what.empty() ? "" : " ",
                     was.empty() ? "none" : was, is.empty() ? "none" : is, place.pod);
}

}  // namespace

void keep_program(json& pod) {
  if (!mounts_sets(pod)) return;
  json kept = {{"account", account_of(pod)}, {"mounts", mounts_of(pod)}};
  pod[kOfProgram] = std::move(kept);
}

std::string account_of(const json& pod) {
  if (const json& kept = part_at(pod, kOfProgram); kept.is_object()) return text_at(kept, "account");
  const json& app = app_of(pod);
  if (!app.is_object() || !mounts_sets(pod)) return "";
  const std::string user = env_of(app, names::kEnvUser), groups = env_of(app, names::kEnvGroups);
  return shortened(
      std::format("user {}{}", user.empty() ? "of the image" : user, groups.empty() ? "" : ", groups " + groups));
}

std::string mounts_of(const json& pod) {
  if (const json& kept = part_at(pod, kOfProgram); kept.is_object()) return text_at(kept, "mounts");
  if (!mounts_sets(pod)) return "";
  std::vector<std::string> mounts;
  for (const json& mount : part_at(app_of(pod), "volumeMounts")) {
    const std::string name = text_at(mount, "name");
    if (is_added(name)) continue;
    std::string text = text_at(mount, "mountPath") + " =";
    for (const json& volume : part_at(part_at(pod, "spec"), "volumes"))
      if (text_at(volume, "name") == name) text += " " + source_of(volume);
    for (const char* field : {"subPath", "subPathExpr"})
      if (const std::string path = text_at(mount, field); !path.empty()) text += "/" + path;
    if (part_at(mount, "readOnly") == true) text += " (read-only)";
    mounts.push_back(std::move(text));
  }
  std::ranges::sort(mounts);
  std::string all;
  for (const std::string& mount : mounts) all += (all.empty() ? "" : "; ") + mount;
  return shortened(std::move(all));
}

void describe_program(const Observed& o, crds::StoredSet& set) {
  const auto& ranks = o.job.status.ranks;
  const auto said = [&](std::size_t rank) { return o.said(ranks[rank].seat()); };
  for (std::size_t rank = 0; rank < ranks.size() && set.runtime.empty(); ++rank)
    if (const auto* status = said(rank)) set.runtime = status->runtime;
  for (const crds::RankPlace& place : ranks)
    if (const PodFacts* pod = o.pod(place.seat()); pod && set.account.empty()) {
      set.account = pod->account;
      set.mounts = pod->mounts;
    }
  set.features = crds::group_ranks(ranks.size(), [&](std::size_t rank) {
    const auto* status = said(rank);
    return status && status->program_features ? std::format("{:x}", status->program_features) : std::string();
  });
}

Skew::Skew(const crds::StoredSet& set, std::size_t ranks) : set_(set), seen_(ranks) {
  // What can't be read is as if it weren't known.
  (void)crds::ungroup_ranks(set.features, ranks, [&](std::size_t rank, const std::string& text) -> Result<void> {
    std::uint64_t bits = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), bits, 16).ptr == text.data() + text.size())
      seen_[rank] = CpuFeatures(bits);
    return {};
  });
}

std::string Skew::of(const crds::RankPlace& place, const PodFacts& pod, const wire::RankStatus* status) const {
  if (!set_.image.empty() && !pod.image.empty() && pod.image != set_.image)
    return of_rank(place, "image", set_.image, pod.image);
  if (!set_.account.empty() && !pod.account.empty()) {
    if (pod.account != set_.account) return of_rank(place, "", set_.account, pod.account);
    if (pod.mounts != set_.mounts) return of_rank(place, "the mounts", set_.mounts, pod.mounts);
  }
  if (!status) return "";
  if (!set_.runtime.empty() && !status->runtime.empty() && status->runtime != set_.runtime)
    return of_rank(place, "libbspmpi.so", set_.runtime.substr(0, 12), status->runtime.substr(0, 12));
  return "";
}

std::string Skew::of_cpu(std::uint32_t rank, const std::string& node, CpuFeatures has) const {
  const CpuFeatures lacks = has.lacks(seen(rank));
  if (!lacks.known()) return "";
  return std::format(
      "the CPU of node {} lacks {}, which the libraries of rank {} have seen when they chose their code; with "
      "spec.cpu: Common a job starts with what the CPUs of all its Sets have",
      node, lacks.text(), rank);
}

}  // namespace bsp::reconcile
