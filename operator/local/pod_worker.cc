#include "operator/local/pod_worker.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <format>

#include "base/core/fault.h"
#include "base/core/guard.h"
#include "base/core/log.h"
#include "base/core/read_file.h"
#include "base/json/fields.h"
#include "operator/local/files.h"
#include "operator/local/network.h"
#include "operator/local/pod_logs.h"
#include "operator/local/pod_volumes.h"
#include "operator/local/podman.h"

namespace bsp::local {
namespace {

using namespace std::chrono_literals;
using kube::Object;
using std::chrono::steady_clock;

std::string text_now() { return to_rfc3339(SystemClock().now()); }

// The kubelet's reason for a container that couldn't be started.
std::string start_reason(const Error& error) {
  if (error.message.starts_with("image ") && error.code == ErrorCode::kNotFound) return "ErrImageNeverPull";
  if (error.message.starts_with("image ") && error.code == ErrorCode::kInvalid) return "InvalidImageName";
  if (error.code == ErrorCode::kNotFound || error.code == ErrorCode::kRefused) return "StartError";
  if (error.code == ErrorCode::kInvalid) return "CreateContainerConfigError";
  return "CreateContainerError";
}

}  // namespace

PodWorker::PodWorker(Store& store, Object pod, double node_cpu, bool adopt)
    : store_(store),
      pod_(std::move(pod)),
      name_(text_at(part_at(pod_, "metadata"), "name")),
      uid_(text_at(part_at(pod_, "metadata"), "uid")),
      node_cpu_(node_cpu),
      adopt_(adopt),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  check(static_cast<bool>(wake_), "eventfd");
  written_ = part_at(pod_, "status");
  known_containers_ = part_at(part_at(pod_, "spec"), "containers");
  remove_ = !part_at(part_at(pod_, "metadata"), "deletionTimestamp").is_null();
  thread_ = std::thread([this] {
    // A failure affects only this pod. Its object stays, and the node's next process finds it.
    if (const auto ended = guarded([&] { run(); }); !ended)
      log_error("failed to run pod", {{"pod", name_}, {"error", ended.error().message}});
  });
}

PodWorker::~PodWorker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

void PodWorker::remove_pod() {
  {
    const std::lock_guard lock(mutex_);
    remove_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
}

void PodWorker::refresh_files() {
  {
    const std::lock_guard lock(mutex_);
    refresh_ = true;
  }
  ::eventfd_write(wake_.get(), 1);
}

bool PodWorker::finished() const {
  const std::lock_guard lock(mutex_);
  return finished_;
}

void PodWorker::run() {
  bool removing = false;
  {
    const std::lock_guard lock(mutex_);
    removing = remove_;
  }
  const std::string phase = text_at(written_, "phase");
  const bool over = phase == "Succeeded" || phase == "Failed";
  if (!removing && !over) {
    if (auto prepared = prepare(); !prepared) {
      const Error& e = prepared.error();
      fail_pod(e.code == ErrorCode::kInvalid ? "CreateContainerConfigError" : "CreatePodSandboxError", e.message);
    } else {
      start_all();
    }
  }
  supervise();
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_ && !remove_) return;
    }
    auto removed = tear_down();
    if (removed) break;
    log_error("failed to remove pod, will retry", {{"pod", name_}, {"error", removed.error().message}});
    pollfd unused{-1, 0, 0};
    ::poll(&unused, 1, 500);
    const std::lock_guard lock(mutex_);
    if (stop_) return;
  }
  const std::lock_guard lock(mutex_);
  finished_ = true;
}

PlanInput PodWorker::plan_input() const {
  return {.store_dir = store_.directory(),
          .network_path = "",
          .pod_ip = "",
          .node_cpu = node_cpu_,
          .lookup = [this](const std::string& kind, const std::string& name) {
            return store_.get({{"v1", kind}, store_.options().name_space, name});
          }};
}

