// A Set's reports from its members' rings to the operator, through the real Set Manager and real frames: however many there are,
// all of them arrive, and no message is beyond its limit; also where one end is older and knows nothing of pages. Where ranks
// end supersteps faster than the operator can read about them, it still gets whole ones.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <ranges>
#include <set>

#include "base/json/fields.h"
#include "operator/observe/collector.h"
#include "operator/reconcile/shell/links/links.h"
#include "sidecar/agent/collect/set_manager.h"
#include "tests/unit/net/link_world.h"

namespace bsp::reconcile {
namespace {

using namespace std::chrono_literals;
using net::Ca;
using nlohmann::json;

// What a rank's ring would hold: of `count` supersteps those after `since`, of the sample.
wire::RankReport report_of(std::uint32_t rank, std::uint64_t count, std::uint64_t since, std::uint64_t every = 1) {
  wire::RankReport report{.rank = rank, .completed = count, .epoch = 1, .memory_bytes = 1 << 20, .supersteps = {}};
  for (std::uint32_t k = 0; k < wire::kMostPartners; ++k) {  // as long as they can be
    report.partners.push_back(~0u - k);
    report.partner_bytes.push_back(wire::kMostNs);
  }
  since = std::max(since, count - std::min<std::uint64_t>(count, wire::kMostRecords));
  for (std::uint64_t s = since + 1; s <= count; ++s) {
    if (!wire::sampled(s, every)) continue;
    report.supersteps.push_back({.superstep = s,
                                 .end_ns = 1'790'000'000'000'000'000 + s,
                                 .instructions = 1'000'000'000 + rank,
                                 .compute_ns = 123'456'789,
                                 .comm_ns = 12'345'678,
                                 .edge_ns = 1'234'567,
                                 .sent_bytes = 1'048'576,
                                 .recv_bytes = {1'048'576, 65'536},
                                 .recv_ns = {1'234'567, 234'567}});
  }
  return report;
}

// The side with the older version, which omits the fields that it does not know.
struct Ages {
  bool old_manager = false;
  bool old_members = false;
};

// How many supersteps its ranks have completed: `at_first`, and with `on_the_way` so many more while each rank is asked for
// and sends one record, on average. The ranks' clock is what they send, so a busy machine changes nothing.
struct Pace {
  std::uint64_t at_first = 0;
  double on_the_way = 0;
};

class Set {
 public:
  Set(std::uint32_t ranks, Pace pace, Ages ages) : pace_(pace), ages_(ages) {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      auto server =
          net::LinkServer::listen(thread_.loop, tls_, "127.0.0.1:0", [this, r](net::Request request, net::Reply reply) {
            serve(r, std::move(request), std::move(reply));
          }).value();
      members_.push_back(
          {{"rank", r}, {"pod", "pod"}, {"address", std::format("127.0.0.1:{}", server->port())}, {"since", 0}});
      thread_.run([&] { servers_.push_back(std::move(server)); });
    }
  }
  ~Set() {
    thread_.run([&] {
      servers_.clear();
      unanswered_.clear();
      peers_.clear();
    });
  }
  const json& members() const { return members_; }
  std::string manager() const { return members_[0]["address"]; }
  const Ca& ca() const { return ca_; }

 private:
  // The verbs of sidecar/agent/verbs.cc, over reports that need no ring.
  void serve(std::uint32_t rank, net::Request request, net::Reply reply) {
    if (request.verb == wire::kReport) {
      wire::RankReport report = report_of(rank, completed(), count_at<std::uint64_t>(request.fields, "since"),
                                          ages_.old_members ? 1 : count_at<std::uint64_t>(request.fields, "every"));
      const auto most = count_at<std::size_t>(request.fields, "max_bytes");
      if (most > 0 && !ages_.old_members) wire::keep_within(report, most);
      sent_ += 1 + report.supersteps.size();
      return reply.ok(json(report));
    }
    if (request.verb != wire::kSetReport) return unanswered_.push_back(std::move(reply));  // a watch of nothing new
    const auto members = collect::members_from_json(request.fields).value();
    auto most = count_at<std::size_t>(request.fields, "max_bytes");
    auto every = count_at<std::uint64_t>(request.fields, "every");
    if (ages_.old_manager) most = std::size_t{1} << 40, every = 1;
    auto shared = std::make_shared<net::Reply>(std::move(reply));
    collect::collect_set(
        members, {.most_bytes = most > 0 ? most : wire::kUnpagedReports, .every = every},
        [this](const collect::SetMember& member) {
          auto& link = peers_[member.address];
          if (!link)
            link = std::make_unique<net::LinkPeer>(thread_.loop, tls_, net::Peer{member.address, "pod"},
                                                   wire::answer_limits);
          return link.get();
        },
        [this, every](const collect::SetMember& member) -> std::optional<wire::RankReport> {
          if (member.rank != 0) return std::nullopt;
          return report_of(0, completed(), member.since, every);
        },
        60s,
        [shared](const collect::SetReport& report) {
          json reports = json::array();
          for (const nlohmann::json& one : std::views::values(report.reports)) reports.push_back(one);
          shared->ok({{"reports", std::move(reports)}, {"missing", report.missing}});
        });
  }

  [[nodiscard]] std::uint64_t completed() const {
    return pace_.at_first + static_cast<std::uint64_t>(pace_.on_the_way * static_cast<double>(sent_) /
                                                       static_cast<double>(members_.size()));
  }

  const Pace pace_;
  const Ages ages_;
  std::uint64_t sent_ = 0;  // loop's thread only
  Ca ca_;
  net::TlsContext tls_ = ca_.context("pod");
  std::vector<std::unique_ptr<net::LinkServer>> servers_;
  std::map<std::string, std::unique_ptr<net::LinkPeer>> peers_;
  std::vector<net::Reply> unanswered_;
  json members_ = json::array();
  net::LoopThread thread_;
};

struct Case {
  const char* name;
  std::uint32_t ranks;
  std::uint64_t supersteps;
  Ages ages{};
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

class Pages : public testing::TestWithParam<Case> {};

TEST_P(Pages, EverySuperstepOfEveryRankArrives) {
  const auto& [name, ranks, supersteps, ages] = GetParam();
  Set set(ranks, {.at_first = supersteps}, ages);
  SidecarThread thread("");
  Sidecars sidecars(thread, {.tls = set.ca().context("operator"), .changed = {}});
  sidecars.track({{{"pod"}, set.manager()}});
  // As in the shell: reports go to the collector, which says what to request next.
  observe::Collector collector(ranks, 2);
  std::set<std::uint64_t> complete;
  std::set<std::string> rejected;
  const auto deadline = std::chrono::steady_clock::now() + 250s;
  while (complete.size() < supersteps && std::chrono::steady_clock::now() < deadline) {
    json members = set.members();
    for (std::uint32_t r = 0; r < ranks; ++r) members[r]["since"] = collector.since(r);
    sidecars.ask_reports({{"pod"}, std::move(members)});
    ::poll(nullptr, 0, 50);
    for (const wire::RankReport& report : sidecars.take_reports()) collector.add(report);
    while (const auto step = collector.take()) complete.insert(step->superstep.value);
    for (const SidecarFacts& facts : std::views::values(sidecars.facts()))
      if (!facts.rejected.empty() && !facts.rejected.ends_with("no answer in time")) rejected.insert(facts.rejected);
  }
  EXPECT_EQ(complete.size(), supersteps);
  EXPECT_TRUE(rejected.empty())
      << *rejected.begin();  // as every message beyond its limit is, unlike one that a busy machine delays
}

INSTANTIATE_TEST_SUITE_P(
    Sets, Pages,
    testing::Values(Case{"OneRank", 1, 256}, Case{"OneSuperstep", 300, 1},
                    Case{"AThousandRanksAfterAFailover", 1000, 256},
                    Case{"AnOldManager", 400, 256, {.old_manager = true, .old_members = true}},
                    Case{"OldMembersOfANewManager", 200, 256, {.old_manager = false, .old_members = true}}),
    [](const auto& tested) { return tested.param.name; });

// Ten supersteps end while the operator reads one of each rank, as with 1,000 ranks and 5 ms: what arrives of different ranks
// must be of the same supersteps.
TEST(FastRanks, SomeSuperstepsArriveOfAllRanks) {
  constexpr std::uint32_t kRanks = 400;
  Set set(kRanks, {.at_first = 1, .on_the_way = 10}, {});
  SidecarThread thread("");
  Sidecars sidecars(thread, {.tls = set.ca().context("operator"), .changed = {}});
  sidecars.track({{{"pod"}, set.manager()}});
  observe::Collector collector(kRanks, 2);
  std::size_t complete = 0;
  const auto deadline = std::chrono::steady_clock::now() + 250s;
  while (complete < 50 && std::chrono::steady_clock::now() < deadline) {
    json members = set.members();
    for (std::uint32_t r = 0; r < kRanks; ++r) members[r]["since"] = collector.since(r);
    sidecars.ask_reports({{"pod"}, std::move(members), collector.begin_round()});
    ::poll(nullptr, 0, 50);
    for (const wire::RankReport& report : sidecars.take_reports()) collector.add(report);
    while (collector.take()) ++complete;
  }
  EXPECT_GE(complete, 50u) << "of " << collector.completed(0);
}

// An older operator requests without max_bytes, and accepts no frame above 16 MiB.
TEST(OldOperator, GetsWhatFitsItsFrames) {
  constexpr std::uint32_t kRanks = 400;
  Set set(kRanks, {.at_first = 256}, {});
  net::Link link(set.ca().context("operator"), {set.manager(), "pod"});
  json members = set.members();
  std::vector<std::uint64_t> since(kRanks);
  for (int round = 0; round < 20 && std::ranges::min(since) < 256; ++round) {
    for (std::uint32_t r = 0; r < kRanks; ++r) members[r]["since"] = since[r];
    const auto answer = link.call(wire::kSetReport, {{"members", members}}, 60s);
    ASSERT_TRUE(answer) << answer.error().message;
    for (const json& j : answer->header.at("reports")) {
      const auto report = wire::rank_report_from_json(j).value();
      if (!report.supersteps.empty()) since[report.rank] = report.supersteps.back().superstep;
    }
  }
  EXPECT_EQ(std::ranges::min(since), 256u);
}

TEST(KeepWithin, KeepsTheOldestAndCountsTheRest) {
  wire::RankReport report = report_of(3, 256, 0);
  wire::keep_within(report, 2000);
  EXPECT_EQ(report.supersteps.front().superstep, 1u);
  EXPECT_EQ(report.supersteps.size() + report.left_out, 256u);
  EXPECT_LE(json(report).dump().size(), 2000u + 1024u) << "what else a report may have, for the Set Manager";
  EXPECT_GT(report.supersteps.size(), 1u);
  wire::keep_within(report, 1);
  EXPECT_EQ(report.supersteps.size(), 1u) << "or nothing would ever arrive";
  EXPECT_EQ(report.left_out, 255u);
}

}  // namespace
}  // namespace bsp::reconcile
