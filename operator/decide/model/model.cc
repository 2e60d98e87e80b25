#include "operator/decide/model/model.h"

#include <algorithm>
#include <cmath>
#include <format>

namespace bsp::decide {
namespace {

bool finite_and_not_negative(double v) { return std::isfinite(v) && v >= 0; }

Result<void> require(bool ok, std::string_view field, std::string_view rule, auto value) {
  if (ok) return {};
  return fail(ErrorCode::kInvalid, std::format("rescheduling: {} must be {}, is {}", field, rule, value));
}

}  // namespace

Result<void> validate(const Params& p) {
  BSP_CHECK_OK(require(p.alpha0 >= 1, "alpha0", "at least 1", p.alpha0));
  BSP_CHECK_OK(require(p.d0 > 0 && p.d0 < 1, "d0", "above 0 and below 1", p.d0));
  BSP_CHECK_OK(require(p.omega >= 1, "omega", "at least 1", p.omega));
  BSP_CHECK_OK(require(finite_and_not_negative(p.delta), "delta", "at least 0", p.delta));
  BSP_CHECK_OK(require(finite_and_not_negative(p.beta), "beta", "at least 0", p.beta));
  BSP_CHECK_OK(require(p.x > 0 && p.x <= 1, "x", "above 0 and at most 1", p.x));
  BSP_CHECK_OK(require(p.min_gain >= 0 && p.min_gain < 1, "min_gain", "at least 0 and below 1", p.min_gain));
  BSP_CHECK_OK(require(finite_and_not_negative(p.max_slowdown), "max_slowdown", "at least 0", p.max_slowdown));
  const bool counts_down = p.objective != ObjectiveType::kDeadline || p.expected_supersteps > 0;
  BSP_CHECK_OK(require(counts_down, "expected_supersteps", "at least 1 with a deadline", p.expected_supersteps));
  return {};
}

}  // namespace bsp::decide
