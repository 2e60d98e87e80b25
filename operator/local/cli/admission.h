// What a cluster's API server does with an object before it stores it, by the same rules as the CRDs of
// crds/*.yaml: unknown fields and wrong types are refused, defaults filled in, fields that may not change kept.
#pragma once

#include "operator/local/store.h"

namespace bsp::local {

// For StoreOptions::admission. Objects of other kinds pass as they are.
Result<kube::Object> admit(const kube::Object& next, const kube::Object* current);

}  // namespace bsp::local
