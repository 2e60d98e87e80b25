#include "sidecar/shim/epoch/edge_choice.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace bsp::shim {
namespace {

constexpr std::uint64_t kRecurs = 4;      // calls in a window from which on a call counts as recurring
constexpr double kFirstWindow = 0.25;     // s: until an edge is known
constexpr double kWindow = 5;             // s: after which a known edge is checked
constexpr double kForgotten = 60;         // s: a window in which nothing recurred is given up
constexpr double kTolerated = 2;          // factor by which an edge may leave the range before another one is chosen
constexpr double kDecisionsApart = 0.05;  // s: a reduction takes some 100 us
constexpr std::uint64_t kFewest = 4, kMost = 128;  // calls between two decisions; the most: at most 1 % of short calls

}  // namespace

bool EdgeChoice::recurs(std::size_t call) const { return calls_[call] >= kRecurs; }
double EdgeChoice::period(std::size_t call) const { return seconds_ / static_cast<double>(calls_[call]); }

void EdgeChoice::begin_window() {
  calls_.fill(0);
  seconds_ = 0;
  decided_at_ = 0;
}

std::uint16_t EdgeChoice::check_word() const {
  std::uint64_t hash = 14695981039346656037U;  // FNV-1a
  const auto mix = [&](std::uint64_t value) { hash = (hash ^ value) * 1099511628211U; };
  for (const std::uint64_t calls : calls_) mix(calls);
  mix(edge_.call);
  mix(edge_.stride);
  mix(decided_at_);
  return static_cast<std::uint16_t>(hash >> 48);
}

void EdgeChoice::restart() {
  begin_window();
  until_decision_ = kFewest;
}

// An edge of one call each is an iteration of the program, with the same work each time: the most frequent call that is rare
// enough. Else every so many calls of the rarest that is too frequent, as that belongs to the outermost loop.
EdgeChoice::Edge EdgeChoice::best() const {
  Edge fits, frequent, rare;
  for (std::size_t call = 0; call < kCalls; ++call) {
    if (!recurs(call)) continue;
    const double p = period(call);
    const auto better = [&](const Edge& than, bool shorter) {
      return than.call == kCalls || (shorter ? p < period(than.call) : p > period(than.call));
    };
    if (p > kLongest) {
      if (better(rare, true)) rare = {call, 1};
    } else if (p >= kShortest) {
      if (better(fits, true)) fits = {call, 1};
    } else if (better(frequent, false)) {
      frequent = {call, static_cast<std::uint64_t>(std::llround(kAimed / p))};
    }
  }
  return fits.call != kCalls ? fits : frequent.call != kCalls ? frequent : rare;
}

bool EdgeChoice::decide(double seconds) {
  seconds_ += seconds;
  const std::uint64_t total = std::accumulate(calls_.begin(), calls_.end(), std::uint64_t{0});
  const double apart = seconds / static_cast<double>(std::max<std::uint64_t>(total - decided_at_, 1));
  until_decision_ = kMost;
  if (apart > kDecisionsApart / kMost)
    until_decision_ = std::max(kFewest, static_cast<std::uint64_t>(std::ceil(kDecisionsApart / apart)));
  decided_at_ = total;

  const bool known = edge_.call != kCalls;
  if (seconds_ < (known ? kWindow : kFirstWindow)) return false;
  const Edge found = best();
  if (found.call == kCalls) {  // too few calls to say
    if (seconds_ > kForgotten) begin_window();
    return false;
  }
  const double edges_apart = known && recurs(edge_.call) ? period(edge_.call) * static_cast<double>(edge_.stride) : 0;
  begin_window();
  if (edges_apart >= kShortest / kTolerated && edges_apart <= kLongest * kTolerated) return false;
  if (found == edge_) return false;
  edge_ = found;
  return true;
}

}  // namespace bsp::shim
