#include "operator/decide/model/means.h"

#include "operator/decide/fast/best_set.h"
#include "operator/decide/fast/comm_of.h"
#include "operator/decide/fast/decreasing.h"
#include "operator/decide/fast/processors.h"

namespace bsp::decide {

const Means& fast_means() {
  static constexpr Means kFast = {
      .highest_PM = [](const Case& c, const Grid<double>& ISet, std::vector<std::uint8_t> open)
          -> std::unique_ptr<HighestPM> { return std::make_unique<BestSet>(c, ISet, std::move(open)); },
      .comm_times = [](const Case& c) -> std::unique_ptr<CommTimes> { return std::make_unique<CommOf>(c); },
      .placement = [](const Case& c, std::span<const double> I_horizon,
                      std::span<const double> I_last) -> std::unique_ptr<Placement> {
        return std::make_unique<Processors>(c.columns, I_horizon, I_last, c.params.reuse_vacated_slots);
      },
      .by_decreasing = by_decreasing,
  };
  return kFast;
}

}  // namespace bsp::decide
