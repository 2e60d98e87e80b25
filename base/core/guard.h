// Turns what one unit of work throws into an Error, so that one job's failure doesn't affect the others.
#pragma once

#include <exception>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/core/error.h"

namespace bsp {

// A check() that failed where checks throw.
class BrokenInvariant : public std::logic_error {
  using std::logic_error::logic_error;
};

// While one exists, a failed check() on its thread throws BrokenInvariant instead of ending the process. For a thread that
// serves many (an operator's, for all tenants) and guards each unit of work. A sidecar has no guard around its loop: it
// restarts and asks its program for its state, which is safer than to continue.
class ChecksThrow {
 public:
  ChecksThrow();
  ~ChecksThrow();
  ChecksThrow(const ChecksThrow&) = delete;
  ChecksThrow& operator=(const ChecksThrow&) = delete;
};

// What `work` returns, or kFailed (retryable) if it throws.
template <class Work>
Result<std::invoke_result_t<Work>> caught(Work&& work) {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<Work>>) {
      std::forward<Work>(work)();
      return {};
    } else {
      return std::forward<Work>(work)();
    }
  } catch (const std::exception& thrown) {
    return fail(ErrorCode::kFailed, std::format("internal error: {}", thrown.what()), true);
  }
}

// The same, but a check() that fails on this thread in `work` also becomes an error.
template <class Work>
Result<std::invoke_result_t<Work>> guarded(Work&& work) {
  const ChecksThrow here;
  return caught(std::forward<Work>(work));
}

}  // namespace bsp
