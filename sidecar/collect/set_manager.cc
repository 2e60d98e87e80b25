#include "sidecar/collect/set_manager.h"

#include <algorithm>
#include <memory>

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
    auto rank = item.find("rank"), pod = item.find("pod"), address = item.find("address"), since = item.find("since");
    if (!item.is_object() || rank == item.end() || !rank->is_number_unsigned() || pod == item.end() ||
        !pod->is_string() || address == item.end() || !address->is_string())
      return fail(ErrorCode::kInvalid, "a member of setReport lacks rank, pod or address");
    members.push_back({rank->get<std::uint32_t>(), pod->get<std::string>(), address->get<std::string>(),
                       since != item.end() && since->is_number_unsigned() ? since->get<std::uint64_t>() : 0});
  }
  return members;
}

void collect_set(const std::vector<SetMember>& members, const std::function<net::LinkPeer*(const SetMember&)>& peer,
                 const std::function<wire::RankReport(std::uint64_t since)>& own, std::uint32_t own_rank,
                 std::chrono::nanoseconds limit, std::function<void(SetReport)> done) {
  auto round = std::make_shared<Round>();
  round->done = std::move(done);
  round->open = 1;  // this function itself, so that nothing ends before all are asked
  for (const SetMember& member : members) {
    if (member.rank == own_rank) {
      round->report.reports.push_back(own(member.since));
      continue;
    }
    net::LinkPeer* link = peer(member);
    if (!link) {
      round->report.missing.push_back(member.rank);
      continue;
    }
    ++round->open;
    link->call(wire::kReport, {{"since", member.since}}, {}, limit,
               [round, rank = member.rank](Result<net::Answer> answer) {
                 auto report = answer ? wire::rank_report_from_json(answer->header)
                                      : Result<wire::RankReport>(std::unexpected(answer.error()));
                 if (report)
                   round->report.reports.push_back(std::move(*report));
                 else
                   round->report.missing.push_back(rank);
                 round->one_less();
               });
  }
  round->one_less();
}

}  // namespace bsp::collect
