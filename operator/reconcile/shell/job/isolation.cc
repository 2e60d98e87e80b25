#include "operator/reconcile/shell/job/isolation.h"

#include <chrono>
#include <utility>

#include "base/core/log.h"
#include "operator/kube/fields.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;

namespace {
constexpr auto kIsolatedFor = 5min;
constexpr auto kIsolateAgain = 1s;
}  // namespace

Result<void> NetworkIsolation::keep(const crds::BspJob& job) {
  if (!from_all_but_ || job.metadata.deletion_timestamp != Time{}) return {};
  {
    const std::lock_guard lock(state_->mutex);
    if (std::chrono::steady_clock::now() < state_->again) return {};
  }
  if (job.status.phase == crds::JobPhase::kPending)
    return write(client_, make_network_policy(job, *from_all_but_), *state_);
  calls_->once("isolate the pods", [&client = client_, job = job_ref_, state = state_,
                                    policy = make_network_policy(job, *from_all_but_)] {
    const Result<void> written = write(client, policy, *state);
    const std::lock_guard lock(state->mutex);
    if (written)
      state->not_isolated.clear();
    else if (state->not_isolated.is_news(written.error().message))
      log_warning("failed to write a job's NetworkPolicy", {{"job", job.key()}, {"error", written.error().message}});
  });
  return {};
}

Result<void> NetworkIsolation::write(kube::Client& client, const nlohmann::json& policy, State& state) {
  auto stored = client.update(policy);  // never read before: its name holds the job's uid
  if (!stored && stored.error().code == ErrorCode::kNotFound) stored = client.create(policy);
  const std::lock_guard lock(state.mutex);
  state.again = std::chrono::steady_clock::now() + (stored ? kIsolatedFor : kIsolateAgain);
  if (!stored) return std::unexpected(stored.error().in("NetworkPolicy " + kube::metadata_text(policy, "name")));
  return {};
}

}  // namespace bsp::reconcile
