// When a rank's log has its last lines.
#include "operator/local/cli/summary.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "operator/kinds.h"
#include "operator/local/cli/view.h"
#include "operator/local/files.h"

namespace bsp::local {
namespace {

using std::chrono::seconds;

struct Case {
  const char* name;
  crds::JobPhase phase;
  const char* state;  // of the pod's app container; nullptr: no pod
  seconds since_the_end;
  bool complete;
};

class LastLines : public ::testing::TestWithParam<Case> {
 protected:
  LastLines() {
    char path[] = "/tmp/bsp-summary-test-XXXXXX";
    root_ = ::mkdtemp(path);
    store_ = std::move(Store::open({.root = root_})).value();
  }
  ~LastLines() override {
    store_.reset();
    EXPECT_TRUE(remove_tree(root_));
  }

  std::string root_;
  std::unique_ptr<Store> store_;
};

TEST_P(LastLines, AreThereOnceTheContainerHasEnded) {
  const Case& c = GetParam();
  crds::BspJob job;
  job.metadata.name_space = "default";
  job.status.phase = c.phase;
  job.status.completion_time = from_rfc3339("2026-11-25T03:36:00Z");
  job.status.ranks.resize(1);
  job.status.ranks[0].pod = "job-r0-g0";
  if (c.state) {
    kube::Object pod = {
        {"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", {{"name", "job-r0-g0"}, {"namespace", "default"}}}};
    pod = store_->create(pod).value();
    pod["status"]["containerStatuses"] = {{{"name", "log-shipper"}, {"state", {{"terminated", {{"exitCode", 0}}}}}},
                                          {{"name", "app"}, {"state", {{c.state, nlohmann::json::object()}}}}};
    ASSERT_TRUE(store_->update_status(pod));
  }
  EXPECT_EQ(has_all_output(*store_, job, 0, job.status.completion_time + c.since_the_end).value(), c.complete);
}

constexpr Case kCases[] = {
    {"TheJobRuns", crds::JobPhase::kRunning, "running", seconds(0), false},
    {"TheContainerIsNotYetReported", crds::JobPhase::kSucceeded, "running", seconds(1), false},
    {"TheContainerHasEnded", crds::JobPhase::kSucceeded, "terminated", seconds(1), true},
    {"ThePodIsGone", crds::JobPhase::kSucceeded, nullptr, seconds(1), true},
    {"TheNodeNeverReportsIt", crds::JobPhase::kSucceeded, "running", seconds(11), true},
    {"TheJobFailed", crds::JobPhase::kFailed, "running", seconds(0), true},
};
INSTANTIATE_TEST_SUITE_P(Of, LastLines, ::testing::ValuesIn(kCases), [](const auto& p) { return p.param.name; });

// A program may write any byte; JSON holds UTF-8 only.
TEST(Summary, HoldsWhateverRank0Wrote) {
  const std::string output("before\nna\xefve\n\0after\nend\xe2\x82", 25);
  const nlohmann::json summary = summary_of({}, {}, {}, output);
  EXPECT_EQ(summary["rank0_output"],
            nlohmann::json({"before", "na\uFFFDve", std::string("\0after", 6), "end\uFFFD\uFFFD"}));
  EXPECT_NO_THROW((void)summary.dump());
}

TEST(View, SaysWhatFollowsAByte0) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = ::open_memstream(&text, &size);
  {
    View view(out, false);
    view.say(std::string("a\0b", 3));
  }
  std::fclose(out);
  EXPECT_EQ(std::string(text, size), std::string("a\0b\n", 4));
  std::free(text);
}

}  // namespace
}  // namespace bsp::local
