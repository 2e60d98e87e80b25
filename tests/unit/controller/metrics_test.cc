// The text that Prometheus reads.
#include "operator/controller/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <set>
#include <sstream>

namespace bsp::controller {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

OperatorMetrics of_a_leader() {
  OperatorMetrics f;
  f.version = "1.2";
  f.leads = true;
  f.api_requests = 17;
  f.shell.emplace();
  f.shell->jobs = {{.name_space = "a", .name = "lbm", .phase = "Running", .ranks = 4, .superstep = 12},
                   {.name_space = "b", .name = "lbm", .phase = "Failed", .ranks = 2, .moves = 3, .gain_seconds = -1.5}};
  for (const double seconds : {0.0005, 0.003, 0.003, 99.0}) f.shell->reconciles.add(seconds);
  return f;
}

TEST(Metrics, OfALeader) {
  const std::string text = metrics_text(of_a_leader());
  for (const char* line :
       {"bsp_operator_info{version=\"1.2\"} 1\n", "bsp_operator_leader 1\n", "bsp_operator_api_requests_total 17\n",
        "bsp_jobs{phase=\"Running\"} 1\n", "bsp_jobs{phase=\"Pending\"} 0\n",
        "bsp_job_superstep{job_namespace=\"a\",job_name=\"lbm\"} 12\n",
        "bsp_job_gain_seconds{job_namespace=\"b\",job_name=\"lbm\"} -1.5\n",
        "bsp_operator_reconcile_seconds_bucket{le=\"0.001\"} 1\n",
        "bsp_operator_reconcile_seconds_bucket{le=\"0.005\"} 3\n",
        "bsp_operator_reconcile_seconds_bucket{le=\"10\"} 3\n",
        "bsp_operator_reconcile_seconds_bucket{le=\"+Inf\"} 4\n", "bsp_operator_reconcile_seconds_count 4\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

// Prometheus and a ServiceMonitor set these on every sample of the operator; one of our own would be renamed exported_…, and alerts
// name the operator instead of the job.
TEST(Metrics, NoLabelIsOneOfPrometheussOwn) {
  const std::string text = metrics_text(of_a_leader());
  for (const char* label : {"job", "instance", "namespace", "service", "pod", "container", "endpoint"})
    for (const char* before : {"{", ","}) EXPECT_THAT(text, Not(HasSubstr(std::format("{}{}=\"", before, label))));
}

// bsp_job_load_balance says it: an alert on one of two such metrics contradicts a board of the other.
TEST(Metrics, NoneIsTheReciprocalOfAnother) { EXPECT_THAT(metrics_text(of_a_leader()), Not(HasSubstr("imbalance{"))); }

TEST(Metrics, StandbyExportsNoJobMetrics) {
  const std::string text = metrics_text({.version = "1"});
  EXPECT_THAT(text, HasSubstr("bsp_operator_leader 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("bsp_job")));
}

// Each family once, described before its first sample; nothing else in between.
TEST(Metrics, FollowTheFormat) {
  std::istringstream lines(metrics_text(of_a_leader()));
  std::set<std::string> families;
  std::string line, family;
  while (std::getline(lines, line)) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << family << " twice";
    } else if (line.starts_with("# TYPE ")) {
      EXPECT_EQ(line.substr(7, line.find(' ', 7) - 7), family);
    } else {
      EXPECT_TRUE(line.starts_with(family)) << line;
      EXPECT_NE(line.find_last_of(' '), std::string::npos);
    }
  }
}

TEST(Metrics, LabelsAreEscaped) {
  OperatorMetrics f = of_a_leader();
  f.version = "a\"b\\c\nd";
  EXPECT_THAT(metrics_text(f), HasSubstr("{version=\"a\\\"b\\\\c\\nd\"}"));
}

TEST(Metrics, ThisProcessHasFiguresOfItsOwn) {
  const ProcessMetrics f = process_metrics();
  EXPECT_GT(f.resident_bytes, 1u << 20);
  EXPECT_GE(f.open_files, 3u);
  EXPECT_GE(f.cpu_seconds, 0);
}

}  // namespace
}  // namespace bsp::controller
