// Counters, gauges and histograms as Prometheus reads them.
#include "base/core/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bsp {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Metrics, CountWhateverTheirLabelsAre) {
  Metric moves(Metric::Type::kCounter, "moves_total", "Moves.", {"outcome"});
  EXPECT_EQ(moves.text(), "") << "nothing counted yet";
  moves.add({"Succeeded"});
  moves.add({"Succeeded"}, 2);
  moves.add({"a\"b"});
  EXPECT_EQ(moves.text(),
            "# HELP moves_total Moves.\n# TYPE moves_total counter\nmoves_total{outcome=\"Succeeded\"} 3\n"
            "moves_total{outcome=\"a\\\"b\"} 1\n");
}

TEST(Metrics, AHistogramAddsUp) {
  Metric pause(Metric::Type::kHistogram, "pause_seconds", "Pause.", {}, {0.1, 1});
  for (const double value : {0.1, 0.5, 7.0}) pause.observe({}, value);
  EXPECT_THAT(pause.text(),
              HasSubstr("pause_seconds_bucket{le=\"0.1\"} 1\npause_seconds_bucket{le=\"1\"} 2\n"
                        "pause_seconds_bucket{le=\"+Inf\"} 3\npause_seconds_sum 7.6\npause_seconds_count 3\n"));
}

TEST(Metrics, GaugesGoWithTheirJob) {
  Metric held(Metric::Type::kGauge, "held", "Held.", {"namespace", "job"});
  held.set({"a", "x"}, 1);
  held.set({"b", "x"}, 2);
  held.remove({"a"});
  EXPECT_THAT(all_metrics(), HasSubstr("held{namespace=\"b\",job=\"x\"} 2\n"));
  EXPECT_THAT(all_metrics(), Not(HasSubstr("namespace=\"a\"")));
}

}  // namespace
}  // namespace bsp
