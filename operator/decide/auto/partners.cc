#include "operator/decide/auto/partners.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "operator/decide/model/grid.h"
#include "operator/decide/model/pm.h"

namespace bsp::decide {
namespace {

constexpr double kCrowd = 0.01;       // of a maximum: what those count that are nearly as late
constexpr double kStep = 1 - 1e-7;    // a step is a step if J gets lower by this factor
constexpr std::size_t kHeaviest = 3;  // partners of the rank that receives longest
constexpr std::size_t kCrossing = 8;  // pairs of ranks whose messages cross the link that takes longest
constexpr std::size_t kGroup = 16;    // ranks that go together to a node

// The largest, and how crowded it is there.
double with_crowd(std::span<const double> values, auto seconds_of) {
  double most = 0;
  for (std::size_t n = 0; n < values.size(); ++n) most = std::max(most, seconds_of(n));
  if (!(most > 0)) return 0;
  double crowd = 0;
  for (std::size_t n = 0; n < values.size(); ++n) {
    const double part = seconds_of(n) / most, square = part * part, fourth = square * square;
    crowd += fourth * fourth;
  }
  return most * (1 + kCrowd * std::log(crowd));
}

}  // namespace

Heard::Heard(const Case& c) : c_(c), pods_(c), rest_(c.metrics.last.recv_bytes) {
  const std::vector<Rank>& ranks = c.snapshot.ranks;
  const Platform& platform = c.snapshot.platform;
  if (pods_.matter()) across_ = platform.T;
  for (std::size_t a = 0; a < across_.rows(); ++a)
    for (std::size_t j = 0; j < across_.cols(); ++j) {
      const bool measured = !platform.T_origin.empty() && platform.T_origin[a, j] == Origin::kMeasured;
      const double byte = platform.apart[j].byte;
      if (a == j || !measured) across_[a, j] = a == j ? byte : std::min(byte, across_[a, j]);
    }
  const bool told = std::ranges::any_of(ranks, [](const Rank& rank) { return !rank.partners.empty(); });
  if (!told && !pods_.matter()) return;
  std::vector<double> claimed(c.columns.sets);
  for (std::uint32_t i = 0; i < ranks.size(); ++i) {
    first_.push_back(partners_.size());
    std::ranges::fill(claimed, 0);
    const std::vector<Partner> of_pod = told ? std::vector<Partner>{} : of_its_pod(i);
    const std::vector<Partner>& all = told ? ranks[i].partners : of_pod;
    for (const Partner& k : all) claimed[c.columns.own[k.rank.value].value] += k.bytes;
    const std::span<double> rest = rest_.row(i);
    const std::span<const Pattern::Column> sets = rest_.pattern().columns(i);
    for (const Partner& k : all) {
      const std::uint32_t j = c.columns.own[k.rank.value].value;
      const auto at = static_cast<std::size_t>(std::ranges::find(sets, j) - sets.begin());
      if (at == sets.size() || !(claimed[j] > 0)) continue;
      const double received = c.metrics.last.recv_bytes.row(i)[at];
      const double bytes = claimed[j] > received ? k.bytes / claimed[j] * received : k.bytes;
      if (!(bytes > 0)) continue;
      partners_.push_back({k.rank, bytes, k.messages > 0 ? k.messages / k.bytes * bytes : 0});
      rest[at] = std::max(0.0, rest[at] - bytes);
    }
  }
  first_.push_back(partners_.size());
}

// The others in its pod, as if they had sent alike: a measured B(i,j) is all that they share.
std::vector<Partner> Heard::of_its_pod(std::uint32_t i) const {
  std::vector<Partner> mates;
  for (std::uint32_t k = 0; k < pods_.now().size() && mates.size() < kMostPartners; ++k)
    if (k != i && pods_.now()[k] == pods_.now()[i]) mates.push_back({.rank = {k}, .bytes = 1e300});
  return mates;
}

// [k, m]: what part of the ranks that were in Set k at the call is in Set m.
Grid<double> Heard::shares(std::span<const ProcessorId> on) const {
  const std::size_t sets = c_.columns.sets;
  Grid<double> went(sets, sets);
  std::vector<double> were(sets, 0);
  for (std::uint32_t i = 0; i < on.size(); ++i) {
    const std::uint32_t k = c_.columns.own[i].value;
    ++were[k];
    went[k, c_.columns.set[on[i].value].value] += 1;
  }
  for (std::size_t k = 0; k < sets; ++k)
    for (std::size_t m = 0; m < sets; ++m) went[k, m] = were[k] > 0 ? went[k, m] / were[k] : (k == m ? 1.0 : 0.0);
  return went;
}

void Heard::seconds(std::span<const ProcessorId> on, std::vector<double>& by_rank) const {
  seconds(on, pods_.matter() ? pods_.after(on) : std::vector<Pods::Number>{}, by_rank);
}

void Heard::seconds(std::span<const std::vector<ProcessorId>> waves, std::vector<double>& by_rank) const {
  seconds(waves.back(), pods_.matter() ? pods_.after(waves) : std::vector<Pods::Number>{}, by_rank);
}

void Heard::seconds(std::span<const ProcessorId> on, std::span<const Pods::Number> pods,
                    std::vector<double>& by_rank) const {
  const std::size_t sets = c_.columns.sets;
  const Platform& platform = c_.snapshot.platform;
  const Grid<double> parts = shares(on);
  Grid<double> per_byte(sets, sets);
  for (std::size_t k = 0; k < sets; ++k)
    for (std::size_t m = 0; m < sets; ++m) {
      const double part = parts[k, m];
      if (part == 0) continue;
      for (std::size_t j = 0; j < sets; ++j)
        per_byte[k, j] += part * (pods_.matter() ? across_[m, j] : platform.T[m, j]);
    }
  by_rank.resize(on.size());
  for (std::uint32_t i = 0; i < on.size(); ++i) {
    const auto row = rest_.row(i);
    const auto columns = rest_.pattern().columns(i);
    const std::uint32_t j = c_.columns.set[on[i].value].value;
    double seconds = 0;
    for (std::size_t n = 0; n < row.size(); ++n) seconds += row[n] * per_byte[columns[n], j];
    for (const Partner& k : partners(i))
      seconds += seconds_of(k, c_.columns.set[on[k.rank.value].value].value, j,
                            !pods.empty() && pods[i] == pods[k.rank.value]);
    by_rank[i] = seconds;
  }
}

Links::Busiest Heard::busiest_link(std::span<const ProcessorId> on) const {
  Links links(c_.snapshot.platform.capacity);
  if (!links.limited()) return {};
  const Grid<double> parts = shares(on);
  const auto set_of = [&](std::uint32_t i) { return c_.columns.set[on[i].value].value; };
  for (std::uint32_t i = 0; i < on.size(); ++i) {
    const auto row = rest_.row(i);
    const auto columns = rest_.pattern().columns(i);
    for (std::size_t n = 0; n < row.size(); ++n)
      for (std::uint32_t m = 0; m < parts.cols(); ++m) links.add(m, set_of(i), row[n] * parts[columns[n], m]);
    for (const Partner& k : partners(i)) links.add(set_of(k.rank.value), set_of(i), k.bytes);
  }
  return links.busiest();
}

std::int64_t Heard::work() const {
  const std::size_t sets = c_.columns.sets, named = rest_.pattern().size();
  const std::size_t of_links =
      c_.snapshot.platform.capacity.empty() ? 0 : c_.columns.on.size() + named * sets + partners_.size();
  const std::size_t of_pods = pods_.matter() ? 3 * c_.columns.on.size() : 0;
  return static_cast<std::int64_t>(3 * c_.columns.on.size() + named + partners_.size() + 2 * sets * sets + of_links +
                                   of_pods);
}

Together::Together(const Case& c, std::span<const double> I, const Heard& heard, double H, double mu, Limits limits)
    : c_(c), I_(I), heard_(heard), H_(H), mu_(mu), limits_(limits) {
  of_one_ = heard.work() + static_cast<std::int64_t>(3 * c.columns.on.size() + 2 * c.columns.set.size());
  for (std::uint32_t i = 0; i < I.size(); ++i) movable_.push_back(!why_blocked(c, {i}, c.columns.own[i]));
}

void Together::put(std::uint32_t i, ProcessorId p) {
  load_[on_[i].value] -= I_[i];
  --held_[on_[i].value];
  on_[i] = p;
  load_[p.value] += I_[i];
  ++held_[p.value];
}

double Together::mem(std::uint32_t i, ProcessorId to) const {
  if (to == c_.columns.on[i]) return 0;
  return Mem(c_, {i}, c_.columns.set[to.value]);
}

bool Together::may_be_on(std::uint32_t i, ProcessorId p) const {
  if (p == c_.columns.on[i]) return true;
  if (!movable_[i] || !(mem(i, p) <= mu_)) return false;
  const Pods& pods = heard_.pods();
  if (pods.matter() && pods.node()[p.value] == pods.node()[c_.columns.on[i].value]) return false;
  if (c_.columns.special[i] == 0) return true;
  return c_.snapshot.may_go_to({i}, p, c_.columns.set[p.value]);
}

// Its home too, where newcomers are not taken in or there are more ranks than slots.
bool Together::has_slot(std::uint32_t i, ProcessorId p) const {
  const std::uint32_t slots =
      p == c_.columns.on[i] ? std::max(c_.columns.slots[p.value], c_.columns.held[p.value]) : c_.columns.slots[p.value];
  return held_[p.value] < slots;
}

ProcessorId Together::soonest(std::uint32_t i, std::uint32_t j, ProcessorId taken) {
  work_ -= static_cast<std::int64_t>(load_.size());
  ProcessorId best{kNone};
  double least = 0;
  for (std::uint32_t p = 0; p < load_.size(); ++p) {
    if (c_.columns.set[p].value != j || p == taken.value || on_[i].value == p || !has_slot(i, {p})) continue;
    const double time = (load_[p] + I_[i]) / c_.columns.available[p];
    if ((best.value != kNone && !(time < least)) || !may_be_on(i, {p})) continue;
    best = {p};
    least = time;
  }
  return best;
}

double Together::J() {
  work_ -= of_one_;
  heard_.seconds(on_, comm_);
  link_ = limits_ == Limits::kLinks ? heard_.busiest_link(on_) : Links::Busiest{};
  const double pause = pause_of(c_.snapshot, c_.columns, c_.columns.on, on_);
  const double time = with_crowd(load_, [&](std::size_t p) { return load_[p] / c_.columns.available[p]; });
  const double comm = with_crowd(comm_, [&](std::size_t i) { return comm_[i]; });
  return H_ * (time + std::max(comm, link_.seconds)) + pause;
}

// Makes the change, weighs it, and unmakes it.
void Together::consider(const Change& change) {
  if (work_ < 0) return;
  const ProcessorId from = on_[change.rank];
  const ProcessorId other_from = change.other == kNone ? from : on_[change.other];
  put(change.rank, change.to);
  if (change.other != kNone) put(change.other, change.other_to);
  if (const double weighed = J(); weighed < least_) {
    least_ = weighed;
    best_ = change;
  }
  if (change.other != kNone) put(change.other, other_from);
  put(change.rank, from);
}

// Likewise for several ranks that go at once.
void Together::consider(std::span<const std::uint32_t> ranks, std::span<const ProcessorId> to) {
  if (work_ < 0) return;
  std::vector<ProcessorId> from;
  for (std::size_t n = 0; n < ranks.size(); ++n) {
    from.push_back(on_[ranks[n]]);
    put(ranks[n], to[n]);
  }
  if (const double weighed = J(); weighed < least_) {
    least_ = weighed;
    best_ = {kNone, {}, kNone, {}};
    for (std::size_t n = 0; n < ranks.size(); ++n) best_.group.emplace_back(ranks[n], to[n]);
  }
  for (std::size_t n = ranks.size(); n-- > 0;) put(ranks[n], from[n]);
}

// Who hears from whom: of the rank that receives longest and its partners elsewhere, those whose messages take longest; of
// a link that takes longer, those who send most over it.
std::vector<std::pair<std::uint32_t, std::uint32_t>> Together::pairs_to_bring_together() const {
  const auto set_of = [&](std::uint32_t i) { return c_.columns.set[on_[i].value].value; };
  std::vector<std::tuple<double, std::uint32_t, std::uint32_t>> heaviest;
  const bool by_link = link_.seconds > std::ranges::max(comm_);
  if (by_link) {
    for (std::uint32_t i = 0; i < on_.size(); ++i)
      for (const Partner& k : heard_.partners(i))
        if (set_of(k.rank.value) == link_.from && set_of(i) == link_.to)
          heaviest.emplace_back(-k.bytes, i, k.rank.value);
  } else {
    const auto longest = static_cast<std::uint32_t>(std::ranges::max_element(comm_) - comm_.begin());
    for (const Partner& k : heard_.partners(longest))
      if (const std::uint32_t a = set_of(k.rank.value), j = set_of(longest);
          pods_.empty() ? a != j : pods_[k.rank.value] != pods_[longest])
        heaviest.emplace_back(-heard_.seconds_of(k, a, j, false), longest, k.rank.value);
  }
  std::ranges::sort(heaviest);
  heaviest.resize(std::min(heaviest.size(), by_link ? kCrossing : kHeaviest));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const auto& [weight, i, k] : heaviest) pairs.emplace_back(i, k);
  return pairs;
}

