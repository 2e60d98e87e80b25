// Pods made and deleted, and with them the Secrets that hold their keys.
#include <algorithm>
#include <atomic>
#include <exception>
#include <format>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/core/log.h"
#include "base/net/sha256.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/json_child.h"
#include "operator/reconcile/shell_job.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;
using nlohmann::json;

namespace {

constexpr auto kFirstPause = 500ms;  // after a pod could not be made; doubled each time
constexpr auto kLongestPause = 15s;
constexpr std::size_t kTogether = 32;  // requests under way
// Pods, so that no job waits long for another one's. What the threads below put into the cache wakes this one at once.
constexpr std::size_t kInOneLook = 128;

// work(0) … work(count - 1), kTogether at a time: most of what it takes is waiting for the API server.
void together(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr thrown;  // the first, for the caller: a thread that throws ends the process
  const auto take_some = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    while (threads.size() + 1 < std::min(count, kTogether)) threads.emplace_back(take_some);
    take_some();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace

// And the Secrets of which no other pod mounts a part.
void JobShell::delete_pods(const Observed& o, const std::vector<std::string>& pods) {
  if (pods.empty()) return;
  std::vector<kube::Object> going;
  const auto secret_of = [&](const kube::Object& pod) { return secret_name({at_.name, uid_}, request_of(pod)); };
  std::set<std::string> unused, used;
  for (kube::Object& pod : cache_.find(kPod, kByJob, job_key(at_.name_space, at_.name))) {
    if (!is_ours(pod)) continue;
    const std::string name = kube::metadata_text(pod, "name");
    if (std::ranges::contains(pods, name)) {
      unused.insert(secret_of(pod));
      // The very pod that was decided on: another one of its name may have come since.
      if (const auto seen = o.pods.find(name);
          seen != o.pods.end() && seen->second.uid == kube::metadata_text(pod, "uid"))
        going.push_back(std::move(pod));
    } else if (!kube::is_being_deleted(pod)) {
      used.insert(secret_of(pod));
    }
  }
  together(going.size(), [&](std::size_t i) { delete_pod(going[i]); });
  for (const std::string& name : unused)
    if (!used.contains(name)) delete_secret(name);
}

void JobShell::delete_pod(const kube::Object& pod) {
  const kube::Key key = own(kPod, kube::metadata_text(pod, "name"));
  const auto removed = client_.remove(key, kube::metadata_text(pod, "uid"));
  // A conflict: it is gone, and another one has its name.
  if (!removed && removed.error().code != ErrorCode::kConflict && removed.error().code != ErrorCode::kNotFound)
    log_warning("deleting a pod failed", {{"pod", key.name}, {"error", removed.error().message}});
  if (auto left = client_.get(key))
    cache_.put(*left);
  else if (left.error().code == ErrorCode::kNotFound)
    cache_.drop(key);
}

// By name alone: the operator may not read Secrets, and the job's uid is part of the name.
void JobShell::delete_secret(const std::string& name) {
  const auto removed = client_.remove(own(kSecret, name), "");
  if (!removed && removed.error().code != ErrorCode::kNotFound)
    log_warning("deleting a Secret failed", {{"secret", name}, {"error", removed.error().message}});
}

// What is refused is tried again after a while, and told when the reason changes.
void JobShell::create_pods(const Observed& o, const std::vector<PodRequest>& requests) {
  const auto name_of = [&](const PodRequest& r) { return pod_name(o.job.metadata.name, r.rank, r.generation); };
  std::erase_if(not_created_, [&](const auto& entry) {
    return std::ranges::none_of(requests, [&](const PodRequest& r) { return name_of(r) == entry.first; });
  });
  const auto now = std::chrono::steady_clock::now();
  std::vector<const PodRequest*> due;
  for (const PodRequest& request : requests) {
    const auto before = not_created_.find(name_of(request));
    if (before != not_created_.end() && now < before->second.again) continue;
    // One of ours is seen by the next look; one that is not has to be told.
    if (const auto there = cache_.get(own(kPod, name_of(request))); !there || !is_ours(*there)) due.push_back(&request);
    if (due.size() == kInOneLook) break;
  }
  if (due.empty()) return;
  const auto image = image_defaults(o.job);
  std::vector<Result<void>> created(due.size());
  if (!image) {
    std::ranges::fill(created, std::unexpected(image.error()));
  } else {
    // Those of one Secret follow each other.
    const auto its_secret = [&](const PodRequest* r) { return secret_name({at_.name, uid_}, *r); };
    std::vector<std::size_t> first, keys(due.size());  // by Secret; which Secret, by pod
    for (std::size_t i = 0; i < due.size(); ++i) {
      if (i == 0 || its_secret(due[i]) != its_secret(due[i - 1])) first.push_back(i);
      keys[i] = first.size() - 1;
    }
    std::vector<Result<void>> secrets(first.size());
    together(first.size(), [&](std::size_t i) { secrets[i] = write_secret(o.job, *due[first[i]]); });
    together(due.size(), [&](std::size_t i) {
      created[i] = secrets[keys[i]];
      if (created[i]) created[i] = create_pod(o.job, *due[i], *image);
    });
  }
  bool quiet = false;  // told once: the others fared alike
  for (std::size_t i = 0; i < due.size(); ++i) {
    if (created[i]) {
      not_created_.erase(name_of(*due[i]));
    } else {
      note_not_created(o, *due[i], created[i].error(), quiet);
      quiet |= created[i].error().code == ErrorCode::kUnavailable;
    }
  }
}

void JobShell::note_not_created(const Observed& o, const PodRequest& request, const Error& error, bool quiet) {
  const std::string name = pod_name(o.job.metadata.name, request.rank, request.generation);
  const auto before = not_created_.find(name);
  const bool news = before == not_created_.end() || before->second.error.message != error.message;
  const Duration pause = news ? kFirstPause : std::min<Duration>(before->second.pause * 2, kLongestPause);
  not_created_.insert_or_assign(name, NotCreated{error, std::chrono::steady_clock::now() + pause, pause});
  if (!news || quiet) return;
  // What the API server refuses for the template's sake is its author's to put right, and told there.
  log(error.code == ErrorCode::kInvalid || error.code == ErrorCode::kRefused ? LogLevel::kInfo : LogLevel::kWarning,
      "making a pod failed",
      {{"job", job_key(at_.name_space, at_.name)}, {"rank", request.rank}, {"error", error.message}});
  events_.tell(o.job, {"Warning", "PodNotCreated", std::format("rank {}: {}", request.rank, error.message)});
}

// Read once for each image.
Result<ImageDefaults> JobShell::image_defaults(const crds::BspJob& job) {
  const json* app = crds::app_container(job.spec);
  check(app != nullptr, "a validated job has an app container");
  const std::string image = text_at(*app, "image");
  if (!options_.image_defaults) return ImageDefaults{};
  if (const auto known = images_.find(image); known != images_.end()) return known->second;
  BSP_TRY(ImageDefaults defaults, options_.image_defaults(image));
  images_[image] = defaults;
  return defaults;
}

Result<void> JobShell::create_pod(const crds::BspJob& job, const PodRequest& request, const ImageDefaults& image) {
  const std::string name = pod_name(job.metadata.name, request.rank, request.generation);
  kube::Object pod = make_pod(job, request, image, options_.pods);
  // Of what we send: what the server has added by the time that it is read back changes nothing about it.
  const std::string hash = net::sha256(pod.dump(-1, ' ', false, json::error_handler_t::replace));
  child(pod["metadata"], "annotations", json::value_t::object)[std::string(names::kAnnotationPodHash)] = hash;
  auto created = client_.create(pod);
  if (!created && created.error().code == ErrorCode::kConflict) {
    created = client_.get(own(kPod, name));
    const auto made_from = [](const kube::Object& there) {
      return text_at(part_at(part_at(there, "metadata"), "annotations"), names::kAnnotationPodHash);
    };
    if (created && (!is_ours(*created) || made_from(*created) != hash))
      return fail(ErrorCode::kUnavailable,
                  std::format("pod {} is there and was not made by the operator for this job; delete it: kubectl "
                              "delete pod {} -n {}",
                              name, name, at_.name_space),
                  true);
  }
  if (!created) {
    Error error = created.error();
    if (error.message.contains("violates PodSecurity"))
      error.message += std::format(
          "; the program's container needs more (see the chart's notes), so let the namespace admit it: kubectl "
          "label namespace {} pod-security.kubernetes.io/enforce=privileged --overwrite",
          at_.name_space);
    return std::unexpected(std::move(error));
  }
  cache_.put(*created);
  return {};
}

}  // namespace bsp::reconcile
