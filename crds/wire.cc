// JSON of wire.h. Reading is strict about what it needs and blind to what it doesn't know.
#include "crds/wire.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <format>
#include <limits>
#include <nlohmann/json.hpp>

#include "crds/reflect.h"

namespace bsp::wire {
namespace {

using nlohmann::json;

constexpr std::uint64_t kAnyWhole = std::numeric_limits<std::uint64_t>::max();

std::size_t digits(std::uint64_t number) {
  std::size_t n = 1;
  for (; number >= 10; number /= 10) ++n;
  return n;
}

}  // namespace

std::string set_name(std::uint64_t set) { return std::format("set-{}", set); }

void to_json(json& j, const EpochPlan& v) { j = reflect::write(v); }
void to_json(json& j, const RankStatus& v) { j = reflect::write(v); }
void to_json(json& j, const RankReport& v) { j = reflect::write(v); }

Result<EpochPlan> epoch_plan_from_json(const json& j) {
  return reflect::read<EpochPlan>(j, "epoch plan", {.most_whole = kAnyWhole});
}

Result<RankStatus> rank_status_from_json(const json& j) {
  RankStatus unsaid;
  unsaid.admitted_epoch = kAnyWhole;
  return reflect::read<RankStatus>(j, "status", {.cut = true, .most_whole = kAnyWhole}, std::move(unsaid));
}

Result<RankReport> rank_report_from_json(const json& j) {
  return reflect::read<RankReport>(j, "report", {.most_whole = kAnyWhole});
}

Result<void> judge(const EpochPlan& plan) {
  for (std::size_t i = 0; i < plan.members.size(); ++i)
    if (plan.members[i].rank != i)
      return fail(ErrorCode::kInvalid, std::format("has rank {} at place {}", plan.members[i].rank, i));
  return {};
}

Result<void> judge(RankStatus& status) {
  status.throttled = std::clamp(status.throttled, 0.0, 1.0);
  // A truncated figure would make the CPU the fastest or the slowest of all.
  if (status.cpu && !is_plausible(*status.cpu)) status.cpu.reset();
  return {};
}

bool is_plausible(const CpuBenchmark& cpu) {
  return std::ranges::all_of(std::array{cpu.integer_ns, cpu.floating_ns, cpu.memory_ns},
                             [](std::uint64_t ns) { return ns >= kLeastUnitNs && ns <= kMostUnitNs; });
}

Result<void> judge(const RankReport& report) {
  if (report.partners.size() != report.partner_bytes.size())
    return fail(ErrorCode::kInvalid, std::format("rank {} has {} partners and bytes of {}", report.rank,
                                                 report.partners.size(), report.partner_bytes.size()));
  std::uint64_t last = 0;
  for (const SuperstepReport& s : report.supersteps) {
    if (s.superstep <= last || s.superstep > report.completed)
      return fail(ErrorCode::kInvalid, std::format("rank {} has superstep {} after {}, and {} were completed",
                                                   report.rank, s.superstep, last, report.completed));
    last = s.superstep;
  }
  return {};
}

bool sampled(std::uint64_t superstep, std::uint64_t every) {
  if (every <= 1) return true;
  std::uint64_t mixed = superstep / kSampleRun + 0x9e3779b97f4a7c15;  // splitmix64
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return (mixed ^ mixed >> 31) % every == 0;
}

std::size_t bytes_of(const SuperstepReport& s) {
  static const std::size_t kEmpty = reflect::write(SuperstepReport{}).dump().size();
  std::size_t bytes = kEmpty;
  visit_fields(s, [&](const char*, const auto& member) {
    if constexpr (std::integral<std::remove_cvref_t<decltype(member)>>) {
      bytes += digits(member) - 1;  // the 0 is counted
    } else {
      for (const std::uint64_t metric : member) bytes += digits(metric) + 1;
      if (!member.empty()) --bytes;  // no comma before the first
    }
  });
  return bytes;
}

void keep_within(RankReport& report, std::size_t bytes) {
  std::size_t used = 0, kept = 0;
  for (; kept < report.supersteps.size(); ++kept) {
    used += bytes_of(report.supersteps[kept]) + 1;
    if (kept > 0 && used > bytes) break;
  }
  report.left_out += report.supersteps.size() - kept;
  report.supersteps.resize(kept);
}

}  // namespace bsp::wire