// Considers the two free slots of each Set that are done soonest.
void Together::go_together(std::uint32_t i, std::uint32_t k) {
  if (!movable_[i] || !movable_[k]) return;
  for (std::uint32_t j = 0; j < c_.columns.sets; ++j) {
    const ProcessorId p = soonest(i, j, {kNone});
    if (p.value == kNone) continue;
    const ProcessorId q = soonest(k, j, c_.columns.slots[p.value] > held_[p.value] + 1 ? ProcessorId{kNone} : p);
    if (q.value != kNone) consider({i, p, k, q});
  }
}

// Rank i goes to a free slot where it shares the pod that k is in.
void Together::join_pod(std::uint32_t i, std::uint32_t k) {
  if (!movable_[i]) return;
  const Pods& pods = heard_.pods();
  work_ -= static_cast<std::int64_t>(load_.size());
  const bool is_new = on_[k] != c_.columns.on[k];  // its pod, which takes in who comes along
  bool seat = false, beside = false;               // tried
  for (std::uint32_t p = 0; p < load_.size(); ++p) {
    if (pods.node()[p] != pods.node()[on_[k].value] || on_[i].value == p || !has_slot(i, {p}) || !may_be_on(i, {p}))
      continue;
    bool& tried = pods.seat()[p] == pods_[k] ? seat : beside;
    if (tried || (&tried == &beside && !is_new)) continue;
    tried = true;
    consider({i, {p}, kNone, {}});
  }
}

