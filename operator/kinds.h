// The kinds of objects that the operator reads and writes, as the API names them.
#pragma once

#include <string>

#include "crds/names.h"
#include "operator/kube/client.h"

namespace bsp {

inline const kube::Kind kPod{"v1", "Pod"};
inline const kube::Kind kNode{"v1", "Node"};
inline const kube::Kind kNamespace{"v1", "Namespace"};
inline const kube::Kind kSecret{"v1", "Secret"};
inline const kube::Kind kConfigMap{"v1", "ConfigMap"};
inline const kube::Kind kNetworkPolicy{"networking.k8s.io/v1", "NetworkPolicy"};
inline const kube::Kind kDisruptionBudget{"policy/v1", "PodDisruptionBudget"};
inline const kube::Kind kValidatingWebhookConfiguration{"admissionregistration.k8s.io/v1",
                                                        "ValidatingWebhookConfiguration"};
inline const kube::Kind kWorkload{"kueue.x-k8s.io/v1beta2", "Workload"};  // Kueue's
inline const kube::Kind kEvent{"events.k8s.io/v1", "Event"};
inline const kube::Kind kBspJob{std::string(names::kApiVersion), std::string(names::kBspJobKind)};
inline const kube::Kind kRankMigration{std::string(names::kApiVersion), std::string(names::kRankMigrationKind)};

}  // namespace bsp
