#include "operator/local/podman_node.h"

#include <algorithm>
#include <atomic>
#include <format>
#include <map>
#include <set>
#include <thread>

#include "base/core/counted.h"
#include "base/core/guard.h"
#include "base/core/log.h"
#include "base/json/fields.h"
#include "operator/kinds.h"
#include "operator/local/files.h"
#include "operator/local/pod_plan.h"
#include "operator/local/pod_worker.h"
#include "operator/local/podman.h"
#include "operator/local/pools.h"

namespace bsp::local {
namespace {

using kube::EventType;
using kube::Object;
using std::chrono::milliseconds;

// Pods, and the objects that they mount as files.
const std::vector<kube::Kind> kWatched{kPod, kSecret, kConfigMap};
bool is_pod(const Object& object) { return text_at(object, "kind") == kPod.kind; }

// How long a node may take to notice that it should stop; changes wake it at once.
constexpr milliseconds kPollInterval{200};

}  // namespace

struct PodmanNode::Impl {
  Store& store;
  NodeOptions options;
  Fd lock;
  std::atomic<bool> stop = false;
  std::map<std::string, std::unique_ptr<PodWorker>> workers = {};  // by uid; the loop's thread only
  std::thread thread = {};

  void report(const Error& error) const {
    if (options.on_error)
      options.on_error(error);
    else
      log_error("node error", {{"error", error.message}});
  }

  void handle(const Object& pod, bool adopt) {
    const Object& metadata = part_at(pod, "metadata");
    const std::string uid = text_at(metadata, "uid");
    const std::string node_name = text_at(part_at(pod, "spec"), "nodeName");
    if (uid.empty() || node_name.empty()) return;
    const bool deleted = !part_at(metadata, "deletionTimestamp").is_null();
    if (const auto it = workers.find(uid); it != workers.end()) {
      if (deleted)
        it->second->remove_pod();
      else
        it->second->resize(pod);
      return;
    }
    double cpu = 0;
    if (auto node = store.get({kNode, store.options().name_space, node_name}))
      cpu = cpu_of(*node);
    else if (!deleted)
      return report({ErrorCode::kNotFound, std::format("pod {} is bound to node {}, which doesn't exist",
                                                       text_at(metadata, "name"), node_name)});
    workers[uid] = std::make_unique<PodWorker>(store, pod, cpu, adopt);
  }

  // Removes containers whose pod no longer exists: a node process was killed between two steps.
  Result<void> sweep(const std::vector<Object>& pods) {
    std::set<std::string> known;
    for (const Object& pod : pods) {
      for (const char* list : {"containers", "initContainers"})
        for (const Object& c : part_at(part_at(pod, "spec"), list))
          known.insert(podman_name(store.directory(), text_at(part_at(pod, "metadata"), "name"), text_at(c, "name")));
    }
    BSP_TRY(std::vector<std::string> orphans, podman::containers_with(store_label(store.directory())));
    std::erase_if(orphans, [&](const std::string& name) { return known.contains(name); });
    return podman::remove_containers(orphans, 0);
  }

  void loop(std::string cursor) {
    while (!stop) {
      auto events = store.wait(kWatched, store.options().name_space, cursor, kPollInterval);
      if (!events) {
        report(events.error());
        std::this_thread::sleep_for(kPollInterval);
        continue;
      }
      if (!std::ranges::all_of(*events, is_pod, &kube::WatchEvent::object))
        for (const auto& [uid, worker] : workers) worker->refresh_files();
      for (const kube::WatchEvent& event : *events) {
        if (!is_pod(event.object)) continue;
        if (event.type != EventType::kDeleted) {
          // Report a pod that fails here; the others still run.
          if (const auto handled = guarded([&] { handle(event.object, /*adopt=*/false); }); !handled)
            report(handled.error());
          continue;
        }
        // The object's file was removed by hand, so remove its parts too.
        const auto it = workers.find(text_at(part_at(event.object, "metadata"), "uid"));
        if (it != workers.end()) it->second->remove_pod();
      }
      std::erase_if(workers, [](const auto& pair) { return pair.second->finished(); });
    }
  }
};

PodmanNode::PodmanNode(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<PodmanNode>> PodmanNode::start(Store& store, NodeOptions options) {
  BSP_CHECK_OK(podman::check_usable());
  auto lock = try_lock_file(store.directory() + "/.node.lock");
  if (!lock && lock.error().code == ErrorCode::kConflict)
    return fail(ErrorCode::kConflict,
                std::format("another bsp-operator runs the pods of namespace {}; stop it, or choose another namespace",
                            store.options().name_space));
  if (!lock) return std::unexpected(lock.error());
  auto impl = std::unique_ptr<Impl>(new Impl{.store = store, .options = std::move(options), .lock = std::move(*lock)});
  std::string cursor;
  BSP_TRY(const auto events, store.wait(kWatched, store.options().name_space, cursor, milliseconds(0)));
  std::vector<Object> pods;
  for (const kube::WatchEvent& event : events)
    if (is_pod(event.object)) pods.push_back(event.object);
  BSP_CHECK_OK(impl->sweep(pods));
  for (const Object& pod : pods) impl->handle(pod, /*adopt=*/true);
  Impl& running = *impl;
  impl->thread = std::thread([&running, cursor] { running.loop(cursor); });
  return std::unique_ptr<PodmanNode>(new PodmanNode(std::move(impl)));
}

PodmanNode::~PodmanNode() {
  impl_->stop = true;
  impl_->thread.join();
}

Result<void> PodmanNode::drain(milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string cursor;
  for (;;) {
    BSP_TRY(const auto pods, impl_->store.list(kPod, impl_->store.options().name_space));
    if (pods.empty()) return {};
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0)
      return fail(ErrorCode::kTimeout, std::format("{} left; the first is {}", counted(pods.size(), "pod"),
                                                   text_at(part_at(pods[0], "metadata"), "name")));
    BSP_TRY(const auto ignored, impl_->store.wait({kPod}, impl_->store.options().name_space, cursor, left));
  }
}

}  // namespace bsp::local
