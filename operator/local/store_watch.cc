#include "operator/local/store_watch.h"
#include "base/json/fields.h"

#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <format>

#include "base/core/read_file.h"
#include "operator/local/files.h"

namespace bsp::local {
namespace fs = std::filesystem;
using kube::EventType;
using kube::Object;
using kube::WatchEvent;

namespace {

// Watches every directory, and recreates one that was removed.
Result<void> arm(Fd& inotify, const std::vector<std::string>& directories) {
  if (!inotify) inotify.reset(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  if (!inotify) return fail_errno("inotify_init (the limit is /proc/sys/fs/inotify/max_user_instances)");
  for (const std::string& directory : directories) {
    BSP_CHECK_OK(make_directories(directory));
    // Has no effect on a directory that is already watched.
    if (::inotify_add_watch(inotify.get(), directory.c_str(), IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF) < 0)
      return fail_errno("watching " + directory);
  }
  return {};
}

void drain(const Fd& inotify) {
  char buffer[16384];
  while (::read(inotify.get(), buffer, sizeof buffer) > 0) {
  }
}

}  // namespace

Result<std::vector<WatchEvent>> Store::changes(Watch& watch) {
  std::vector<WatchEvent> events;
  std::map<std::string, Watch::Seen> now;
  for (const std::string& directory : watch.directories) {
    std::vector<std::string> paths;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(directory, error))
      if (is_object_file(entry.path().filename().string())) paths.push_back(entry.path().string());
    std::ranges::sort(paths);
    for (const std::string& path : paths) {
      struct stat st{};
      if (::stat(path.c_str(), &st) != 0) continue;  // deleted meanwhile
      const std::int64_t changed = st.st_mtim.tv_sec * 1'000'000'000LL + st.st_mtim.tv_nsec;
      const auto old = watch.seen.find(path);
      if (old != watch.seen.end() && old->second.inode == st.st_ino && old->second.changed_ns == changed) {
        now.insert(watch.seen.extract(old));
        continue;
      }
      auto content = read_file(path);
      if (!content) continue;
      Object object = Object::parse(*content, nullptr, /*allow_exceptions=*/false);
      if (!object.is_object() || !object.contains("metadata")) continue;
      const Object& metadata = part_at(object, "metadata");
      if (old == watch.seen.end()) {
        events.push_back({EventType::kAdded, object});
      } else {
        const Object& before = part_at(old->second.object, "metadata");
        if (text_at(before, "uid") != text_at(metadata, "uid")) {
          events.push_back({EventType::kDeleted, std::move(old->second.object)});
          events.push_back({EventType::kAdded, object});
        } else if (text_at(before, "resourceVersion") != text_at(metadata, "resourceVersion")) {
          events.push_back({EventType::kModified, object});
        }
        watch.seen.erase(old);
      }
      now[path] = {st.st_ino, changed, std::move(object)};
    }
  }
  for (auto& [path, gone] : watch.seen) events.push_back({EventType::kDeleted, std::move(gone.object)});
  watch.seen = std::move(now);
  return events;
}

Result<std::vector<WatchEvent>> Store::wait(const std::vector<kube::Kind>& kinds, const std::string& name_space,
                                            std::string& cursor, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  Watch* watch = nullptr;
  bool first = false;
  {
    const std::lock_guard lock(watches_->mutex);
    auto it = watches_->by_cursor.find(cursor);
    if (it == watches_->by_cursor.end()) {
      first = true;
      cursor = std::format("w{}", watches_->next++);
      it = watches_->by_cursor.emplace(cursor, std::make_unique<Watch>()).first;
      for (const kube::Kind& kind : kinds) it->second->directories.push_back(kind_dir(kind, name_space));
    }
    watch = it->second.get();
  }
  const std::lock_guard busy(watch->busy);
  for (;;) {
    // Arm and drain before reading the files, so that a later change wakes the poll.
    BSP_CHECK_OK(arm(watch->inotify, watch->directories));
    drain(watch->inotify);
    BSP_TRY(auto events, changes(*watch));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (first || !events.empty() || left.count() <= 0) return events;
    pollfd poll_fd{watch->inotify.get(), POLLIN, 0};
    if (::poll(&poll_fd, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 3'600'000))) < 0 && errno != EINTR)
      return fail_errno("poll");
  }
}

}  // namespace bsp::local
