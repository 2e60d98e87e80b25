#include "operator/reconcile/shell/job/isolation.h"

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
  const auto now = std::chrono::steady_clock::now();
  if (!from_all_but_ || job.metadata.deletion_timestamp != Time{} || now < again_) return {};
  // It is there since before there were pods, and a tenant's webhook that is asked about it must not hold up a wave.
  if (job.status.phase == crds::JobPhase::kMigrating) return {};
  const nlohmann::json policy = make_network_policy(job, *from_all_but_);
  auto stored = client_.update(policy);  // never read before: its name holds the job's uid
  if (!stored && stored.error().code == ErrorCode::kNotFound) stored = client_.create(policy);
  again_ = now + (stored ? kIsolatedFor : kIsolateAgain);
  if (stored) return not_isolated_.clear(), Result<void>();
  Error error = stored.error().in("NetworkPolicy " + kube::metadata_text(policy, "name"));
  if (job.status.phase == crds::JobPhase::kPending) return std::unexpected(std::move(error));
  if (not_isolated_.is_news(error.message))  // its pods run: that is worth more
    log_warning("failed to write a job's NetworkPolicy", {{"job", job_ref_.key()}, {"error", error.message}});
  return {};
}

}  // namespace bsp::reconcile
