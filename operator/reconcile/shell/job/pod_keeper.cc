#include "operator/reconcile/shell/job/pod_keeper.h"

#include <algorithm>
#include <atomic>
#include <format>
#include <utility>

#include "base/core/log.h"
#include "base/net/sha256.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/kernel/json_child.h"
#include "operator/reconcile/shell/credentials.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {

// Pods being made at once, so that no job has the threads for long.
constexpr std::size_t kAtOnce = 128;

// Pods whose making is under way, until it has ended one way or another: what is thrown meanwhile leaves none behind.
class UnderWay {
 public:
  UnderWay(PodMaker& maker, std::vector<std::string> pods) : maker_(maker), pods_(std::move(pods)) {}
  ~UnderWay() {
    for (const std::string& pod : pods_) maker_.end(pod, made_);
  }
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;

  void end(Result<void> made) { made_ = std::move(made); }
  void hand_on() { pods_.clear(); }  // another call ends them

 private:
  PodMaker& maker_;
  std::vector<std::string> pods_;
  Result<void> made_ = fail(ErrorCode::kFailed, "an error of the operator itself", true);
};

}  // namespace

// --- Requests ------------------------------------------------------------------------------------------
Result<void> PodMaker::create(const crds::BspJob& job, const PodRequest& request, const ImageDefaults& image) {
  const std::string name = pod_name(job.metadata.name, request.rank, request.generation);
  PodOptions options = options_.pods;
  options.start = options_.job_limits.start;
  kube::Object pod = make_pod(job, request, image, options);
  // The hash is of what we send, so what the server adds before it is read back doesn't change it.
  const std::string hash = net::sha256(pod.dump(-1, ' ', false, json::error_handler_t::replace));
  child(pod["metadata"], "annotations", json::value_t::object)[std::string(names::kAnnotationPodHash)] = hash;
  auto created = client_.create(pod);
  if (!created && created.error().code == ErrorCode::kConflict) {
    created = client_.get(job_.own(kPod, name));
    const auto made_from = [](const kube::Object& there) {
      return text_at(part_at(part_at(there, "metadata"), "annotations"), names::kAnnotationPodHash);
    };
    if (created && (!job_.owns(*created) || made_from(*created) != hash))
      return fail(ErrorCode::kUnavailable,
                  std::format("pod {} exists and was not made by the operator for this job; delete it: kubectl "
                              "delete pod {} -n {}",
                              name, name, job_.at.name_space),
                  true);
  }
  if (!created) {
    Error error = created.error();
    if (error.message.contains("violates PodSecurity"))
      error.message += std::format(
          "; the program's container needs more (see the chart's notes), so let the namespace admit it: kubectl "
          "label namespace {} pod-security.kubernetes.io/enforce=privileged --overwrite",
          job_.at.name_space);
    // The kubelet's and the quota's own word for a container without requests or limits ("must specify limits.cpu for: …").
    if (error.message.contains("must specify "))
      error.message +=
          "; give them to the operator's containers in spec.sidecar.resources, and to the others in "
          "spec.template.spec.containers[].resources";
    return std::unexpected(std::move(error));
  }
  cache_.put(*created);
  return {};
}

// Read once for each image.
Result<ImageDefaults> PodMaker::image_defaults(const crds::BspJob& job) {
  const json* app = crds::app_container(job.spec);
  check(app != nullptr, "a validated job has an app container");
  if (!options_.image_defaults) return ImageDefaults{};
  const std::string image = text_at(*app, "image");
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = images_.find(image); known != images_.end()) return known->second;
  }
  BSP_TRY(ImageDefaults defaults, options_.image_defaults(image));
  const std::lock_guard lock(mutex_);
  images_[image] = defaults;
  return defaults;
}

void PodMaker::remove(const kube::Object& pod) {
  const kube::Key key = job_.own(kPod, kube::metadata_text(pod, "name"));
  const auto removed = client_.remove(key, kube::metadata_text(pod, "uid"));
  // A conflict: it is gone, and another one has its name.
  if (!removed && removed.error().code != ErrorCode::kConflict && removed.error().code != ErrorCode::kNotFound)
    log_warning("failed to delete a pod", {{"pod", key.name}, {"error", removed.error().message}});
  if (auto left = client_.get(key))
    cache_.put(*left);
  else if (left.error().code == ErrorCode::kNotFound)
    cache_.drop(key);
}

