// What goes from a bucket: older sets, all of a job, and what jobs have left that are gone.
#include <algorithm>
#include <chrono>
#include <format>
#include <sstream>

#include "base/core/log.h"
#include "sidecar/storage/bucket.h"

namespace bsp::storage {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

Result<std::vector<std::uint64_t>> Bucket::remove_sets(const std::string& job_uid, std::uint64_t below,
                                                       const std::vector<std::uint64_t>& keep, GivenUp given_up) const {
  BSP_TRY(const std::string of_job, path_of(job_uid));
  BSP_TRY(const Answer listed, ask({"lsf", "--dirs-only", of_job}, given_up));
  if (listed.status != 0) return failed(listed);
  const ListFiles list = [&](std::uint64_t set) -> Result<std::vector<std::string>> {
    BSP_TRY(const Answer files, ask({"lsf", "--files-only", of_job + "/" + set_name(set)}, given_up));
    if (files.status == kNoDirectory) return std::vector<std::string>{};
    if (files.status != 0) return failed(files);
    return lines_of(files.out);
  };
  std::vector<std::uint64_t> removed;
  for (std::string& line : lines_of(listed.out)) {
    if (line.ends_with('/')) line.pop_back();
    const auto set = set_of(line);
    if (!set || *set >= below || std::ranges::contains(keep, *set)) continue;
    const auto goes = removable(*set, keep, list);
    if (!goes || (!goes->all && goes->files.empty())) continue;
    std::vector<std::string> words = {"delete", std::format("{}/{}", of_job, set_name(*set))};
    for (const std::string& file : goes->files) {
      words.emplace_back("--include");
      words.push_back("/" + file);
    }
    const auto done = ask(std::move(words), given_up);
    if (!done || done->status != 0) continue;
    const auto left = goes->all ? Result<std::vector<std::string>>() : list(*set);
    if (left && left->empty()) removed.push_back(*set);
  }
  // Parts of uploads whose client was killed count as storage until somebody takes them back. Not every server can list them.
  if (const auto swept = ask({"backend", "cleanup", of_job, "-o", "max-age=1h"}, given_up);
      !swept || swept->status != 0)
    log_debug("unfinished uploads can't be listed", {});
  std::ranges::sort(removed);
  return removed;
}

namespace {

using Seconds = std::chrono::sys_seconds;

// A line of rclone's listing: "2026-11-29 18:30:05;0a1b-2c3d/of-…". The time is the server's.
struct Listed {
  Seconds at;
  std::string name;
};
std::optional<Listed> listed_in(const std::string& line) {
  Listed listed;
  std::istringstream text(line);
  char separator = 0;
  if (!(text >> std::chrono::parse("%Y-%m-%d %H:%M:%S", listed.at) >> separator) || separator != ';')
    return std::nullopt;
  std::getline(text, listed.name);
  return listed;
}

}  // namespace

Result<void> Bucket::mark_job(const std::string& job_uid, const std::string& owner, GivenUp given_up) const {
  BSP_TRY(const std::string of_job, path_of(job_uid));
  if (owner.empty()) {
    BSP_TRY(const Answer done, ask({"delete", of_job, "--include", std::format("/{}*", kOwner)}, given_up));
    if (done.status != 0 && done.status != kNoDirectory) return failed(done);
    return {};
  }
  if (!is_name(owner)) return fail(ErrorCode::kInvalid, "the job's owner is unusable as an object's name");
  return put_mark(std::format("{}/{}{}", of_job, kOwner, owner), given_up);
}

Result<std::vector<std::string>> Bucket::remove_orphans(const std::string& job_uid, const Orphans& orphans,
                                                        GivenUp given_up) const {
  const std::string mark = std::format("/{}{}", kOwner, orphans.owner);
  const auto list = [&](std::vector<std::string> words) -> Result<std::vector<Listed>> {
    words.insert(words.begin(),
                 {"lsf", "--recursive", "--files-only", "--use-server-modtime", "--format", "tp", "--separator", ";"});
    BSP_TRY(const Answer answer, ask(std::move(words), given_up));
    if (answer.status != 0) return failed(answer);
    std::vector<Listed> files;
    for (const std::string& line : lines_of(answer.out)) {
      auto file = listed_in(line);
      if (!file)
        return fail(ErrorCode::kFailed, std::format("the checkpoint storage {}: it lists \"{}\"", where(), line));
      files.push_back(std::move(*file));
    }
    return files;
  };
  BSP_TRY(const auto marks,
          list({"--max-depth", "2", "--include", "/*" + mark, std::format("{}{}", kRemote, bucket_)}));
  const auto own = std::ranges::find(marks, job_uid + mark, &Listed::name);
  if (own == marks.end())
    return fail(ErrorCode::kFailed, std::format("the checkpoint storage {} doesn't list the job's own mark", where()));
  std::vector<std::string> removed;
  for (const Listed& one : marks) {
    if (removed.size() == kMostOrphans || (given_up && *given_up)) break;
    const std::string uid = one.name.substr(0, one.name.find('/'));
    if (uid == job_uid || !is_name(uid) || std::ranges::contains(orphans.jobs, uid)) continue;
    if (own->at - one.at < orphans.age) continue;
    const auto files = list({std::format("{}{}/{}", kRemote, bucket_, uid)});
    const auto is_old = [&](const Listed& file) { return own->at - file.at >= orphans.age; };
    if (files && std::ranges::all_of(*files, is_old) && remove_job(uid, given_up)) removed.push_back(uid);
  }
  return removed;
}

Result<void> Bucket::remove_job(const std::string& job_uid, GivenUp given_up) const {
  BSP_TRY(const std::string of_job, path_of(job_uid));
  const auto left = [&] { return ask({"lsf", "--files-only", "--recursive", of_job}, given_up); };
  // A bucket has no directories, so a job without objects is no failure, but that of a bucket that isn't there is.
  BSP_TRY(const Answer listed, left());
  if (listed.status != 0) return failed(listed);
  if (!listed.out.empty()) {
    BSP_TRY(const Answer done, ask({"delete", of_job}, given_up));
    if (done.status != 0) return failed(done);
    BSP_TRY(const Answer after, left());
    if (after.status != 0) return failed(after);
    if (!after.out.empty())
      return fail(ErrorCode::kUnavailable,
                  std::format("the checkpoint storage {}: it still lists {} after it was deleted", where(),
                              after.out.substr(0, after.out.find('\n'))));
  }
  // Parts of uploads that were cut off; not every server can list them.
  if (const auto swept = ask({"backend", "cleanup", of_job, "-o", "max-age=0s"}, given_up);
      !swept || swept->status != 0)
    log_debug("unfinished uploads can't be listed", {});
  return {};
}

}  // namespace bsp::storage
