#include "operator/screens/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "operator/record/line.h"
#include "tests/unit/record/random_call.h"
#include "tests/unit/screens/a_job.h"

namespace bsp::screens {
namespace {

using crds::MigrationPhase;
using testing::HasSubstr;
using testing::Not;

std::string svg_of(const Shown& shown, std::span<const CallMade> calls = {}) {
  return timeline_svg(shown, calls, Time{}, kNow);
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

// Every element that is opened is closed in order, so that a browser takes it for XML.
void expect_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = 0; (at = svg.find('<', at)) != std::string::npos;) {
    const std::size_t end = svg.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = svg.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(tag.front() == '/', tag.find_first_of(" /", 1) - (tag.front() == '/'));
    if (tag.front() == '/') {
      ASSERT_FALSE(open.empty()) << tag;
      ASSERT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    EXPECT_EQ(std::ranges::count(tag, '"') % 2, 0) << tag;
    at = end;
  }
  EXPECT_TRUE(open.empty());
}

TEST(Timeline, ShowsWhereARankWasBeforeAndAfterItsMove) {
  Shown shown = a_job(2);
  shown.job.status.ranks[1].set = "fast";
  shown.migrations = {a_move(1, MigrationPhase::kSucceeded, "2026-11-21T04:55:00Z", "2026-11-21T04:55:01Z")};
  const std::string svg = svg_of(shown);
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("rank 0 in Set fast, 0 s to 10 min 0 s"));
  EXPECT_THAT(svg, HasSubstr("rank 1 in Set slow, 0 s to 5 min 1 s"));
  EXPECT_THAT(svg, HasSubstr("rank 1 in Set fast, 5 min 1 s to 10 min 0 s"));
  EXPECT_THAT(svg, HasSubstr("wave 1, 5 min 0 s: pause 250 ms, 1 moved, 0 did not"));
}

TEST(Timeline, ARollbackLeavesTheRankWhereItWas) {
  Shown shown = a_job(2);
  shown.migrations = {a_move(1, MigrationPhase::kRolledBack, "2026-11-21T04:55:00Z", "2026-11-21T04:55:02Z")};
  shown.migrations[0].status.message = "the target is gone";
  const std::string svg = svg_of(shown);
  EXPECT_THAT(svg, HasSubstr("rank 1 in Set slow, 0 s to 10 min 0 s"));
  EXPECT_THAT(svg, HasSubstr("the target is gone"));
  EXPECT_THAT(svg, HasSubstr("pause 250 ms, 0 moved, 1 did not"));
  EXPECT_THAT(svg, HasSubstr("#c00"));
}

TEST(Timeline, SaysWhatIsNotKnownAnyMore) {
  Shown shown = a_job(2);
  shown.job.status.migrations.succeeded = 5;
  shown.job.status.restarts.push_back({.attempt = 0,
                                       .time = from_rfc3339("2026-11-21T04:52:00Z"),
                                       .reason = "RankExited",
                                       .message = "code 1",
                                       .rank = {}});
  shown.job.status.attempt = 1;
  const std::string svg = svg_of(shown);
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("5 older moves are not stored any more and not drawn"));
  EXPECT_THAT(svg, HasSubstr("rank 0 place unknown, 0 s to 2 min 0 s"));
  EXPECT_THAT(svg, HasSubstr("rank 0 in Set fast, 2 min 0 s to"));
  EXPECT_THAT(svg, HasSubstr("restart at"));
}

TEST(Timeline, DrawsAlphaAndDOnlyWithCalls) {
  Shown shown = a_job(2);
  EXPECT_THAT(svg_of(shown), Not(HasSubstr(">α ")));
  const std::vector<CallMade> calls = {{.time = from_rfc3339("2026-11-21T04:53:00Z"),
                                        .superstep = Superstep{16},
                                        .alpha = 16,
                                        .alpha_next = 32,
                                        .d = 0.25,
                                        .d_next = 0.5,
                                        .busy = {1, 0.5}}};
  const std::string svg = svg_of(shown, calls);
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr(">α 32<"));
  EXPECT_THAT(svg, HasSubstr(">D 0.5<"));
  EXPECT_THAT(svg, HasSubstr("call after superstep 16"));
}

