#include "operator/decide/model/links.h"

#include <algorithm>
#include <cmath>

namespace bsp::decide {

Grid<double> message_seconds(const Platform& platform, std::span<const std::vector<Partner>> partners,
                             std::span<const SetId> own) {
  if (platform.apart.empty()) return {};
  Grid<double> seconds(own.size(), platform.sets.size());
  for (std::size_t i = 0; i < partners.size(); ++i)
    for (const Partner& k : partners[i])
      seconds[i, own[k.rank.value].value] += k.messages * platform.apart[own[i].value].message;
  return seconds;
}

std::vector<Crossing> crossings(const MeasuredSuperstep& t, std::span<const SetId> own, const Grid<double>& messages) {
  const std::size_t sets = t.recv_bytes.cols();
  Grid<Crossing> sums(sets, sets);
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto row = t.recv_bytes.row(i);
    const auto columns = t.recv_bytes.pattern().columns(i);
    for (std::size_t n = 0; n < row.size(); ++n) {
      if (columns[n] == own[i].value || !(row[n] > 0)) continue;
      Crossing& sum = sums[columns[n], own[i].value];
      sum.bytes += row[n];
      sum.most = std::max(sum.most, row[n]);
      const double besides = messages.empty() ? 0 : messages[i, columns[n]];
      sum.seconds = std::max(sum.seconds, t.recv_seconds[i, columns[n]] - besides);
    }
  }
  std::vector<Crossing> found;
  for (std::uint32_t a = 0; a < sets; ++a)
    for (std::uint32_t b = 0; b < sets; ++b) {
      if (sums[a, b].most == 0) continue;
      sums[a, b].from = {a}, sums[a, b].to = {b};
      found.push_back(sums[a, b]);
    }
  return found;
}

void LinkSeen::add(const Crossing& crossing, double T) {
  const bool amounts = std::isfinite(crossing.bytes) && std::isfinite(crossing.seconds) && crossing.seconds > 0;
  if (!amounts || !(crossing.most >= kLeastBytes)) return;
  block_.bytes += crossing.bytes, block_.most += crossing.most, block_.seconds += crossing.seconds;
  if (++block_.supersteps < kBlock) return;
  const double pace = block_.seconds / block_.most, rate = block_.bytes / block_.seconds;
  const bool others = block_.bytes > kSlower * block_.most;
  block_ = {};
  if (!(std::isfinite(pace) && pace > 0 && std::isfinite(rate))) return;
  const bool noise = shared_ && kLess * rate < best_;  // unless it is seen again
  best_ = std::max(best_, noise ? std::min(rate, last_) : rate);
  last_ = rate;
  quick_ = quick_ > 0 ? std::min(quick_, pace) : pace;
  const double alone = T > 0 ? std::min(quick_, T) : quick_;
  const bool limits = others && pace > kSlower * alone;
  shared_ = shared_ || limits;
  low_ = limits && rate < kLess * best_ ? Low{.blocks = low_.blocks + 1, .best = std::max(low_.best, rate)} : Low{};
  if (low_.blocks < kFallen) return;
  best_ = low_.best;
  low_ = {};
}

void learn(Grid<LinkSeen>& links, const MeasuredSuperstep& t, std::span<const SetId> own, const Platform& platform,
           const Grid<double>& messages) {
  for (const Crossing& c : crossings(t, own, messages)) {
    const std::uint32_t a = c.from.value, b = c.to.value;
    const bool measured = !platform.T_origin.empty() && platform.T_origin[a, b] == Origin::kMeasured;
    links[a, b].add(c, measured ? platform.T[a, b] : 0);
  }
}

Grid<double> capacities(const Grid<LinkSeen>& links) {
  Grid<double> out(links.rows(), links.cols());
  bool any = false;
  for (std::size_t a = 0; a < links.rows(); ++a)
    for (std::size_t b = 0; b < links.cols(); ++b) any |= (out[a, b] = links[a, b].capacity()) > 0;
  return any ? out : Grid<double>{};
}

Links::Busiest Links::busiest() const {
  Busiest most;
  for (std::uint32_t a = 0; a < bytes_.rows(); ++a)
    for (std::uint32_t b = 0; b < bytes_.cols(); ++b)
      if (const double taken = seconds(a, b); taken > most.seconds) most = {taken, a, b};
  return most;
}

double pause_of(const Snapshot& snapshot, const Columns& columns, std::span<const ProcessorId> before,
                std::span<const ProcessorId> after) {
  const Platform& platform = snapshot.platform;
  Links links(platform.capacity);
  double pause = 0, largest_Mig = 0;
  for (std::uint32_t i = 0; i < after.size(); ++i) {
    if (after[i] == before[i]) continue;
    const std::uint32_t a = columns.set[before[i].value].value, j = columns.set[after[i].value].value;
    const double Mig = platform.Mig_row({i})[j];
    pause = std::max(pause, columns.M[i] * platform.T[a, j] + Mig);
    largest_Mig = std::max(largest_Mig, Mig);
    links.add(a, j, columns.M[i]);
  }
  const double together = links.busiest().seconds;
  return together > 0 ? std::max(pause, together + largest_Mig) : pause;
}

}  // namespace bsp::decide