Result<void> PodMaker::write_secret(const crds::BspJob& job, const PodRequest& request, const Signer& signer) {
  const std::string name = secret_name({job_.at.name, job_.uid}, request);
  std::set<std::string> pods{pod_name(job_.at.name, request.rank, request.generation)};
  if (!request.target) {
    const std::size_t first = request.rank - request.rank % kPodsPerSecret;
    const std::size_t end = std::min<std::size_t>(first + kPodsPerSecret, job.status.ranks.size());
    for (std::size_t rank = first; rank < end; ++rank)  // the pod is named after the rank in its first seat
      if (job.status.ranks[rank].local == 0) pods.insert(job.status.ranks[rank].pod);
    for (const kube::Object& pod : cache_.find(kPod, kByJob, job_.key()))
      if (secret_name({job_.at.name, job_.uid}, request_of(pod)) == name) pods.insert(kube::metadata_text(pod, "name"));
  }
  std::map<std::string, std::string> files{{"ca.pem", signer.ca.certificate}};
  for (const std::string& pod : pods) {
    BSP_TRY(net::PemPair pair, net::issue_certificate(signer.ca, {.identity = pod,
                                                                  .dns_names = {},
                                                                  .addresses = {},
                                                                  .not_before = SystemClock{}.now() - kBackDated,
                                                                  .not_after = signer.end}));
    files[certificate_file(pod)] = std::move(pair.certificate);
    files[key_file(pod)] = std::move(pair.key);
  }
  const kube::Object secret = make_secret(job, name, files);
  auto stored = client_.create(secret);
  // One of that name may be ours or an earlier operator's, or from someone who knows the job's uid: replace it by our own.
  if (!stored && stored.error().code == ErrorCode::kConflict) stored = client_.update(secret);
  if (!stored) return std::unexpected(stored.error().in("Secret " + name));
  return {};
}

void PodMaker::remove_unused(const std::set<std::string>& secrets) {
  std::set<std::string> used;
  for (const kube::Object& pod : cache_.find(kPod, kByJob, job_.key()))
    if (job_.owns(pod) && !kube::is_being_deleted(pod))
      used.insert(secret_name({job_.at.name, job_.uid}, request_of(pod)));
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [pod, secret] : being_made_) used.insert(secret);
  }
  for (const std::string& name : secrets) {
    if (used.contains(name)) continue;
    // By name alone: the operator may not read Secrets, and the job's uid is part of the name.
    const auto removed = client_.remove(job_.own(kSecret, name), "");
    if (!removed && removed.error().code != ErrorCode::kNotFound)
      log_warning("failed to delete a Secret", {{"secret", name}, {"error", removed.error().message}});
  }
}

void PodMaker::begin(const std::vector<std::string>& pods, const std::string& secret) {
  const std::lock_guard lock(mutex_);
  for (const std::string& pod : pods) being_made_[pod] = secret;
}

void PodMaker::end(const std::string& pod, Result<void> made) {
  const std::lock_guard lock(mutex_);
  being_made_.erase(pod);
  results_.insert_or_assign(pod, std::move(made));
}

std::set<std::string> PodMaker::being_made() const {
  const std::lock_guard lock(mutex_);
  std::set<std::string> pods;
  for (const auto& [pod, secret] : being_made_) pods.insert(pod);
  return pods;
}

