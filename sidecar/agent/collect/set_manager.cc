#include "sidecar/agent/collect/set_manager.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/core/log.h"
#include "base/json/fields.h"

namespace bsp::collect {
namespace {

struct Round {
  SetReport report;
  std::size_t open = 0;  // answers still to come
  std::function<void(SetReport)> done;

  void one_less() {
    if (--open > 0) return;
    std::ranges::sort(report.reports, {}, &wire::RankReport::rank);
    std::ranges::sort(report.missing);
    done(std::move(report));
  }
};

}  // namespace

Result<std::vector<SetMember>> members_from_json(const nlohmann::json& fields) {
  auto list = fields.find("members");
  if (list == fields.end() || !list->is_array()) return fail(ErrorCode::kInvalid, "setReport has no list of members");
  std::vector<SetMember> members;
  for (const auto& item : *list) {
    const auto rank = whole_number<std::uint32_t>(part_at(item, "rank"));
    SetMember member{rank.value_or(0), text_at(item, "pod"), text_at(item, "address"),
                     count_at<std::uint64_t>(item, "since")};
    if (!rank || member.pod.empty() || member.address.empty())
      return fail(ErrorCode::kInvalid, "a member of setReport lacks rank, pod or address");
    members.push_back(std::move(member));
  }
  return members;
}

void collect_set(const std::vector<SetMember>& members, std::size_t most_bytes,
                 const std::function<net::LinkPeer*(const SetMember&)>& peer,
                 const std::function<wire::RankReport(std::uint64_t since)>& own, std::uint32_t own_rank,
                 std::chrono::nanoseconds limit, std::function<void(SetReport)> done) {
  auto round = std::make_shared<Round>();
  round->done = std::move(done);
  round->open = 1;  // this function itself, so that nothing ends before all are asked
  const std::size_t share = most_bytes / std::max<std::size_t>(members.size(), 1);
  for (const SetMember& member : members) {
    if (member.rank == own_rank) {
      round->report.reports.push_back(own(member.since));
      wire::keep_within(round->report.reports.back(), share);
      continue;
    }
    net::LinkPeer* link = peer(member);
    if (!link) {
      round->report.missing.push_back(member.rank);
      continue;
    }
    ++round->open;
    link->call(wire::kReport, {{"since", member.since}, {"max_bytes", share}}, {}, limit,
               [round, rank = member.rank, share](Result<net::Answer> answer) {
                 auto report = answer ? wire::rank_report_from_json(answer->header)
                                      : Result<wire::RankReport>(std::unexpected(answer.error()));
                 // For its own rank only: the rest of the page is for the others.
                 if (report && report->rank == rank) {
                   wire::keep_within(*report, share);  // an older sidecar sends all that it has
                   round->report.reports.push_back(std::move(*report));
                 } else {
                   if (answer)
                     log_warning("a member's report is refused",
                                 {{"rank", rank}, {"why", report ? "it is of another rank" : report.error().message}});
                   round->report.missing.push_back(rank);
                 }
                 round->one_less();
               });
  }
  round->one_less();
}

}  // namespace bsp::collect
