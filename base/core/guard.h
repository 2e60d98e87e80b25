// The boundary around one unit of work: what it throws becomes an Error, so that one job's trouble stays that job's.
#pragma once

#include <exception>
#include <type_traits>
#include <utility>

#include "base/core/error.h"

namespace bsp {

// What `work` returns; kFailed, worth another try, if it throws.
template <class Work>
Result<std::invoke_result_t<Work>> guarded(Work&& work) {
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

}  // namespace bsp
