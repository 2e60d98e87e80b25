#include "operator/observe/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "operator/decide/auto/partners.h"
#include "operator/decide/auto/take_back.h"
#include "operator/observe/median.h"
#include "operator/observe/negligible.h"

namespace bsp::observe {

namespace {
struct Sums {
  double I = 0, CT = 0;
  [[nodiscard]] bool measured() const { return I > 0 && CT > 0; }
};

// For one superstep: one with almost no work, or a descheduled rank, gives outliers.
void add_speed(Estimate& speed, double x) {
  const bool settled = speed.samples >= Calibration::kSettled;
  speed.add(settled ? std::clamp(x, speed.value / Calibration::kOutlier, speed.value * Calibration::kOutlier) : x);
}

double most_of(std::span<const double> values) { return values.empty() ? 0 : std::ranges::max(values); }

double middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t n = values.size();
  return (values[n / 2] + values[(n - 1) / 2]) / 2;
}

static_assert(Calibration::kSettled <= decide::TakeBack::kMeasured, "a wave's nodes are known when it is judged");

constexpr double kBesidesMs = 1000;  // upper bound for a pause's unmeasured parts
}  // namespace

void Estimate::add(double x) {
  if (samples < std::numeric_limits<std::uint32_t>::max()) ++samples;
  value += std::max(1.0 / samples, Calibration::kWeight) * (x - value);
}

Calibration Calibration::from_status(const std::vector<crds::CalibrationEntry>& values) {
  Calibration c;
  for (const auto& f : values) {
    using enum crds::CalibrationSource;
    if ((f.source == kAssumed || f.source == kCalibrated) && f.samples == 0) continue;
    const Estimate estimate{f.value, std::max(1u, f.samples)};
    if (f.name == "cpu") c.cpu_[f.set] = estimate;
    if (f.name == "bandwidth") c.bandwidth_[{f.set, f.to_set}] = estimate;
    if (f.name == "migrationFixed") c.fixed_[f.to_set] = estimate;
    if (f.name == "linkCapacity") c.links_[{f.set, f.to_set}] = decide::LinkSeen(f.value);
  }
  return c;
}

std::vector<crds::CalibrationEntry> Calibration::to_status(
    const std::map<std::string, double>& nominal,
    const std::map<std::string, crds::CalibrationSource>& rests_on) const {
  auto source = [](bool measured) {
    return measured ? crds::CalibrationSource::kMeasured : crds::CalibrationSource::kAssumed;
  };
  std::vector<crds::CalibrationEntry> out;
  for (const auto& [set, speed] : nominal) {
    const Value v = cpu(set, nominal);
    const auto it = cpu_.find(set);
    const auto basis = rests_on.find(set);
    const bool based = basis != rests_on.end() && (v.measured || basis->second == crds::CalibrationSource::kCalibrated);
    out.push_back({"cpu", set, "", v.value, "instructions/s", based ? basis->second : source(v.measured),
                   it == cpu_.end() ? 0 : it->second.samples});
  }
  for (const auto& [pair, estimate] : bandwidth_)
    out.push_back({"bandwidth", pair.first, pair.second, estimate.value, "bytes/s", crds::CalibrationSource::kMeasured,
                   estimate.samples});
  if (bandwidth_.empty())
    out.push_back({"bandwidth", "", "", kAssumedBandwidth, "bytes/s", crds::CalibrationSource::kAssumed, 0});
  for (const auto& [set, estimate] : fixed_)
    out.push_back(
        {"migrationFixed", "", set, estimate.value, "s", crds::CalibrationSource::kMeasured, estimate.samples});
  for (const auto& [pair, link] : links_)
    if (link.capacity() > 0)
      out.push_back(
          {"linkCapacity", pair.first, pair.second, link.capacity(), "bytes/s", crds::CalibrationSource::kMeasured, 1});
  if (fixed_.empty())
    out.push_back({"migrationFixed", "", "", kAssumedFixed, "s", crds::CalibrationSource::kAssumed, 0});
  return out;
}

