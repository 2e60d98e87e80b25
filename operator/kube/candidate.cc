// The decisions of one candidate (leader.h), apart from the client of an API server: whoever holds a Lease uses them.
#include <time.h>

#include <algorithm>

#include "operator/kube/fields.h"
#include "operator/kube/leader.h"

namespace bsp::kube {
namespace {

Duration duration_in(const Object& spec) {
  const Object& seconds = part_at(spec, "leaseDurationSeconds");
  return std::chrono::seconds(
      seconds.is_number_integer() ? std::clamp<std::int64_t>(seconds.get<std::int64_t>(), 0, 3600) : 0);
}

std::int64_t transitions_in(const Object& spec) {
  const Object& count = part_at(spec, "leaseTransitions");
  return count.is_number_integer() ? count.get<std::int64_t>() : 0;
}

}  // namespace

Duration boot_time() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

std::optional<Object> Candidate::next(const Object* lease, Duration now, Time wall) {
  Object written = lease ? *lease
                         : Object{{"apiVersion", kLease.api_version},
                                  {"kind", kLease.kind},
                                  {"metadata", {{"name", options_.name}, {"namespace", options_.name_space}}}};
  Object& spec = written["spec"];
  if (!spec.is_object()) spec = Object::object();
  holder_ = text_at(spec, "holderIdentity");
  if (!holder_.empty() && holder_ != options_.identity) {
    // Ignore the holder's clock: what counts is when we saw the lease change. A new version of the object counts as a
    // renewal too, whoever wrote it.
    const std::string sign = holder_ + text_at(spec, "renewTime") + metadata_text(written, "resourceVersion");
    if (sign != seen_) {
      seen_ = sign;
      seen_at_ = now;
    }
    if (now < seen_at_ + std::max<Duration>(options_.duration, duration_in(spec))) return std::nullopt;
  }
  if (holder_ != options_.identity) {
    spec["acquireTime"] = to_rfc3339(wall);
    spec["leaseTransitions"] = transitions_in(spec) + (lease ? 1 : 0);
  }
  spec["holderIdentity"] = options_.identity;
  spec["leaseDurationSeconds"] = std::chrono::ceil<std::chrono::seconds>(options_.duration).count();
  spec["renewTime"] = to_rfc3339(wall);
  return written;
}

std::optional<Object> Candidate::release(const Object& lease, Time wall) {
  holder_ = text_at(part_at(lease, "spec"), "holderIdentity");
  if (holder_ != options_.identity) return std::nullopt;
  holder_.clear();
  Object written = lease;
  written["spec"]["holderIdentity"] = "";
  written["spec"]["leaseDurationSeconds"] = 1;
  written["spec"]["renewTime"] = to_rfc3339(wall);
  return written;
}

}  // namespace bsp::kube
