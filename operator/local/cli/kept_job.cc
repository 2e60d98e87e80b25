#include "operator/local/cli/kept_job.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <format>
#include <nlohmann/json.hpp>
#include <set>

#include "base/core/base64.h"
#include "base/core/fd.h"
#include "base/core/own_file.h"
#include "base/json/bounded.h"
#include "base/json/fields.h"
#include "crds/names.h"
#include "operator/local/files.h"
#include "operator/reconcile/shell/job/source_job.h"

namespace bsp::local {
namespace {

using nlohmann::json;

constexpr std::string_view kEnd = ".job";
constexpr std::size_t kMost = 64 << 20;  // bytes
constexpr JsonLimits kLimits{.bytes = kMost, .values = 10'000'000, .depth = 64};

std::string file_of(const std::string& directory, const std::string& uid) {
  return std::format("{}/{}{}", directory, uid, kEnd);
}

bool is_own(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid() &&
         (info.st_mode & 077) == 0;
}

Result<KeptJob> read_kept(const std::string& path) {
  BSP_TRY(const std::string text, read_own_file(path, kMost));
  BSP_TRY(const json kept, parse_bounded(text, kLimits));
  BSP_TRY(crds::BspJob job, crds::bsp_job_from_json(part_at(kept, "job")));
  const auto seed = base64_decode(text_at(kept, "seed"));
  if (!seed || seed->empty()) return fail(ErrorCode::kInvalid, path + ": it holds no seed");
  return KeptJob{std::move(job), *seed};
}

}  // namespace

Result<void> keep_job(const std::string& directory, const KeptJob& kept) {
  json job;
  to_json(job, kept.job);
  return replace_own_file(file_of(directory, kept.job.metadata.uid),
                          json{{"job", std::move(job)}, {"seed", base64_encode(kept.seed)}}.dump(2) + "\n", 0600);
}

Result<KeptJob> newest_kept_job(const std::string& directory, const std::string& place) {
  std::error_code failed;
  std::optional<KeptJob> newest;
  std::string trouble;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(kEnd) || !is_own(path)) continue;
    auto kept = read_kept(path);
    if (!kept) trouble = kept.error().message;
    if (!kept || !kept->job.status.checkpoint || kept->job.status.checkpoint->sets.empty()) continue;
    if (!newest || kept->job.status.checkpoint->time > newest->job.status.checkpoint->time) newest = std::move(*kept);
  }
  if (failed) return fail_errno(directory, failed.value());
  if (newest) return std::move(*newest);
  return fail(ErrorCode::kNotFound,
              std::format("{} holds no job of yours that has stored a checkpoint set{}; bsp-operator local run "
                          "--checkpoints {} stores them",
                          directory, trouble.empty() ? "" : " (" + trouble + ")", place));
}

std::set<std::string> uids_of_sets(const crds::BspJob& job) {
  std::set<std::string> uids{job.metadata.uid};
  if (const auto& c = job.status.checkpoint)
    for (const crds::StoredSet& set : c->sets)
      if (!set.of_job.empty()) uids.insert(set.of_job);
  std::erase_if(uids, [](const std::string& uid) { return uid.empty() || uid.contains('/') || uid.starts_with('.'); });
  return uids;
}

Result<void> forget_job(const std::string& directory, const crds::BspJob& job) {
  for (const std::string& uid : uids_of_sets(job)) {
    BSP_CHECK_OK(remove_tree(file_of(directory, uid)));
    BSP_CHECK_OK(remove_tree(directory + "/" + uid));
  }
  return {};
}

Result<crds::BspJob> resumed(const KeptJob& kept, const std::string& name_space) {
  crds::BspJob job;
  job.metadata.name = kept.job.metadata.name;
  job.metadata.name_space = name_space;
  job.metadata.annotations = kept.job.metadata.annotations;
  job.metadata.annotations.erase(std::string(names::kAnnotationCheckpoint));
  job.spec = kept.job.spec;
  job.spec.run_policy.suspend = false;
  const crds::CheckpointStatus& was = *kept.job.status.checkpoint;
  crds::CheckpointStatus& c = job.status.checkpoint.emplace();
  c.superstep = was.superstep;
  c.time = was.time;
  c.sets = was.sets;
  job.status.epochs_used = kept.job.status.epochs_used;
  for (crds::StoredSet& set : c.sets) {
    if (set.of_job.empty()) set.of_job = kept.job.metadata.uid;
    BSP_TRY(set.grant, reconcile::grant_of(kept.seed, name_space, set.of_job));
    c.ids_used = std::max(c.ids_used, set.id);
    job.status.epochs_used = std::max(job.status.epochs_used, set.epoch + 1);
  }
  return job;
}

}  // namespace bsp::local