TEST(Timeline, OfAJobWithoutStatusAndOfAThousandRanks) {
  Shown shown;
  shown.job.metadata.name = "new";
  expect_well_formed(svg_of(shown));
  Shown many = a_job(1000);
  for (std::uint32_t i = 0; i < 1000; i += 7)
    many.migrations.push_back(a_move(i, MigrationPhase::kSucceeded, "2026-11-21T04:55:00Z", "2026-11-21T04:55:01Z"));
  const std::string svg = svg_of(many);
  expect_well_formed(svg);
  EXPECT_LT(svg.size(), 2u << 20);
}

TEST(Timeline, EscapesWhatATenantWrote) {
  const std::string svg = svg_of(hostile_job());
  expect_well_formed(svg);
  EXPECT_FALSE(has_control(svg));
  EXPECT_EQ(count_of(svg, "<b>"), 0u);
  EXPECT_THAT(svg, HasSubstr("&lt;b&gt;&amp;&quot;"));
}

TEST(Timeline, ClocksThatDisagreeDrawNothingOutside) {
  Shown shown = a_job(2);
  shown.migrations = {a_move(1, MigrationPhase::kSucceeded, "2026-11-21T06:00:00Z", "2026-11-21T05:59:00Z"),
                      a_move(0, MigrationPhase::kFailed, "2026-11-21T03:00:00Z", "2026-11-21T03:00:00Z")};
  shown.migrations[1].spec.rank = RankId{77};  // the job has two
  const std::string svg = svg_of(shown);
  expect_well_formed(svg);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("width=\"-")));
}

// What the operator records of a run, call by call.
TEST(Timeline, ReadsTheJobsCallsFromARecord) {
  std::mt19937_64 random(7);
  record::RandomRun run(random, {.ranks = 4, .processors = 6, .sets = 2}, decide::Heuristic::kAutoMig);
  Shown shown = a_job(4);
  shown.job.metadata.name = "lattice";
  shown.job.metadata.uid = "0b2f7c1e";
  std::string text;
  std::vector<record::Call> recorded;
  for (int i = 0; i < 5; ++i) {
    recorded.push_back(run.next());
    recorded.back().time = std::format("2026-11-21T04:5{}:00.000000Z", i);
    record::Call other = recorded.back();
    other.uid = "a namesake";
    text += record::to_line(recorded.back()) + "\n" + record::to_line(other) + "\n";
  }
  const auto calls = calls_in(text, shown.job);
  ASSERT_TRUE(calls) << calls.error().message;
  ASSERT_EQ(calls->size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    const CallMade& call = calls->at(i);
    EXPECT_EQ(call.superstep, recorded[i].plan.superstep);
    EXPECT_EQ(call.alpha_next, static_cast<double>(recorded[i].plan.next.alpha));
    EXPECT_EQ(call.moves, recorded[i].params.migrates && !recorded[i].plan.moves.empty());
    EXPECT_EQ(call.busy.size(), recorded[i].supersteps.empty() ? 0u : 4u);
    for (const double share : call.busy) EXPECT_TRUE(share >= 0 && share <= 1) << share;
  }
  expect_well_formed(svg_of(shown, *calls));
}

TEST(Timeline, NamesTheWrongLineOfARecord) {
  const Shown shown = a_job(2);
  const auto broken = calls_in("\n{}\n", shown.job);
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message, HasSubstr("line 2"));
  const auto none = calls_in("", shown.job);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("has no call of job weather"));
  EXPECT_TRUE(calls_of_file("", shown.job)->empty());
  EXPECT_FALSE(calls_of_file("/nowhere.jsonl", shown.job));
}

}  // namespace
}  // namespace bsp::screens
