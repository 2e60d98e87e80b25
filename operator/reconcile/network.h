// Moves the calling thread into a network namespace, for good: the pods of local mode are reached from
// the hub's.
#pragma once

#include <string>

#include "base/core/error.h"

namespace bsp::reconcile {

Result<void> enter_network(const std::string& path);

}  // namespace bsp::reconcile
