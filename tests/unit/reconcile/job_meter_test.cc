// What a stored status adds to the counters of the process.
#include "operator/reconcile/shell/job/job_meter.h"

#include <gmock/gmock.h>

#include "base/core/metric.h"

namespace bsp::reconcile {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

crds::BspJobStatus decided_at(std::uint64_t superstep, std::string_view outcome) {
  crds::BspJobStatus status;
  status.last_decision.emplace();
  status.last_decision->superstep = {superstep};
  status.last_decision->outcome = outcome;
  return status;
}

TEST(JobMeter, CountsEachWaveThatIsTakenBackOnce) {
  const JobMeter meter("team", "job");
  const crds::BspJobStatus none, moved = decided_at(8, "Migrating"), back = decided_at(24, crds::kTakingBack);
  meter.stored(none, moved);
  EXPECT_THAT(all_metrics(), Not(HasSubstr("bsp_waves_taken_back_total{")));
  meter.stored(moved, back);
  meter.stored(back, back);  // stored again, for another reason
  EXPECT_THAT(all_metrics(), HasSubstr("bsp_waves_taken_back_total{job_namespace=\"team\"} 1\n"));
  meter.stored(back, decided_at(40, "Balanced"));
  meter.stored(back, decided_at(90, crds::kTakingBack));
  EXPECT_THAT(all_metrics(), HasSubstr("bsp_waves_taken_back_total{job_namespace=\"team\"} 2\n"));
  EXPECT_THAT(all_metrics(), Not(HasSubstr("{namespace="))) << "Prometheus sets that itself (metrics_test.cc)";
}

}  // namespace
}  // namespace bsp::reconcile