void Calibration::add_superstep(const SuperstepTimes& times, const std::vector<std::string>& set_of_rank,
                                const std::vector<std::string>& node_of_rank) {
  const std::size_t ranks = std::min(set_of_rank.size(), times.instructions.size());
  struct Node {
    const std::string* set;
    Sums sums;
    std::size_t ranks = 0;  // which: equal for equal ones
  };
  std::unordered_map<std::string_view, Node> nodes;
  std::map<std::string_view, Sums> sets;
  const auto add = [&](Sums& sums, std::size_t i) {
    sums.I += times.instructions[i];
    sums.CT += times.compute_seconds[i];
  };
  now_ = std::max(now_, times.superstep);
  const Sums usual{.I = most_.value, .CT = longest_.value},
      now{.I = most_of(std::span(times.instructions).first(ranks)),
          .CT = most_of(std::span(times.compute_seconds).first(ranks))};
  if (ranks > 0) most_.add(now.I), longest_.add(now.CT);
  const auto is_little = [](const Sums& one,
                            const Sums& other) {  // both: a superstep that was held up has as much work
    return one.I < kLittle * other.I && one.CT < kLittle * other.CT;
  };
  told_ = !is_little(now, usual);
  if (!told_) return;
  const Negligible is_negligible(std::span(times.compute_seconds).first(ranks));
  std::map<std::string_view, Sums> negligible;  // by Set
  for (std::size_t i = 0; i < ranks; ++i) {
    const bool counts = !is_negligible(times.compute_seconds[i]);
    add(counts ? sets[set_of_rank[i]] : negligible[set_of_rank[i]], i);
    if (i >= node_of_rank.size()) continue;
    Node& node = nodes.try_emplace(node_of_rank[i], &set_of_rank[i]).first->second;
    node.ranks = node.ranks * 31 + i + 1;
    if (counts) add(node.sums, i);
  }
  if (usual.CT > 0 && is_little(usual, now)) {
    for (const auto& [set, sums] : sets) first_.erase(std::string(set)), cpu_.erase(std::string(set));
    for (const auto& [name, node] : nodes) apart_.erase(std::string(name));
    steadiness_.restart();
  }
  for (const auto& [set, sums] : negligible)  // better than nothing
    if (!sets.contains(set) && !cpu_.contains(std::string(set))) sets[set] = sums;
  std::map<std::string_view, std::vector<double>> of_set;  // its nodes' speeds
  for (const auto& [name, node] : nodes)
    if (node.sums.measured()) of_set[*node.set].push_back(node.sums.I / node.sums.CT);
  nodes_.clear();
  for (const auto& [set, sums] : sets) {
    if (!sums.measured()) continue;
    std::vector<double>& speeds = of_set[set];
    if (!speeds.empty()) nodes_[std::string(set)] = speeds.size();
    add_speed_of_set(std::string(set), speeds.size() < kFewNodes ? sums.I / sums.CT : median(speeds));
  }
  for (const auto& [name, node] : nodes) {
    if (!node.sums.measured()) continue;
    const double speed = node.sums.I / node.sums.CT;
    note_node(std::string(name), speed, cpu_.at(*node.set).value);
    steadiness_.add(name, node.ranks, speed);
  }
  steadiness_.end_superstep();
}

void Calibration::add_speed_of_set(const std::string& set, double x) {
  Estimate& speed = cpu_[set];
  if (speed.samples >= kSettled) return add_speed(speed, x);
  std::vector<double>& first = first_[set];
  first.resize(speed.samples, speed.value);  // of those before a restart no more is known
  first.push_back(x);
  speed = {middle_of(first), speed.samples + 1};
  if (speed.samples == kSettled) first_.erase(set);
}

void Calibration::add_traffic(const decide::MeasuredSuperstep& t, const std::vector<std::string>& sets,
                              const std::vector<std::string>& set_of_rank, const decide::Grid<double>& messages) {
  if (!decide::Heard::is_for(set_of_rank.size(), sets.size()) || t.recv_bytes.rows() != set_of_rank.size()) return;
  std::vector<SetId> own;
  for (const std::string& set : set_of_rank) {
    const auto at = std::ranges::find(sets, set);
    if (at == sets.end()) return;  // a Set that joined meanwhile has no number in the reports yet
    own.push_back({static_cast<std::uint32_t>(at - sets.begin())});
  }
  for (const decide::Crossing& crossing : decide::crossings(t, own, messages)) {
    const std::string &from = sets[crossing.from.value], &to = sets[crossing.to.value];
    const Value pace = seconds_per_byte(from, to);
    links_[{from, to}].add(crossing, pace.measured ? pace.value : 0);
  }
}

double Calibration::capacity(const std::string& from, const std::string& to) const {
  const auto link = links_.find({from, to});
  return link == links_.end() ? 0 : link->second.capacity();
}

// On one side only: noise is on both sides.
void Calibration::note_node(const std::string& node, double speed, double of_set) {
  const auto side = [of_set](double x) { return x < of_set * (1 - kApart) ? -1 : x > of_set * (1 + kApart) ? 1 : 0; };
  const auto it = apart_.find(node);
  if (it != apart_.end() && side(it->second.speed.value) != side(speed))
    apart_.erase(it);
  else if (it != apart_.end() && is_over(it->second))
    it->second = {.kept = 2 * it->second.kept};
  if (side(speed) == 0) return;
  Apart& apart = apart_[node];
  add_speed(apart.speed, speed);
  apart.seen = now_;
}

