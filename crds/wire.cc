// JSON and limits of wire.h, and names of seats. Reading is strict about what it needs and blind to what it doesn't know.
#include "crds/wire.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <format>
#include <limits>
#include <nlohmann/json.hpp>

#include "crds/names.h"
#include "crds/reflect.h"
#include "crds/seat.h"

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

// --- What a message may cost its reader ------------------------------------------------------------
MessageLimits answer_limits(std::string_view verb) {
  // A watch is always open, so this times the number of pods is what hostile sidecars can make their operator hold: no
  // more than the TLS connections themselves take.
  if (verb == kWatch || verb == kStatus) return {.json = {.bytes = 64 << 10, .values = 256, .depth = 8}};
  // All records of a ring, from a sidecar that knows nothing of pages.
  if (verb == kReport) return {.json = {.bytes = 1 << 20, .values = 64 << 10, .depth = 8}};
  if (verb == kSetReport) return {.json = {.bytes = 2 * kReportPage, .values = 400'000, .depth = 8}};
  if (verb == kModex) return {.body = 1 << 20};
  return {};
}

MessageLimits request_limits(bool of_the_operator) {
  // Plans and lists of members, some 200 bytes and 6 values for each rank.
  if (of_the_operator) return {.json = {.bytes = 16 << 20, .values = 1'000'000, .depth = 16}};
  // A part of an all-gather or the whole; the key of a group names its members.
  return {.json = {.bytes = 256 << 10, .values = 256, .depth = 8}, .body = 64u << 20};
}

}  // namespace bsp::wire

namespace bsp {

Seat seat_of(const wire::Member& member) { return {member.pod, member.seat}; }

std::string name_of(const Seat& seat) {
  return seat.local == 0 ? seat.pod : std::format("{}/{}", seat.pod, container_of(seat.local));
}

std::string container_of(std::uint32_t local) {
  return local == 0 ? std::string(names::kAppContainer) : std::format("{}-{}", names::kAppContainer, local);
}

std::string directory_of_seat(std::uint32_t local) { return std::format("{}{}", names::kSeatDirectory, local); }

std::optional<std::uint32_t> local_of(std::string_view container) {
  if (container == names::kAppContainer) return 0;
  constexpr std::size_t kDash = names::kAppContainer.size();
  if (!container.starts_with(names::kAppContainer) || container.size() < kDash + 2 || container[kDash] != '-')
    return std::nullopt;
  const std::string_view digits = container.substr(kDash + 1);
  std::uint32_t local = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), local);
  const bool whole = error == std::errc{} && end == digits.data() + digits.size();
  return whole && digits.front() != '0' && local < wire::kMostSeats ? std::optional(local) : std::nullopt;
}

}  // namespace bsp
