#include "operator/reconcile/kernel/network_policy.h"

#include "crds/names.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::reconcile {

using nlohmann::json;

json make_network_policy(const crds::BspJob& job, const OperatorPods& from) {
  const json own_pods = {{"matchLabels", {{std::string(names::kLabelJob), job.metadata.name}}}};
  // Open MPI listens at a port that the kernel chooses, so all of TCP is named.
  const json of_each_other = {{"from", {{{"podSelector", own_pods}}}}, {"ports", {{{"protocol", "TCP"}}}}};
  const json of_the_operator = {
      {"from",
       {{{"namespaceSelector", {{"matchLabels", {{"kubernetes.io/metadata.name", from.name_space}}}}},
         {"podSelector", {{"matchLabels", from.labels}}}}}},
      {"ports", {{{"protocol", "TCP"}, {"port", names::kSidecarPort}}}}};
  return {{"apiVersion", "networking.k8s.io/v1"},
          {"kind", "NetworkPolicy"},
          {"metadata", metadata_of_object(job, name_of_job({job.metadata.name, job.metadata.uid}))},
          {"spec",
           {{"podSelector", own_pods}, {"policyTypes", {"Ingress"}}, {"ingress", {of_each_other, of_the_operator}}}}};
}

}  // namespace bsp::reconcile
