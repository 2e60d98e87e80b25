// Events: one of a kind, a series for repetitions, the limits of the API server. Over the real
// object store of local mode.
#include "operator/reconcile/shell/job/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "operator/local/store.h"

namespace bsp::reconcile {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::EndsWith;

class EventsTest : public ::testing::Test {
 protected:
  EventsTest() {
    char path[] = "/tmp/bsp-events-test-XXXXXX";
    root_ = ::mkdtemp(path);
    store_ = std::move(local::Store::open({.root = root_})).value();
    job_.metadata.name = "flow";
    job_.metadata.name_space = "default";
    job_.metadata.uid = "1-2-3";
  }
  ~EventsTest() override { std::filesystem::remove_all(root_); }

  std::vector<kube::Object> events() { return store_->list(kEvent, "default").value(); }

  std::string root_;
  std::unique_ptr<local::Store> store_;
  crds::BspJob job_;
  Time now_ = from_rfc3339("2026-11-21T04:00:00.000000Z");
};

TEST_F(EventsTest, AnEventHasTheFieldsOfTheApi) {
  EventRecorder recorder(*store_);
  recorder.record(job_, {"Warning", "RankKilled", "rank 1 was ended by SIGKILL"}, now_);
  const auto all = events();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0]["apiVersion"], "events.k8s.io/v1");
  EXPECT_EQ(all[0]["regarding"]["kind"], "BSPJob");
  EXPECT_EQ(all[0]["regarding"]["name"], "flow");
  EXPECT_EQ(all[0]["regarding"]["namespace"], all[0]["metadata"]["namespace"]);
  EXPECT_EQ(all[0]["regarding"]["uid"], "1-2-3");
  EXPECT_EQ(all[0]["eventTime"], "2026-11-21T04:00:00.000000Z");
  EXPECT_EQ(all[0]["type"], "Warning");
  EXPECT_EQ(all[0]["note"], "rank 1 was ended by SIGKILL");
  for (const char* required : {"reportingController", "reportingInstance", "action", "reason"})
    EXPECT_FALSE(all[0].value(required, "").empty()) << required;
  EXPECT_FALSE(all[0].contains("series"));
}

TEST_F(EventsTest, ARepeatedEventIncrementsItsSeries) {
  EventRecorder recorder(*store_);
  const Event full{"Warning", "PodNotCreated", "rank 1: exceeded quota"};
  for (int i = 0; i < 3; ++i) {
    recorder.record(job_, full, now_);
    now_ += minutes(5);
  }
  recorder.record(job_, {"Warning", "PodNotCreated", "rank 2: exceeded quota"}, now_);
  const auto all = events();
  ASSERT_EQ(all.size(), 2u);
  const kube::Object& series = all[0].contains("series") ? all[0] : all[1];
  EXPECT_EQ(series["note"], full.message);
  EXPECT_EQ(series["eventTime"], "2026-11-21T04:00:00.000000Z");
  EXPECT_EQ(series["series"]["count"], 3);
  EXPECT_EQ(series["series"]["lastObservedTime"], "2026-11-21T04:10:00.000000Z");
}

TEST_F(EventsTest, ASeriesEndsAfterAPause) {
  EventRecorder recorder(*store_);
  recorder.record(job_, {"Normal", "Rescheduled", "nothing moves"}, now_);
  now_ += EventRecorder::kSeries + seconds(1);
  recorder.record(job_, {"Normal", "Rescheduled", "nothing moves"}, now_);
  const auto all = events();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_FALSE(all[0].contains("series"));
  EXPECT_FALSE(all[1].contains("series"));
}

TEST_F(EventsTest, ADeletedEventIsCreatedAgain) {
  EventRecorder recorder(*store_);
  recorder.record(job_, {"Normal", "Running", "every rank runs"}, now_);
  const std::string name = events().at(0)["metadata"]["name"];
  ASSERT_TRUE(store_->remove({kEvent, "default", name}, ""));
  now_ += seconds(1);
  recorder.record(job_, {"Normal", "Running", "every rank runs"}, now_);
  const auto all = events();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NE(all[0]["metadata"]["name"], name);
}

TEST_F(EventsTest, ALongNoteIsCutBetweenCharacters) {
  EXPECT_EQ(shortened("abc", 3), "abc");
  EXPECT_EQ(shortened("äöü", 6), "äöü");
  EXPECT_EQ(shortened("abcdef", 5), "ab…");
  EXPECT_EQ(shortened("äöüß", 7), "äö…");
  EXPECT_EQ(shortened("äöüß", 6), "ä…");  // the fourth byte would be half an ö
  EventRecorder recorder(*store_);
  recorder.record(job_, {"Normal", "Rescheduled", std::string(2000, 'x')}, now_);
  const std::string note = events().at(0)["note"];
  EXPECT_EQ(note.size(), EventRecorder::kNoteBytes);
  EXPECT_THAT(note, EndsWith("x…"));
}

}  // namespace
}  // namespace bsp::reconcile