bool Calibration::is_over(const Apart& apart) const {
  const double pause = pause_.samples > 0 ? pause_.value : kAssumedFixed;
  const double pauses = longest_.value > 0 ? kKeptPauses * pause / longest_.value : 0;
  return static_cast<double>(now_ - apart.seen) > apart.kept * std::max(kKept, pauses);
}

const Calibration::Apart* Calibration::apart(const std::string& node, double of_set) const {
  const auto it = apart_.find(node);
  if (it == apart_.end() || it->second.speed.samples < kSettled) return nullptr;
  const Estimate& speed = it->second.speed;
  const double evidence = speed.samples * std::abs(std::log(speed.value / of_set));
  return evidence >= kEvidence * std::log(1 + kApart) ? &it->second : nullptr;
}

Calibration::Value Calibration::cpu_of_node(const std::string& node, const std::string& set,
                                            const std::map<std::string, double>& nominal) const {
  const Value of_set = cpu(set, nominal);
  const Apart* was = apart(node, of_set.value);
  if (!was) return of_set;
  if (!is_over(*was)) return {.value = was->speed.value, .measured = true, .error = error_of(was->speed, 1)};
  Value again = of_set;
  again.may_return = was->speed.value < of_set.value;
  return again;
}

void Calibration::rescale(const std::string& set, double ratio) {
  if (const auto it = cpu_.find(set); it != cpu_.end()) it->second.value *= ratio;
  if (const auto first = first_.find(set); first != first_.end())
    for (double& speed : first->second) speed *= ratio;
  steadiness_.restart();
  apart_.clear();  // nodes are not kept by Set; one that is apart is found again within kSettled supersteps
}

void Calibration::forget(const std::string& node) {
  apart_.erase(node);
  steadiness_.forget(node);
}

void Calibration::add_move(const std::string& from, const std::string& to, std::uint64_t bytes,
                           const crds::PauseParts& pause) {
  if (bytes > 0 && pause.transfer_ms > 0)
    bandwidth_[{from, to}].add(static_cast<double>(bytes) / (pause.transfer_ms * 1e-3));
  // It spans the clocks of two nodes, which may differ by minutes. Each part was measured with one clock.
  const double parts = pause.close_ms + std::max(pause.dump_ms, pause.transfer_ms) + pause.restore_ms + pause.open_ms;
  const double total = std::min(pause.total_ms, 2 * parts + kBesidesMs);
  if (!(total > 0)) return;
  pause_.add(total * 1e-3);
  fixed_[to].add(std::max(0.0, total * 1e-3 - static_cast<double>(bytes) * seconds_per_byte(from, to).value));
}

void Calibration::add_late_move(const std::string& from, const std::string& to, std::uint64_t bytes, double seconds) {
  if (bytes < kEnoughBytes || seconds <= 0) return;
  const double most = static_cast<double>(bytes) / seconds;
  Estimate& bandwidth = bandwidth_[{from, to}];
  bandwidth.value = bandwidth.samples == 0 ? most : std::min(bandwidth.value, most);
  ++bandwidth.samples;
}

double Calibration::error_of(const Estimate& speed, std::size_t nodes) const {
  const double blocks = std::min<double>(speed.samples, 2 / kWeight - 1) / Steadiness::kBlock;
  return steadiness_.noise() / std::sqrt(blocks * static_cast<double>(nodes));
}

Calibration::Value Calibration::cpu(const std::string& set, const std::map<std::string, double>& nominal) const {
  if (const auto it = cpu_.find(set); it != cpu_.end()) {
    const auto nodes = nodes_.find(set);
    return {it->second.value, true, error_of(it->second, nodes == nodes_.end() ? 1 : nodes->second)};
  }
  auto speed = [&](const std::string& name) {
    const auto it = nominal.find(name);
    return it == nominal.end() || it->second <= 0 ? 1.0 : it->second;
  };
  // The mean of the measured Sets' speeds, scaled to this Set's nominal speed.
  double sum = 0;
  for (const auto& [other, estimate] : cpu_) sum += estimate.value * speed(set) / speed(other);
  return {cpu_.empty() ? kAssumedRate * speed(set) : sum / static_cast<double>(cpu_.size()), false};
}

Calibration::Value Calibration::seconds_per_byte(const std::string& from, const std::string& to) const {
  for (const auto& key : {std::pair{from, to}, std::pair{to, from}})
    if (const auto it = bandwidth_.find(key); it != bandwidth_.end()) return {1 / it->second.value, true};
  // Any measured pair of the platform is better than an assumption.
  if (!bandwidth_.empty()) return {1 / bandwidth_.begin()->second.value, false};
  return {1 / kAssumedBandwidth, false};
}

Calibration::Value Calibration::fixed(const std::string& to) const {
  if (const auto it = fixed_.find(to); it != fixed_.end()) return {it->second.value, true};
  if (!fixed_.empty()) return {fixed_.begin()->second.value, false};
  return {kAssumedFixed, false};
}

}  // namespace bsp::observe
