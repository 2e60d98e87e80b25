// Stands in for an API server's admission, by the rules of crds/*.yaml: rejects unknown fields, wrong types and changes
// of immutable fields, and fills in defaults.
#pragma once

#include "operator/local/store.h"

namespace bsp::local {

// For StoreOptions::admission. Accepts objects of other kinds as they are.
Result<kube::Object> admit(const kube::Object& next, const kube::Object* current);

}  // namespace bsp::local