// Considers, in each Set, the node that has slots for all of them and is done soonest.
void Together::go_as_group(const std::vector<std::uint32_t>& ranks) {
  if (!std::ranges::all_of(ranks, [&](std::uint32_t i) { return movable_[i] != 0; })) return;
  work_ -= static_cast<std::int64_t>(load_.size());
  const std::span<const std::uint32_t> node = heard_.pods().node();
  std::vector<std::vector<ProcessorId>> to(heard_.pods().nodes());
  std::vector<double> time(to.size(), 0);
  for (std::uint32_t p = 0; p < load_.size(); ++p) {
    std::vector<ProcessorId>& slots = to[node[p]];
    double load = load_[p];
    for (std::uint32_t held = held_[p]; held < c_.columns.slots[p] && slots.size() < ranks.size(); ++held) {
      const std::uint32_t i = ranks[slots.size()];
      if (!may_be_on(i, {p}) || c_.columns.on[i].value == p) break;
      slots.push_back({p});
      load += I_[i];
      time[node[p]] = std::max(time[node[p]], load / c_.columns.available[p]);
    }
  }
  constexpr std::size_t kNo = ~std::size_t{0};
  std::vector<std::size_t> soonest(c_.columns.sets, kNo);
  for (std::size_t n = 0; n < to.size(); ++n) {
    if (to[n].size() < ranks.size()) continue;
    std::size_t& best = soonest[c_.columns.set[to[n].front().value].value];
    if (best == kNo || time[n] < time[best]) best = n;
  }
  for (const std::size_t n : soonest)
    if (n != kNo) consider(ranks, to[n]);
}

