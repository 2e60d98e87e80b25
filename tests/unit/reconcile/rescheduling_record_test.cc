// The record of each decision, and the file of records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/core/read_file.h"
#include "operator/reconcile/shell/record.h"
#include "operator/record/line.h"
#include "operator/record/replay.h"
#include "tests/unit/reconcile/rescheduling_fixture.h"

namespace bsp::reconcile {
namespace {

using crds::ReschedulingMode;
using ::testing::SizeIs;

// A decision's record holds its inputs, also if the window began under another operator.
TEST_F(Rescheduling, EveryDecisionComesWithItsRecord) {
  EXPECT_EQ(feed(*std::make_unique<Rescheduler>(rescheduler()), 1, 4)->record, nullptr) << "not requested";
  o.job.spec.rescheduling.mode = ReschedulingMode::kAdvise;
  std::optional<record::Rerun> rerun;
  std::uint64_t calls = 0;
  Rescheduler r(o.job, o.job.status.epoch->sets.size(), true);
  for (std::uint64_t t = 1; t <= 40; ++t) {
    if (t == 20) {
      store(r);
      r = Rescheduler(o.job, o.job.status.epoch->sets.size(), true);
      feed(r, 1, 19);  // what the sidecars still have
    }
    const auto decided = feed(r, t);
    if (!decided) continue;
    ++calls;
    ASSERT_TRUE(decided->record);
    const auto call = record::from_line(*decided->record);
    ASSERT_TRUE(call) << call.error().message;
    EXPECT_EQ(call->job, "job");
    EXPECT_EQ(call->uid, o.job.metadata.uid);
    EXPECT_EQ(call->time, to_rfc3339(o.now));
    EXPECT_EQ(call->plan.superstep.value, t);
    EXPECT_EQ(call->supersteps.size(), call->plan.now.alpha);
    EXPECT_FALSE(call->params.migrates);
    EXPECT_THAT(call->plan.moves, SizeIs(2));
    EXPECT_EQ(record::difference(call->plan, *record::replay(*call, call->params)), "");
    if (!rerun) rerun.emplace(call->params);
    const auto again = rerun->add(*call);
    ASSERT_TRUE(again && again->size() == 1);
    EXPECT_EQ(record::difference(call->plan, again->front()), "") << "the run as a whole";
  }
  EXPECT_GE(calls, 3u);
}

// A rank counts half of what others do, on both its nodes. The call that follows its move knows that, of all of its supersteps.
TEST_F(Rescheduling, ARecordHoldsTheWorkOfAnUnlikeRank) {
  o.job.spec.rescheduling.heuristic = crds::Heuristic::kAuto;
  counted_of_rank_1 = 500'000'000;
  Rescheduler r(o.job, o.job.status.epoch->sets.size(), true);
  std::optional<Decided> decided;
  std::uint64_t t = 0;
  while ((!decided || decided->moves.size() < 2) && t < 40) decided = feed(r, ++t);
  ASSERT_TRUE(decided);
  ASSERT_THAT(decided->moves, SizeIs(2));
  const migrate::Wave wave = begin(*decided);
  store(r);
  end(wave, migrate::Phase::kSucceeded, t);
  for (decided.reset(); !decided && t < 80;) decided = feed(r, ++t);
  ASSERT_TRUE(decided && decided->record);
  const auto call = record::from_line(*decided->record);
  ASSERT_TRUE(call) << call.error().message;
  for (const decide::MeasuredSuperstep& superstep : call->supersteps) {
    EXPECT_NEAR(superstep.instructions[1], 0.75e9, 1e6) << "1.5 times, what it was apart by on the first node";
    EXPECT_EQ(superstep.instructions[0], 1e9);
  }
  EXPECT_EQ(record::difference(call->plan, *record::replay(*call, call->params)), "");
}

TEST(RecordFile, GrowsByWholeLines) {
  const std::string path = testing::TempDir() + "bsp_record_" + std::to_string(::getpid());
  EXPECT_TRUE(check_appendable(path));
  EXPECT_TRUE(append_line(path, "one"));
  EXPECT_TRUE(append_line(path, "two"));
  EXPECT_EQ(read_file(path), "one\ntwo\n");
  std::ofstream(path, std::ios::app) << "half";  // its writer was killed
  EXPECT_TRUE(append_line(path, "three"));
  EXPECT_EQ(read_file(path), "one\ntwo\nhalf\nthree\n");
  std::filesystem::remove(path);
  const auto nowhere = append_line(path + "/x", "one");
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, testing::HasSubstr(path + "/x"));
  EXPECT_FALSE(append_line("/dev/full", "one")) << "and the job goes on";
  EXPECT_EQ(record_path("/var/lib/bsp", "science", "lattice"), "/var/lib/bsp/science_lattice.jsonl");
}

}  // namespace
}  // namespace bsp::reconcile
