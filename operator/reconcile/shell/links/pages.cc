// Superstep reports, page by page, through the Set Managers.
#include <algorithm>
#include <format>
#include <utility>

#include "base/core/guard.h"
#include "base/core/log.h"
#include "base/json/fields.h"
#include "operator/reconcile/shell/links/link_node.h"

namespace bsp::reconcile {

namespace {

constexpr unsigned kFailedReports = 4;  // in a row, before it is logged
constexpr unsigned kPages = 1024;       // of one round
// How many are held until the shell takes them; the rest is requested then.
constexpr std::size_t kHeldSupersteps = 100'000;

Seat asked_of(const nlohmann::json& member) {
  return {text_at(member, "pod"), count_at<std::uint32_t>(member, wire::kSeat)};
}

}  // namespace

void Sidecars::ask_reports(const SetRequest& request) {
  loop_.post([this, request] {
    const auto it = nodes_.find(request.manager);
    if (it == nodes_.end()) return;
    Node& node = *it->second;
    node.every = request.every;
    if (node.asked_report) return;
    if (std::chrono::steady_clock::now() < node.report_again) return;
    node.asked_report = true;
    node.pages = 0;
    node.members.clear();
    for (const nlohmann::json& member : request.members) node.members.push_back({member});
    ask_page(it->second);
  });
}

void Sidecars::ask_page(const std::shared_ptr<Node>& node) {
  CallLimit& pages = thread_.pages();
  pages.begin([this, &pages, weak = std::weak_ptr(node)] {
    const auto self = weak.lock();
    if (!self) return false;
    Page page;
    nlohmann::json members = nlohmann::json::array();
    for (; !self->members.empty() && members.size() < self->at_once; self->members.pop_front()) {
      members.push_back(self->members.front().request);
      page.members.push_back(std::move(self->members.front()));
    }
    nlohmann::json fields{{"members", std::move(members)}, {"max_bytes", wire::kReportPage}, {"every", self->every}};
    self->opened(self->report)
        .call(wire::kSetReport, std::move(fields), {}, kAnswerLimit,
              [this, &pages, weak, page = std::move(page)](Result<net::Answer> answer) {
                if (const auto still = weak.lock()) heard_page(still, page, answer);
                pages.end();
              });
    return true;
  });
}

void Sidecars::heard_page(const std::shared_ptr<Node>& of, const Page& page, const Result<net::Answer>& answer) {
  Node& node = *of;
  const auto& members = page.members;
  ++node.pages;
  bool more = true;
  if (answer) {
    node.reports.reset();
    node.at_once = std::min(wire::kMembersAtOnce, node.at_once + node.at_once / 8 + 1);
    more = take_page(node, page, answer->header);
  } else if (answer.error().code == ErrorCode::kInvalid && members.size() > 1) {
    // Too large: a Set Manager that knows nothing of pages sends all that its members have. Fewer members have less.
    node.at_once = (members.size() + 1) / 2;
    node.members.insert(node.members.begin(), members.begin(), members.end());
  } else if (answer.error().code == ErrorCode::kInvalid) {
    note_rejected(asked_of(members.front().request), "its report: " + answer.error().message);
  } else {
    node.report_again = std::chrono::steady_clock::now() + node.reports.next();
    if (node.reports.failures() >= kFailedReports)
      note_rejected(node.seat, "asked for the reports of its Set: " + answer.error().message);
    more = false;
  }
  if (more && !node.members.empty() && node.pages < kPages) return ask_page(of);
  node.asked_report = false;
  node.members.clear();
}

bool Sidecars::take_page(Node& node, const Page& page, const nlohmann::json& header) {
  std::map<std::uint32_t, const Node::Member*> asked;  // by rank; without those that have answered
  for (const Node::Member& member : page.members) asked[count_at<std::uint32_t>(member.request, "rank")] = &member;
  std::vector<wire::RankReport> reports;
  std::size_t supersteps = 0;
  const nlohmann::json& list = part_at(header, "reports");
  if (!list.is_array()) note_rejected(node.seat, "its answer for its Set has no list of reports");
  for (const auto& j : list.is_array() ? list : nlohmann::json::array()) {
    const auto rank = whole_number<std::uint32_t>(part_at(j, "rank"));
    const auto of = rank ? asked.find(*rank) : asked.end();
    if (of == asked.end()) {
      note_rejected(node.seat, "its answer for its Set has a report that was not asked for, or twice");
      continue;
    }
    const Node::Member& member = *of->second;
    asked.erase(of);
    auto report = wire::rank_report_from_json(j);
    const auto since = count_at<std::uint64_t>(member.request, "since");
    if (report && !report->supersteps.empty() && report->supersteps.front().superstep <= since)
      report = fail(ErrorCode::kInvalid,
                    std::format("the report of rank {} goes back to before superstep {}", *rank, since));
    if (!report) {
      note_rejected(asked_of(member.request), report.error().message);
      continue;
    }
    const std::uint64_t until = member.until > 0 ? member.until : report->completed;
    if (report->left_out > 0 && !report->supersteps.empty() && report->supersteps.back().superstep < until) {
      node.members.push_back({member.request, until});
      node.members.back().request["since"] = report->supersteps.back().superstep;
    }
    supersteps += report->supersteps.size();
    reports.push_back(std::move(*report));
  }
  if (reports.empty()) return true;
  bool more = false;
  {
    std::lock_guard lock(mutex_);
    for (auto& r : reports) reports_.push_back(std::move(r));
    held_ += supersteps;
    more = held_ < kHeldSupersteps;
  }
  notify();
  return more;
}

std::vector<wire::RankReport> Sidecars::take_reports() {
  std::lock_guard lock(mutex_);
  held_ = 0;
  return std::exchange(reports_, {});
}

}  // namespace bsp::reconcile