// Who may go together: those in one pod; and around one rank those that talk most with it, or with who is already in.
std::vector<std::vector<std::uint32_t>> Together::groups(std::span<const std::uint32_t> movers) const {
  std::vector<std::vector<std::uint32_t>> all;
  const auto add = [&](std::vector<std::uint32_t> group) {
    std::ranges::sort(group);
    if (group.size() > 1 && group.size() <= kGroup && !std::ranges::contains(all, group))
      all.push_back(std::move(group));
  };
  for (const std::uint32_t i : movers) {
    std::vector<std::uint32_t> mates;
    for (std::uint32_t k = 0; k < pods_.size(); ++k)
      if (pods_[k] == pods_[i]) mates.push_back(k);
    add(std::move(mates));
  }
  std::vector<std::uint32_t> group;
  std::vector<double> talk(pods_.size(), 0);  // with the group, s
  for (std::uint32_t next = movers.front(); group.size() < kGroup;) {
    group.push_back(next);
    add(group);
    for (std::uint32_t k = 0; k < talk.size(); ++k)
      for (const Partner& from : heard_.partners(k)) {
        if (k != next && from.rank.value != next) continue;
        const std::uint32_t j = c_.columns.set[on_[k].value].value;
        talk[k == next ? from.rank.value : k] += heard_.seconds_of(from, j, j, false);
      }
    double most = 0;
    for (std::uint32_t k = 0; k < talk.size(); ++k)
      if (talk[k] > most && movable_[k] != 0 && !std::ranges::contains(group, k)) most = talk[k], next = k;
    if (!(most > 0)) break;
  }
  return all;
}

