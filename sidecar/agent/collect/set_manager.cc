#include "sidecar/agent/collect/set_manager.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/core/log.h"
#include "base/json/fields.h"
#include "crds/requests.h"

namespace bsp::collect {
namespace {

struct Round {
  SetReport report;
  std::size_t open = 0;  // outstanding answers
  std::function<void(SetReport)> done;

  void finish_one() {
    if (--open > 0) return;
    std::ranges::sort(report.missing);
    done(std::move(report));
  }
};

// The bytes that a report may have besides its supersteps: 16 partners take 500.
constexpr std::size_t kMaxOtherBytes = 1024;

// The size of a value as JSON, without writing it.
std::size_t size_of(const nlohmann::json& j) {
  if (j.is_object()) {
    std::size_t bytes = 1 + std::max<std::size_t>(j.size(), 1);  // braces and commas
    for (const auto& [name, value] : j.items()) bytes += name.size() + 3 + size_of(value);
    return bytes;
  }
  if (j.is_array()) {
    std::size_t bytes = 1 + std::max<std::size_t>(j.size(), 1);
    for (const nlohmann::json& value : j) bytes += size_of(value);
    return bytes;
  }
  if (!j.is_number_unsigned()) return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size();
  char digits[20];
  return static_cast<std::size_t>(std::to_chars(digits, std::end(digits), j.get<std::uint64_t>()).ptr - digits);
}

// Forwards a report unchanged. One that exceeds its share (because its sidecar is of an older version and sends
// everything, or sends fields that don't belong there) is parsed and cut, because the rest of the page belongs to the
// other members.
Result<nlohmann::json> within_share(nlohmann::json report, std::uint32_t rank, std::size_t share) {
  if (whole_number<std::uint32_t>(part_at(report, "rank")) != rank)
    return fail(ErrorCode::kInvalid, "it belongs to another rank");
  report.erase("ok");
  if (size_of(report) <= share + kMaxOtherBytes) return report;
  BSP_TRY(wire::RankReport whole, wire::rank_report_from_json(report));
  wire::keep_within(whole, share);
  return nlohmann::json(whole);
}

}  // namespace

Result<std::vector<SetMember>> members_from_json(const nlohmann::json& fields) {
  auto list = fields.find("members");
  if (list == fields.end() || !list->is_array())
    return fail(ErrorCode::kInvalid, "setReport requires a list \"members\"");
  std::vector<SetMember> members;
  for (const auto& item : *list) {
    const auto rank = whole_number<std::uint32_t>(part_at(item, "rank"));
    SetMember member{rank.value_or(0), text_at(item, "pod"), text_at(item, "address"),
                     count_at<std::uint64_t>(item, "since"), count_at<std::uint32_t>(item, "seat")};
    if (!rank || member.pod.empty() || member.address.empty())
      return fail(ErrorCode::kInvalid, "a member of setReport requires rank, pod and address");
    members.push_back(std::move(member));
  }
  return members;
}

void collect_set(const std::vector<SetMember>& members, const SetLimits& limits,
                 const std::function<net::LinkPeer*(const SetMember&)>& peer,
                 const std::function<std::optional<wire::RankReport>(const SetMember&)>& own,
                 std::chrono::nanoseconds timeout, std::function<void(SetReport)> done) {
  auto round = std::make_shared<Round>();
  round->done = std::move(done);
  round->open = 1;  // counts this function, so that the round can't end before all members are asked
  const std::size_t share = limits.most_bytes / std::max<std::size_t>(members.size(), 1);
  for (const SetMember& member : members) {
    if (auto report = own(member)) {
      wire::keep_within(*report, share);
      round->report.reports.emplace(member.rank, *report);
      continue;
    }
    net::LinkPeer* link = peer(member);
    if (!link) {
      round->report.missing.push_back(member.rank);
      continue;
    }
    ++round->open;
    nlohmann::json request = reflect::write(wire::ReportRequest{member.since, share, limits.every});
    if (member.seat != 0) request["seat"] = member.seat;
    link->call(wire::kReport, std::move(request), {}, timeout,
               [round, rank = member.rank, share](Result<net::Answer> answer) {
                 const bool answered = answer.has_value();
                 auto report = answered ? within_share(std::move(answer->header), rank, share)
                                        : Result<nlohmann::json>(std::unexpected(answer.error()));
                 if (report) {
                   round->report.reports.emplace(rank, std::move(*report));
                 } else {
                   if (answered)
                     log_warning("rejected a member's report", {{"rank", rank}, {"reason", report.error().message}});
                   round->report.missing.push_back(rank);
                 }
                 round->finish_one();
               });
  }
  round->finish_one();
}

}  // namespace bsp::collect
