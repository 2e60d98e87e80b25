// Where pods run, and what depends on that. In a cluster its scheduler chooses the node, within the rank's Set;
// on one machine the job's own mapping does. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

#include "base/core/clock.h"
#include "base/core/error.h"
#include "crds/names.h"

namespace bsp::crds {
struct BspJob;
struct BspJobSpec;
}  // namespace bsp::crds

namespace bsp::reconcile {

struct PodRequest;

// How /bsp comes into the app container.
enum class RuntimeDelivery {
  kImageVolume,  // the runtime image, mounted
  kCopy,         // an init container copies it into an emptyDir: nodes without image volumes
};

struct PodOptions {
  bool scheduled = false;  // by a scheduler; else PodRequest::node is the pod's node
  std::string runtime_image = std::string(names::kRuntimeImage);
  std::string pull_policy = "IfNotPresent";  // of the runtime image
  RuntimeDelivery delivery = RuntimeDelivery::kImageVolume;
  // hostUsers: false unless the template says something else: capabilities and root then mean nothing on the host.
  bool user_namespace = false;
  Duration start = std::chrono::minutes(5);  // JobLimits::start
};

// Selects the nodes for which the runtime is built. A template that names another platform keeps it, and no node fits.
void require_platform(nlohmann::json& spec);

// Completes a PodSpec: node or node affinity, how long it may take to end, its user namespace.
void place_pod(nlohmann::json& spec, const crds::BspJob& job, const PodRequest& request, const PodOptions& options);

// Where the image's configuration can't be read, the template has to name command and user. kInvalid names the field.
Result<void> check_without_image(const crds::BspJobSpec& spec);

}  // namespace bsp::reconcile