// Sets up network, volumes and the plan. Each step accepts what an earlier process has already done.
Result<void> PodWorker::prepare() {
  record_.start_time = text_at(written_, "startTime");
  if (record_.start_time.empty()) record_.start_time = text_now();
  PlanInput input = plan_input();
  // Reject an invalid pod before creating anything for it.
  BSP_TRY(const PodPlan checked, plan_pod(pod_, input));
  BSP_CHECK_OK(make_directories(pod_dir(input.store_dir, name_, uid_)));
  BSP_CHECK_OK(make_directories(log_dir(input.store_dir, name_)));
  const std::string about = log_dir(input.store_dir, name_) + "/pod.json";
  BSP_CHECK_OK(replace_file(
      about, about + ".tmp",
      Object{{"metadata", part_at(pod_, "metadata")}}.dump(-1, ' ', false, Object::error_handler_t::replace)));
  BSP_TRY(const PodNetwork network, Network(input.store_dir).attach(name_));
  input.network_path = network.path;
  input.pod_ip = record_.pod_ip = network.address;
  record_.host_ip = "10.88.0.1";
  BSP_TRY(plan_, plan_pod(pod_, input));
  if (!plan_.notes.empty()) {
    std::string fields;
    for (const std::string& note : plan_.notes) fields += (fields.empty() ? "" : ", ") + note;
    log_info("pod fields ignored in local mode", {{"pod", name_}, {"fields", fields}});
  }
  BSP_CHECK_OK(create_volumes(plan_.volumes));
  for (const ContainerPlan& c : plan_.containers) {
    record_.containers.push_back({.role = c.role,
                                  .name = c.name,
                                  .image = c.image,
                                  .reason = {},
                                  .message = {},
                                  .started_at = {},
                                  .finished_at = {}});
    containers_.push_back({.plan = c,
                           .record = record_.containers.size() - 1,
                           .pidfd = Fd(),
                           .outlet = Outlet::of_container(c.name, pod_, network.path)});
  }
  return {};
}

// If a Secret was deleted or can no longer be mounted, the pod keeps its files, as in Kubernetes.
void PodWorker::write_changed_files() {
  const auto reported = [&](const Error& error) {
    log_warning("failed to update a pod's files; the previous ones stay", {{"pod", name_}, {"error", error.message}});
  };
  const PlanInput input = plan_input();
  const auto volumes = plan_volumes(part_at(pod_, "spec"), input, pod_dir(input.store_dir, name_, uid_));
  if (!volumes) return reported(volumes.error());
  for (const VolumePlan& volume : *volumes)
    if (volume.type == VolumeType::kFiles)
      if (const auto written = write_files(volume); !written) reported(written.error());
}

