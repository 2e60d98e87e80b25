// Metrics of one job: gauges while it exists, and what it adds to the counters of the process, which outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

class JobMeter {
 public:
  JobMeter(std::string name_space, std::string name) : name_space_(std::move(name_space)), name_(std::move(name)) {}
  ~JobMeter();
  JobMeter(const JobMeter&) = delete;
  JobMeter& operator=(const JobMeter&) = delete;

  void show(const Observed& o, const crds::BspJobStatus& now);
  // A status was stored: what it counts more than the one before.
  void stored(const crds::BspJobStatus& before, const crds::BspJobStatus& after) const;
  // Gains that have just become known.
  static void measured(const std::vector<RealisedGain>& gains);

 private:
  void show_nodes(const crds::BspJobStatus& now) const;

  const std::string name_space_, name_;
  std::uint64_t superstep_ = 0;  // up to which the time lost is counted
};

}  // namespace bsp::reconcile
