// The keys of attributes that the shim implements: one sequence for all kinds of objects.
#pragma once

#include <mutex>

#include "sidecar/shim/process/descriptors.h"

namespace bsp::shim {

inline constexpr int kFirstKeyval = 1 << 20;  // above Open MPI's own keyvals

// Never held during a user callback: the callback may call MPI, which may wait for a thread that wants this lock.
inline std::mutex attributes_lock;
inline int next_keyval = kFirstKeyval;

// Runs a user callback.
template <class Function, class... Arguments>
int called(Function* function, Arguments... arguments) {
  const InProgram guard;
  return function(arguments...);
}

}  // namespace bsp::shim