std::map<std::string, Result<void>> PodMaker::take_results() {
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

// --- What of it is under way ---------------------------------------------------------------------------
void PodKeeper::take_results() {
  bool quiet = false;  // logged once for pods that fail alike
  for (const auto& [pod, made] : maker_->take_results()) {
    if (made) {
      refused_.erase(pod);
      continue;
    }
    note_refused(pod, made.error(), quiet);
    quiet |= made.error().code == ErrorCode::kUnavailable;
  }
}

void PodKeeper::add_refused(Observed& o) const {
  for (const auto& [pod, refused] : refused_) o.not_created.emplace(pod, refused.error);
}

void PodKeeper::note_refused(const std::string& pod, const Error& error, bool quiet) {
  const auto before = refused_.find(pod);
  const bool news = before == refused_.end() || before->second.error.message != error.message;
  Refused& refused = refused_[pod];
  if (news) refused.tries.reset();
  refused.error = error;
  refused.again = std::chrono::steady_clock::now() + refused.tries.next();
  if (!news || quiet) return;
  // What the API server refuses because of the template, its author has to correct; the event says so.
  log(error.code == ErrorCode::kInvalid || error.code == ErrorCode::kRefused ? LogLevel::kInfo : LogLevel::kWarning,
      "failed to create a pod", {{"job", job_.key()}, {"pod", pod}, {"error", error.message}});
  events_.add({"Warning", "PodNotCreated", std::format("pod {}: {}", pod, error.message)});
}

void PodKeeper::create(const Observed& o, const std::vector<PodRequest>& requests,
                       const std::shared_ptr<const Signer>& signer) {
  const auto name_of = [&](const PodRequest& r) { return pod_name(job_.at.name, r.rank, r.generation); };
  std::erase_if(refused_, [&](const auto& entry) {
    return !o.being_made.contains(entry.first) &&
           std::ranges::none_of(requests, [&](const PodRequest& r) { return name_of(r) == entry.first; });
  });
  const auto now = std::chrono::steady_clock::now();
  std::map<std::string, std::vector<PodRequest>> due;  // by Secret
  std::size_t under_way = o.being_made.size();
  for (const PodRequest& request : requests) {
    if (under_way == kAtOnce) break;
    const std::string name = name_of(request);
    const auto before = refused_.find(name);
    if (before != refused_.end() && now < before->second.again) continue;
    // The next reconcile sees a pod of ours. One of that name that isn't ours has to be reported.
    if (const auto there = cache_.get(job_.own(kPod, name)); there && job_.owns(*there)) continue;
    due[secret_name({job_.at.name, job_.uid}, request)].push_back(request);
    ++under_way;
  }
  if (due.empty()) return;
  const auto job = std::make_shared<const crds::BspJob>(o.job);
  for (auto& [secret, pods] : due) {
    std::vector<std::string> names;
    std::ranges::transform(pods, std::back_inserter(names), name_of);
    maker_->begin(names, secret);
    calls_->once("create the pods from " + names.front(), [maker = maker_, calls = calls_, job, signer, names,
                                                           pods = std::move(pods)] {
      UnderWay all(*maker, names);
      const auto image = maker->image_defaults(*job);
      if (!image) return all.end(std::unexpected(image.error()));
      if (auto keys = maker->write_secret(*job, pods.front(), *signer); !keys) return all.end(keys);
      all.hand_on();
      for (std::size_t i = 0; i < pods.size(); ++i)
        calls->once("create Pod " + names[i], [maker, job, name = names[i], pod = pods[i], image = *image] {
          UnderWay one(*maker, {name});
          one.end(maker->create(*job, pod, image));
        });
    });
  }
}

void PodKeeper::remove(const Observed& o, const std::vector<std::string>& pods) {
  if (pods.empty()) return;
  std::vector<kube::Object> going;
  for (const std::string& name : pods) {
    auto pod = cache_.get(job_.own(kPod, name));
    // By uid: there may be another pod of that name by now.
    if (const auto seen = o.pods.find(name);
        pod && job_.owns(*pod) && seen != o.pods.end() && seen->second.uid == kube::metadata_text(*pod, "uid"))
      going.push_back(std::move(*pod));
  }
  remove(std::move(going));
}

// And the Secrets of which no other pod mounts a part.
void PodKeeper::remove(std::vector<kube::Object> pods) {
  struct Batch {
    std::set<std::string> secrets;
    std::atomic<std::size_t> left;
  };
  auto batch = std::make_shared<Batch>();
  for (const kube::Object& pod : pods) batch->secrets.insert(secret_name({job_.at.name, job_.uid}, request_of(pod)));
  batch->left = pods.size();
  for (kube::Object& pod : pods) {
    const std::string name = kube::metadata_text(pod, "name");
    const bool begun = calls_->once("delete Pod " + name, [maker = maker_, batch, pod = std::move(pod)] {
      maker->remove(pod);
      if (--batch->left == 0) maker->remove_unused(batch->secrets);
    });
    if (!begun) --batch->left;
  }
}

Duration PodKeeper::until_next_try(Duration most) const {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [pod, refused] : refused_) most = std::min<Duration>(most, refused.again - now);
  return most;
}

}  // namespace bsp::reconcile
