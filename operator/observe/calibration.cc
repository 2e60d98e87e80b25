#include "operator/observe/calibration.h"

#include <algorithm>

namespace bsp::observe {

namespace {
constexpr double kBesidesMs = 1000;  // what a pause takes besides its measured parts, at most
}  // namespace

void Figure::add(double x) {
  ++samples;
  value += std::max(1.0 / samples, Calibration::kWeight) * (x - value);
}

Calibration Calibration::from_status(const std::vector<crds::CalibrationFigure>& figures) {
  Calibration c;
  for (const auto& f : figures) {
    if (f.source != crds::FigureSource::kMeasured) continue;
    const Figure figure{f.value, std::max(1u, f.samples)};
    if (f.name == "cpu") c.cpu_[f.set] = figure;
    if (f.name == "bandwidth") c.bandwidth_[{f.set, f.to_set}] = figure;
    if (f.name == "migrationFixed") c.fixed_[f.to_set] = figure;
  }
  return c;
}

std::vector<crds::CalibrationFigure> Calibration::to_status(const std::map<std::string, double>& nominal) const {
  auto source = [](bool measured) { return measured ? crds::FigureSource::kMeasured : crds::FigureSource::kAssumed; };
  std::vector<crds::CalibrationFigure> out;
  for (const auto& [set, speed] : nominal) {
    const Value v = cpu(set, nominal);
    const auto it = cpu_.find(set);
    out.push_back(
        {"cpu", set, "", v.value, "instructions/s", source(v.measured), it == cpu_.end() ? 0 : it->second.samples});
  }
  for (const auto& [pair, figure] : bandwidth_)
    out.push_back(
        {"bandwidth", pair.first, pair.second, figure.value, "bytes/s", crds::FigureSource::kMeasured, figure.samples});
  if (bandwidth_.empty())
    out.push_back({"bandwidth", "", "", kAssumedBandwidth, "bytes/s", crds::FigureSource::kAssumed, 0});
  for (const auto& [set, figure] : fixed_)
    out.push_back({"migrationFixed", "", set, figure.value, "s", crds::FigureSource::kMeasured, figure.samples});
  if (fixed_.empty()) out.push_back({"migrationFixed", "", "", kAssumedFixed, "s", crds::FigureSource::kAssumed, 0});
  return out;
}

void Calibration::add_superstep(const SuperstepTimes& times, const std::vector<std::string>& set_of_rank) {
  std::map<std::string, std::pair<double, double>> sums;  // I, CT
  for (std::size_t i = 0; i < std::min(set_of_rank.size(), times.instructions.size()); ++i) {
    sums[set_of_rank[i]].first += times.instructions[i];
    sums[set_of_rank[i]].second += times.compute_seconds[i];
  }
  for (const auto& [set, sum] : sums)
    if (sum.first > 0 && sum.second > 0) {
      Figure& speed = cpu_[set];
      const double x = sum.first / sum.second;
      speed.add(speed.samples < kSettled ? x : std::clamp(x, speed.value / kOutlier, speed.value * kOutlier));
    }
}

void Calibration::add_move(const std::string& from, const std::string& to, std::uint64_t bytes,
                           const crds::PauseParts& pause) {
  if (bytes > 0 && pause.transfer_ms > 0)
    bandwidth_[{from, to}].add(static_cast<double>(bytes) / (pause.transfer_ms * 1e-3));
  // From one node's clock to another's, and one of them may be wrong by minutes. Each part was measured by one clock.
  const double parts = std::max(pause.dump_ms, pause.transfer_ms) + pause.restore_ms + pause.open_ms;
  const double total = std::min(pause.total_ms, 2 * parts + kBesidesMs);
  if (total > 0)
    fixed_[to].add(std::max(0.0, total * 1e-3 - static_cast<double>(bytes) * seconds_per_byte(from, to).value));
}

void Calibration::add_late_move(const std::string& from, const std::string& to, std::uint64_t bytes, double seconds) {
  if (bytes < kTelling || seconds <= 0) return;
  const double most = static_cast<double>(bytes) / seconds;
  Figure& bandwidth = bandwidth_[{from, to}];
  bandwidth.value = bandwidth.samples == 0 ? most : std::min(bandwidth.value, most);
  ++bandwidth.samples;
}

Calibration::Value Calibration::cpu(const std::string& set, const std::map<std::string, double>& nominal) const {
  if (const auto it = cpu_.find(set); it != cpu_.end()) return {it->second.value, true};
  auto speed = [&](const std::string& name) {
    const auto it = nominal.find(name);
    return it == nominal.end() || it->second <= 0 ? 1.0 : it->second;
  };
  // The mean of what the measured Sets would do at this Set's nominal speed.
  double sum = 0;
  for (const auto& [other, figure] : cpu_) sum += figure.value * speed(set) / speed(other);
  return {cpu_.empty() ? kAssumedRate * speed(set) : sum / static_cast<double>(cpu_.size()), false};
}

Calibration::Value Calibration::seconds_per_byte(const std::string& from, const std::string& to) const {
  for (const auto& key : {std::pair{from, to}, std::pair{to, from}})
    if (const auto it = bandwidth_.find(key); it != bandwidth_.end()) return {1 / it->second.value, true};
  // Any measured pair of the platform says more than an assumption.
  if (!bandwidth_.empty()) return {1 / bandwidth_.begin()->second.value, false};
  return {1 / kAssumedBandwidth, false};
}

Calibration::Value Calibration::fixed(const std::string& to) const {
  if (const auto it = fixed_.find(to); it != fixed_.end()) return {it->second.value, true};
  if (!fixed_.empty()) return {fixed_.begin()->second.value, false};
  return {kAssumedFixed, false};
}

}  // namespace bsp::observe
