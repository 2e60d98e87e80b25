// Who owns an object, and whether it still takes capacity on its node.
#pragma once

#include <string>

#include "operator/kinds.h"

namespace bsp::reconcile {

// The BSPJob that controls an object, by its owner reference: anyone may set a label. Both empty: none does.
struct JobOwner {
  std::string name, uid;
};
JobOwner owner_of(const kube::Object& object);
// An owner reference to a BSPJob that controls the object.
bool is_our_owner(const kube::Object& reference);

// "<namespace>/<name>" of the BSPJob that an object is or belongs to; "" if to none.
std::string job_key(const std::string& name_space, const std::string& name);
std::string job_key_of(const kube::Kind& kind, const kube::Object& object);

// Everything in it has ended, so it takes no capacity on its node any more.
bool has_ended(const kube::Object& pod);

}  // namespace bsp::reconcile
