#include "operator/decide/model.h"

#include <algorithm>
#include <cmath>
#include <format>

namespace bsp::decide {
namespace {

bool finite_and_not_negative(double v) { return std::isfinite(v) && v >= 0; }

Result<void> require(bool ok, std::string_view field, std::string_view rule, auto value) {
  if (ok) return {};
  return fail(ErrorCode::kInvalid,
              std::format("rescheduling: {} must be {}, is {}", field, rule, value));
}

Result<void> validate_processor(const Platform& platform, const Processor& p) {
  if (p.set.value >= platform.sets.size())
    return fail(ErrorCode::kInvalid,
                std::format("processor {} is in no Set of the platform", p.name));
  if (!(std::isfinite(p.cpu) && p.cpu > 0))
    return fail(
        ErrorCode::kInvalid,
        std::format("processor {}: cpu must be above 0 instructions/s, is {}", p.name, p.cpu));
  if (!(p.load >= 0 && p.load < 1))
    return fail(
        ErrorCode::kInvalid,
        std::format("processor {}: load must be at least 0 and below 1, is {}", p.name, p.load));
  return {};
}

Result<void> validate_costs(const Snapshot& snapshot) {
  const Platform& platform = snapshot.platform;
  const std::size_t sets = platform.sets.size();
  if (platform.T.rows() != sets || platform.T.cols() != sets)
    return fail(ErrorCode::kInvalid, std::format("T is {}x{}, but there are {} Sets",
                                                 platform.T.rows(), platform.T.cols(), sets));
  const std::size_t rows = platform.Mig.rows();
  if (platform.Mig.cols() != sets || (rows != 1 && rows != snapshot.ranks.size()))
    return fail(ErrorCode::kInvalid,
                std::format("Mig is {}x{}, but there are {} ranks and {} Sets", rows,
                            platform.Mig.cols(), snapshot.ranks.size(), sets));
  for (std::size_t a = 0; a < sets; ++a)
    if (!std::ranges::all_of(platform.T.row(a), finite_and_not_negative))
      return fail(ErrorCode::kInvalid, std::format("T from Set {} has a negative or infinite entry",
                                                   platform.sets[a].name));
  for (std::size_t i = 0; i < rows; ++i)
    if (!std::ranges::all_of(platform.Mig.row(i), finite_and_not_negative))
      return fail(ErrorCode::kInvalid,
                  std::format("Mig row {} has a negative or infinite entry", i));
  const auto fits = [](const Grid<Origin>& origin, const Grid<double>& values) {
    return origin.empty() || (origin.rows() == values.rows() && origin.cols() == values.cols());
  };
  if (!fits(platform.T_origin, platform.T) || !fits(platform.Mig_origin, platform.Mig))
    return fail(ErrorCode::kInvalid, "the origins of T or Mig do not have the shape of T or Mig");
  return {};
}

}  // namespace

std::string_view to_string(Origin origin) {
  switch (origin) {
    case Origin::kAssumed:
      return "assumed";
    case Origin::kMeasured:
      return "measured";
  }
  check(false, "every origin has a name");
  return {};
}

Result<void> validate(const Params& p) {
  BSP_CHECK_OK(require(p.alpha0 >= 1, "alpha0", "at least 1", p.alpha0));
  BSP_CHECK_OK(require(p.d0 > 0 && p.d0 < 1, "d0", "above 0 and below 1", p.d0));
  BSP_CHECK_OK(require(p.omega >= 1, "omega", "at least 1", p.omega));
  BSP_CHECK_OK(require(finite_and_not_negative(p.delta), "delta", "at least 0", p.delta));
  BSP_CHECK_OK(require(finite_and_not_negative(p.beta), "beta", "at least 0", p.beta));
  BSP_CHECK_OK(require(p.x > 0 && p.x <= 1, "x", "above 0 and at most 1", p.x));
  BSP_CHECK_OK(
      require(p.min_gain >= 0 && p.min_gain < 1, "min_gain", "at least 0 and below 1", p.min_gain));
  return {};
}

Result<void> validate(const Snapshot& snapshot) {
  const Platform& platform = snapshot.platform;
  for (const Processor& p : platform.processors) BSP_CHECK_OK(validate_processor(platform, p));
  for (std::size_t i = 0; i < snapshot.ranks.size(); ++i) {
    const Rank& rank = snapshot.ranks[i];
    if (rank.processor.value >= platform.processors.size())
      return fail(ErrorCode::kInvalid,
                  std::format("rank {} is on no processor of the platform", i));
    if (!finite_and_not_negative(rank.memory_bytes))
      return fail(
          ErrorCode::kInvalid,
          std::format("rank {}: memory_bytes must be at least 0, is {}", i, rank.memory_bytes));
    for (SetId j : rank.lacks_cpu_features_on)
      if (j.value >= platform.sets.size())
        return fail(
            ErrorCode::kInvalid,
            std::format("rank {} lacks CPU features on Set {}, which does not exist", i, j.value));
  }
  return validate_costs(snapshot);
}

}  // namespace bsp::decide
