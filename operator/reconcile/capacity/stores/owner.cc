#include "operator/reconcile/capacity/stores/owner.h"

#include "base/json/fields.h"
#include "crds/names.h"
#include "operator/kube/fields.h"

namespace bsp::reconcile {

using kube::Object;

bool is_our_owner(const Object& owner) {
  return text_at(owner, "apiVersion") == names::kApiVersion && text_at(owner, "kind") == names::kBspJobKind &&
         flag_at(owner, "controller", false);
}

JobOwner owner_of(const Object& object) {
  for (const Object& owner : part_at(part_at(object, "metadata"), "ownerReferences"))
    if (is_our_owner(owner)) return {text_at(owner, "name"), text_at(owner, "uid")};
  return {};
}

std::string job_key(const std::string& name_space, const std::string& name) { return name_space + "/" + name; }

std::string job_key_of(const kube::Kind& kind, const Object& object) {
  std::string name;
  if (kind == kBspJob) name = kube::metadata_text(object, "name");
  if (kind == kPod || kind == kWorkload) name = owner_of(object).name;
  if (kind == kRankMigration) name = text_at(part_at(object, "spec"), "job");
  return name.empty() ? name : job_key(kube::metadata_text(object, "namespace"), name);
}

bool has_ended(const Object& pod) {
  const std::string phase = text_at(part_at(pod, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed";
}

}  // namespace bsp::reconcile