void Together::consider_changes() {
  const auto seconds_of = [&](std::uint32_t p) { return load_[p] / c_.columns.available[p]; };
  std::uint32_t longest = 0, slowest = 0;
  for (std::uint32_t i = 1; i < comm_.size(); ++i)
    if (comm_[i] > comm_[longest]) longest = i;
  for (std::uint32_t p = 1; p < load_.size(); ++p)
    if (seconds_of(p) > seconds_of(slowest)) slowest = p;
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs = pairs_to_bring_together();

  std::vector<std::uint32_t> movers{longest};
  const auto add = [&](std::uint32_t i) {
    if (!std::ranges::contains(movers, i)) movers.push_back(i);
  };
  for (const auto& [i, k] : pairs) add(i), add(k);
  for (std::uint32_t i = 0; i < on_.size(); ++i)
    if (on_[i].value == slowest) add(i);
  std::erase_if(movers, [&](std::uint32_t i) { return movable_[i] == 0; });

  for (const std::uint32_t i : movers)
    for (std::uint32_t j = 0; j < c_.columns.sets; ++j)
      if (const ProcessorId p = soonest(i, j, {kNone}); p.value != kNone) consider({i, p, kNone, {}});
  for (const auto& [i, k] : pairs) go_together(i, k);
  if (!pods_.empty() && !movers.empty()) {
    for (const auto& [i, k] : pairs) join_pod(i, k), join_pod(k, i);
    work_ -= static_cast<std::int64_t>(kGroup) * heard_.work();
    for (const std::vector<std::uint32_t>& group : groups(movers)) go_as_group(group);
  }
  for (const std::uint32_t i : movers)
    for (std::uint32_t k = 0; k < on_.size(); ++k) {
      if (k == i || on_[k] == on_[i] || !may_be_on(k, on_[i]) || !may_be_on(i, on_[k])) continue;
      const bool takes_in = c_.columns.slots[on_[i].value] > 0 || on_[i] == c_.columns.on[k];
      if (takes_in && (c_.columns.slots[on_[k].value] > 0 || on_[k] == c_.columns.on[i]))
        consider({i, on_[k], k, on_[i]});
    }
}

std::vector<ProcessorId> Together::descend(std::vector<ProcessorId> on,
                                           const std::function<void(std::span<const ProcessorId>)>& found) {
  on_ = std::move(on);
  load_.assign(c_.columns.set.size(), 0);
  held_.assign(load_.size(), 0);
  for (std::uint32_t i = 0; i < on_.size(); ++i) {
    load_[on_[i].value] += I_[i];
    ++held_[on_[i].value];
  }
  for (double now = J(); work_ >= 0; now = least_) {
    least_ = now * kStep;
    best_ = {kNone, {}, kNone, {}};
    J();  // of where the ranks are: comm_
    if (heard_.pods().matter()) pods_ = heard_.pods().after(on_);
    consider_changes();
    if (best_.rank == kNone && best_.group.empty()) return on_;
    if (best_.rank != kNone) put(best_.rank, best_.to);
    if (best_.other != kNone) put(best_.other, best_.other_to);
    for (const auto& [i, p] : best_.group) put(i, p);
    found(on_);
  }
  return on_;
}

}  // namespace bsp::decide
