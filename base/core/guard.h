// The boundary around one unit of work: what it throws becomes an Error, so that one job's trouble stays that job's.
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

// While one lives, a check() that fails on its thread throws BrokenInvariant instead of ending the process: for a thread that
// works for many (an operator's, for all tenants), each unit of whose work has a boundary. A sidecar has none around its
// loop: it is started anew and asks its program where it is, which is safer than to go on.
class ChecksThrow {
 public:
  ChecksThrow();
  ~ChecksThrow();
  ChecksThrow(const ChecksThrow&) = delete;
  ChecksThrow& operator=(const ChecksThrow&) = delete;
};

// What `work` returns; kFailed, worth another try, if it throws.
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
    return fail(ErrorCode::kFailed, std::format("an error of the operator itself: {}", thrown.what()), true);
  }
}

// The same, and a check() that fails on this thread meanwhile is such an error too.
template <class Work>
Result<std::invoke_result_t<Work>> guarded(Work&& work) {
  const ChecksThrow here;
  return caught(std::forward<Work>(work));
}

}  // namespace bsp