void PodWorker::start_all() {
  for (Container& c : containers_) {
    {
      const std::lock_guard lock(mutex_);
      if (remove_ || stop_) return;
    }
    if (!start(c)) return;
    if (c.plan.role != ContainerRole::kInit) continue;
    while (record(c).phase == ContainerPhase::kRunning) {
      pollfd fds[2] = {{c.pidfd.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      ::poll(fds, 2, -1);
      if (fds[0].revents != 0) ended(c);
      const std::lock_guard lock(mutex_);
      if (remove_ || stop_) return;
    }
    if (record(c).exit_code != 0) {
      record_.reason = "InitContainerFailed";
      record_.message =
          std::format("init container {} exited with code {}: {}", c.plan.name, record(c).exit_code, record(c).message);
      publish();
      return;
    }
  }
  publish();
}

// The container's state that an earlier node process wrote: "running", "terminated" or "".
static std::string known_state(const Object& status, const std::string& name) {
  for (const char* list : {"containerStatuses", "initContainerStatuses"})
    for (const Object& c : part_at(status, list))
      if (text_at(c, "name") == name)
        for (const char* state : {"running", "terminated"})
          if (part_at(c, "state").contains(state)) return state;
  return "";
}

// False if the pod can't continue.
bool PodWorker::start(Container& c) {
  if (adopt_ && adopt(c, known_state(written_, c.plan.name))) return record_.reason.empty();
  fault_point("node.run");
  auto done = podman::call(c.plan.run_args);
  if (!done && done.error().code == ErrorCode::kConflict) {
    // A podman process that an earlier node process left behind has created it in the meantime.
    if (adopt(c, "")) return record_.reason.empty();
    done = podman::call(c.plan.run_args);
  }
  if (!done) {
    Error error = done.error();
    // podman::call doesn't know image and command; add them here.
    if (error.message.starts_with("image ") || error.message.starts_with("command "))
      error =
          error.message.starts_with("command ")
              ? Error{error.code, std::format("command {} not found in image {}",
                                              c.plan.command.empty() ? "of the image" : c.plan.command, c.plan.image)}
              : podman::translate("Error: image not known", c.plan.image, c.plan.command);
    (void)podman::remove_containers({c.plan.podman_name}, 0);
    record(c).reason = start_reason(error);
    record(c).message = error.message;
    fail_pod(record(c).reason, std::format("container {}: {}", c.plan.name, error.message));
    return false;
  }
  const auto pid = read_file(c.plan.pid_path);
  watch(c, pid ? std::atoi(pid->c_str()) : 0);
  record(c).started_at = text_now();
  record(c).cpu_limit = own_cpu_limit(pod_, c.plan.name);
  publish();
  return true;
}

// True if the container exists, or existed and is lost; false if it must be started.
bool PodWorker::adopt(Container& c, const std::string& known) {
  for (int attempt = 0; attempt < 200; ++attempt) {
    auto state = podman::inspect(c.plan.podman_name);
    if (!state) {
      fail_pod("CreateContainerError", state.error().message);
      return true;
    }
    if (!*state) {
      if (known.empty()) return false;
      // It ran and has disappeared. Starting it again would repeat work that it has already done.
      ContainerRecord& r = record(c);
      r.phase = ContainerPhase::kTerminated;
      r.exit_code = 137;
      r.reason = "ContainerStatusUnknown";
      r.message = "the container no longer exists in Podman's store";
      if (c.plan.role == ContainerRole::kSidecar) return false;
      publish();
      return true;
    }
    const podman::ContainerState& now = **state;
    if (now.status == "running" && now.pid > 0) {
      watch(c, now.pid);
      // The pid may have been reused before the pidfd was opened.
      if (auto again = podman::inspect(c.plan.podman_name);
          !again || !*again || (*again)->status != "running" || (*again)->pid != now.pid) {
        c.pidfd.reset();
        continue;
      }
      record(c).started_at = now.started_at;
      update_cpu(c);
      publish();
      return true;
    }
    if (now.status == "exited" || now.status == "stopped") {
      record(c).started_at = now.started_at;
      record(c).phase = ContainerPhase::kRunning;
      ended(c);
      return true;
    }
    if (now.status == "created" || now.status == "configured" || now.status == "initialized") {
      // Its process never ran.
      (void)podman::remove_containers({c.plan.podman_name}, 0);
      return false;
    }
    pollfd unused{-1, 0, 0};
    ::poll(&unused, 1, 50);  // stopping, removing: wait until it is over
  }
  fail_pod("CreateContainerError", std::format("container {} neither runs nor exits", c.plan.name));
  return true;
}

void PodWorker::watch(Container& c, int pid) {
  ContainerRecord& r = record(c);
  // Further pods of the job are made of the same image, whatever its name stands for by then.
  if (c.plan.role == ContainerRole::kSidecar && r.image_id.empty())
    r.image_id = podman::image_of_container(c.plan.podman_name);
  r.phase = ContainerPhase::kRunning;
  r.reason.clear();
  r.message.clear();
  c.started = steady_clock::now();
  if (pid > 0) c.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  // Without a pidfd, the process has already exited, and supervise() asks Podman at once.
}

bool PodWorker::wants_restart(const Container& c) const {
  if (c.plan.role == ContainerRole::kSidecar) return true;
  if (c.plan.role == ContainerRole::kInit) return false;
  const ContainerRecord& r = record_.containers[c.record];
  return plan_.restart == RestartPolicy::kAlways || (plan_.restart == RestartPolicy::kOnFailure && r.exit_code != 0);
}

// Its first process has exited: asks Podman for the result, which knows it a few ms after the kernel.
void PodWorker::ended(Container& c) {
  c.pidfd.reset();
  ContainerRecord& r = record(c);
  r.phase = ContainerPhase::kTerminated;
  r.exit_code = 137;
  r.reason = "ContainerStatusUnknown";
  r.message = "the container no longer exists in Podman's store";
  const auto deadline = steady_clock::now() + 5s;
  while (steady_clock::now() < deadline) {
    auto state = podman::inspect(c.plan.podman_name);
    if (state && !*state) break;
    if (state && ((*state)->status == "exited" || (*state)->status == "stopped")) {
      r.exit_code = (*state)->exit_code;
      r.finished_at = (*state)->finished_at;
      r.reason = (*state)->out_of_memory ? "OOMKilled" : r.exit_code == 0 ? "Completed" : "Error";
      r.message = r.exit_code == 0 ? "" : log_tail(c.plan.log_path, 10, 2048);
      break;
    }
    pollfd unused{-1, 0, 0};
    ::poll(&unused, 1, 10);
  }
  r.will_restart = wants_restart(c) && r.reason != "ContainerStatusUnknown";
  if (r.will_restart) {
    // Restart at once the first time, then with exponential backoff.
    if (steady_clock::now() - c.started > 10s) c.quick_deaths = 0;
    const auto pause = c.quick_deaths == 0 ? 0ms : std::min(10'000ms, 100ms * (1 << std::min(c.quick_deaths - 1, 7u)));
    ++c.quick_deaths;
    c.restart_at = steady_clock::now() + pause;
  }
  log_info("container ended",
           {{"pod", name_}, {"container", c.plan.name}, {"code", r.exit_code}, {"reason", r.reason}});
  publish();
}

void PodWorker::restart(Container& c) {
  ContainerRecord& r = record(c);
  auto done = podman::call({"start", c.plan.podman_name});
  if (!done) {
    r.message = done.error().message;
    c.restart_at = steady_clock::now() + 1s;
    if (done.error().code == ErrorCode::kNotFound) r.will_restart = false;
    publish();
    return;
  }
  ++r.restarts;
  r.will_restart = false;
  r.started_at = text_now();
  const auto pid = read_file(c.plan.pid_path);
  watch(c, pid ? std::atoi(pid->c_str()) : 0);
  publish();
}

// Waits on the pidfds until the pod is to be removed or the node stops.
void PodWorker::supervise() {
  bool sidecars_stopped = false;
  for (;;) {
    bool refresh = false;
    Object resized;
    {
      const std::lock_guard lock(mutex_);
      if (stop_ || remove_) return;
      std::swap(refresh, refresh_);
      std::swap(resized, resized_);
    }
    if (refresh) write_changed_files();
    if (!resized.is_null()) take_resize(std::move(resized));
    const std::string phase = pod_phase(record_);
    const bool over = containers_.empty() || phase == "Succeeded" || phase == "Failed";
    if (over && !sidecars_stopped) {
      stop_sidecars();
      sidecars_stopped = true;
      continue;
    }
    std::vector<pollfd> fds{{wake_.get(), POLLIN, 0}};
    std::vector<Container*> whose{nullptr};
    int timeout = -1;
    for (Container& c : containers_) {
      ContainerRecord& r = record(c);
      if (r.phase == ContainerPhase::kRunning) {
        if (!c.pidfd) {
          ended(c);
          timeout = 0;
          continue;
        }
        fds.push_back({c.pidfd.get(), POLLIN, 0});
        whose.push_back(&c);
      } else if (r.will_restart && !over) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(c.restart_at - steady_clock::now());
        const int ms = static_cast<int>(std::max<std::int64_t>(0, left.count()));
        timeout = timeout < 0 ? ms : std::min(timeout, ms);
      }
    }
    ::poll(fds.data(), fds.size(), timeout);
    if (fds[0].revents != 0) {
      eventfd_t ignored = 0;
      ::eventfd_read(wake_.get(), &ignored);
    }
    for (std::size_t i = 1; i < fds.size(); ++i)
      if (fds[i].revents != 0) ended(*whose[i]);
    for (Container& c : containers_)
      if (record(c).will_restart && !over && steady_clock::now() >= c.restart_at) {
        const std::lock_guard lock(mutex_);
        if (stop_ || remove_) return;
        restart(c);
      }
  }
}

// Stops the sidecars once the pod's own containers have exited, as a kubelet does.
void PodWorker::stop_sidecars() {
  for (Container& c : containers_) {
    ContainerRecord& r = record(c);
    if (c.plan.role != ContainerRole::kSidecar) continue;
    if (r.phase == ContainerPhase::kRunning) {
      (void)podman::call({"stop", "-t", "1", c.plan.podman_name});
      ended(c);
    }
    r.will_restart = false;
  }
  publish();
}

// Removes containers first and the object last: if this process is killed in between, the next node process finds the
// object and continues.
Result<void> PodWorker::tear_down() {
  const std::string dir = store_.directory();
  std::vector<std::string> apps;
  std::vector<std::string> others;
  for (const char* list : {"containers", "initContainers"}) {
    for (const Object& c : part_at(part_at(pod_, "spec"), list)) {
      const std::string container = podman_name(dir, name_, text_at(c, "name"));
      (std::string(list) == "containers" ? apps : others).push_back(container);
    }
  }
  for (Container& c : containers_) {
    c.pidfd.reset();
    c.outlet.reset();
  }
  BSP_CHECK_OK(podman::remove_containers(apps, grace_seconds(pod_)));
  BSP_CHECK_OK(podman::remove_containers(others, 0));
  fault_point("node.tearDown");
  BSP_CHECK_OK(remove_mounted_tree(pod_dir(dir, name_, uid_)));
  BSP_CHECK_OK(Network(dir).detach(name_));
  return store_.purge({kPod, store_.options().name_space, name_}, uid_);
}

void PodWorker::fail_pod(const std::string& reason, const std::string& message) {
  record_.reason = reason;
  record_.message = message;
  log_warning("pod failed", {{"pod", name_}, {"reason", reason}, {"message", message}});
  publish();
}

void PodWorker::publish() {
  for (ContainerRecord& r : record_.containers) r.will_restart = r.will_restart && record_.reason.empty();
  const Object status = pod_status(record_, written_, SystemClock().now());
  if (status == written_) return;
  Object object = {{"apiVersion", "v1"},
                   {"kind", "Pod"},
                   {"metadata", {{"name", name_}, {"namespace", store_.options().name_space}, {"uid", uid_}}},
                   {"status", status}};
  auto done = store_.update_status(object);
  if (done) written_ = status;
  // If the pod was deleted or recreated, the node notifies this worker.
  else if (done.error().code != ErrorCode::kNotFound && done.error().code != ErrorCode::kConflict)
    log_error("failed to write pod status", {{"pod", name_}, {"error", done.error().message}});
}

}  // namespace bsp::local
