// before-uninstall: what `helm uninstall` runs first. Only the operator removes its finalizer from jobs: without it the jobs,
// their pods and their PodDisruptionBudgets would stay, and the budgets would refuse every drain.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <format>
#include <map>
#include <ranges>
#include <vector>

#include "crds/names.h"
#include "operator/cli/exit_code.h"
#include "operator/controller/options.h"
#include "operator/controller/run.h"
#include "operator/kinds.h"
#include "operator/kube/api_client.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/shell/holds.h"

namespace bsp::controller {
namespace {

using Steady = std::chrono::steady_clock;
using kube::Object;
using Jobs = std::map<std::string, Object>;  // by NAMESPACE/NAME

constexpr std::size_t kNamed = 5;           // jobs in a message
constexpr std::chrono::minutes kStale{10};  // clocks of nodes may differ by minutes

// One that an operator has seen has its finalizer.
bool is_held(const kube::Object& job) {
  const auto& finalizers = part_at(part_at(job, "metadata"), "finalizers");
  return std::ranges::any_of(finalizers, [](const auto& f) { return f == names::kFinalizer; });
}

kube::Key key_of(const kube::Object& job) {
  return {kBspJob, kube::metadata_text(job, "namespace"), kube::metadata_text(job, "name")};
}

std::string names_of(const Jobs& jobs) {
  std::string text;
  for (const auto& [name, job] : jobs | std::views::take(kNamed)) text += (text.empty() ? "" : ", ") + name;
  return jobs.size() > kNamed ? std::format("{} and {} more", text, jobs.size() - kNamed) : text;
}

std::string count_of(const Jobs& jobs) {
  return jobs.size() == 1 ? "1 BSPJob" : std::format("{} BSPJobs", jobs.size());
}

class HeldJobs {
 public:
  HeldJobs(kube::ApiClient& client, const BeforeUninstallOptions& o)
      : client_(client), only_(o.name_spaces), holder_(o.holder) {}

  // Waits for changes up to `limit`; at first it returns as soon as it knows all jobs.
  Result<void> follow(std::chrono::milliseconds limit) {
    const auto events = client_.wait({kBspJob}, only_.size() == 1 ? only_.front() : "", cursor_, limit);
    if (!events) return std::unexpected(events.error());
    for (const kube::WatchEvent& event : *events) {
      const kube::Key at = key_of(event.object);
      if (!only_.empty() && !std::ranges::contains(only_, at.name_space)) continue;
      if (is_anothers(at.name_space)) continue;
      const std::string name = at.name_space + "/" + at.name;
      if (event.type != kube::EventType::kDeleted && is_held(event.object))
        jobs_[name] = event.object;
      else
        jobs_.erase(name);
    }
    return {};
  }
  [[nodiscard]] const Jobs& jobs() const { return jobs_; }

  // All that aren't going already.
  Result<void> remove() {
    for (const auto& [name, job] : jobs_) {
      if (!kube::metadata_text(job, "deletionTimestamp").empty()) continue;
      const auto removed = client_.remove(key_of(job), kube::metadata_text(job, "uid"));
      if (!removed && removed.error().code != ErrorCode::kNotFound && removed.error().code != ErrorCode::kConflict)
        return removed;
    }
    return {};
  }

 private:
  // Another release manages the namespace's jobs, and has said so lately.
  bool is_anothers(const std::string& name_space) {
    if (holder_.empty()) return false;
    const auto [known, is_new] = of_another_.try_emplace(name_space, false);
    if (!is_new) return known->second;
    const auto lease = client_.get({kube::kLease, name_space, reconcile::NamespaceHolds::lease_name()});
    if (!lease) return false;
    const Object& spec = part_at(*lease, "spec");
    const std::string holder = text_at(spec, "holderIdentity");
    const Time renewed = from_rfc3339(text_at(spec, "renewTime"));
    known->second = !holder.empty() && holder != holder_ && SystemClock{}.now() < renewed + kStale;
    if (known->second) std::printf("the jobs of namespace %s are left to %s\n", name_space.c_str(), holder.c_str());
    return known->second;
  }

  kube::ApiClient& client_;
  const std::vector<std::string> only_;
  const std::string holder_;
  std::map<std::string, bool> of_another_;  // by namespace
  std::string cursor_;
  Jobs jobs_;
};

Result<void> delete_all(HeldJobs& held, unsigned seconds) {
  std::printf("deleting %s: %s\n", count_of(held.jobs()).c_str(), names_of(held.jobs()).c_str());
  std::fflush(stdout);
  for (const auto deadline = Steady::now() + std::chrono::seconds(seconds); !held.jobs().empty();) {
    BSP_CHECK_OK(held.remove());
    BSP_CHECK_OK(held.follow(std::chrono::seconds(1)));
    if (!held.jobs().empty() && Steady::now() > deadline)
      return fail(ErrorCode::kTimeout,
                  std::format("{} did not go within {} s: {}; see why the operator doesn't end them, or remove their "
                              "finalizers: kubectl patch bspjob NAME -n NAMESPACE --type=merge "
                              "-p '{{\"metadata\":{{\"finalizers\":null}}}}'",
                              count_of(held.jobs()), seconds, names_of(held.jobs())));
  }
  return {};
}

Result<void> ask(const BeforeUninstallOptions& o) {
  BSP_TRY(const kube::Config config, kube::load_config({.kubeconfig = o.kubeconfig, .context = o.context}));
  BSP_TRY(const auto client, kube::ApiClient::create(config));
  // Without the CustomResourceDefinition there is no job. wait() would wait for it.
  const std::string where = o.name_spaces.size() == 1 ? o.name_spaces.front() : "";
  if (const auto found = client->list(kBspJob, where); !found)
    return found.error().message.contains("doesn't serve") ? Result<void>() : std::unexpected(found.error());
  HeldJobs held(*client, o);
  BSP_CHECK_OK(held.follow(std::chrono::seconds(1)));
  if (held.jobs().empty()) return {};
  if (o.remove) return delete_all(held, o.timeout_seconds);
  return fail(
      ErrorCode::kUnavailable,
      std::format("{} would be left with their pods, finalizers and PodDisruptionBudgets, which only the operator "
                  "removes, and drains would wait for ever: {}; delete them (kubectl delete bspjobs NAME -n NAMESPACE) "
                  "and uninstall again, or keep the release (helm rollback)",
                  count_of(held.jobs()), names_of(held.jobs())));
}

}  // namespace

Result<int> before_uninstall(std::span<const std::string> words) {
  BSP_TRY(const auto options, parse_before_uninstall_options(words));
  BSP_CHECK_OK(ask(options));
  return cli::kDone;
}

}  // namespace bsp::controller
