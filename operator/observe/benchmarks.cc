#include "operator/observe/benchmarks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "operator/observe/median.h"

namespace bsp::observe {

namespace {

constexpr const char* kSpeed = "cpuBenchmark";

}  // namespace

double units_per_second(const wire::CpuBenchmark& cpu) {
  const double product =
      static_cast<double>(cpu.integer_ns) * static_cast<double>(cpu.floating_ns) * static_cast<double>(cpu.memory_ns);
  return 1e9 / std::cbrt(product);
}

Benchmarks Benchmarks::from_status(const std::vector<crds::CalibrationEntry>& values) {
  Benchmarks b;
  for (const auto& v : values)
    if (v.name == kSpeed && v.value > 0 && std::isfinite(v.value) && v.samples > 0)
      b.speeds_[v.set] = {v.value, v.samples};
  return b;
}

std::vector<crds::CalibrationEntry> Benchmarks::to_status() const {
  std::vector<crds::CalibrationEntry> out;
  for (const auto& [set, speed] : speeds_)
    out.push_back({kSpeed, set, "", speed.value, "units/s", crds::CalibrationSource::kMeasured, speed.samples});
  return out;
}

void Benchmarks::update(const std::vector<PodBenchmark>& pods, const std::vector<NodeFacts>& nodes) {
  // A node of another CPU under the same name is another node.
  struct Machine {
    std::string_view set, node, model;
    auto operator<=>(const Machine&) const = default;
  };
  std::map<Machine, wire::CpuBenchmark> machines;
  for (const PodBenchmark& pod : pods) {
    if (pod.set.empty() || pod.node.empty() || !wire::is_plausible(*pod.cpu)) continue;
    const auto [it, first] = machines.try_emplace({pod.set, pod.node, pod.cpu->model}, *pod.cpu);
    if (first) continue;
    it->second.integer_ns = std::min(it->second.integer_ns, pod.cpu->integer_ns);
    it->second.floating_ns = std::min(it->second.floating_ns, pod.cpu->floating_ns);
    it->second.memory_ns = std::min(it->second.memory_ns, pod.cpu->memory_ns);
  }
  std::map<std::string_view, std::vector<double>> by_set;
  std::set<std::string_view> reported;
  for (const auto& [machine, cpu] : machines) {
    by_set[machine.set].push_back(units_per_second(cpu));
    reported.insert(machine.node);
  }
  for (const NodeFacts& node : nodes)
    if (node.benchmark && !node.set.empty() && !reported.contains(node.name))
      by_set[node.set].push_back(*node.benchmark);
  for (auto& [set, speeds] : by_set) {
    const double middle = median(speeds);
    const auto count = static_cast<std::uint32_t>(speeds.size());
    Estimate& known = speeds_[std::string(set)];
    const bool changed = known.samples > 0 && std::abs(std::log(middle / known.value)) > Calibration::kApart;
    if (count > known.samples || (changed && 2 * count >= known.samples)) known = {middle, count};
  }
}

std::map<std::string, double> Benchmarks::relative_to(const std::string& set) const {
  std::map<std::string, double> out;
  const auto own = speeds_.find(set);
  if (own == speeds_.end()) return out;
  for (const auto& [other, speed] : speeds_) {
    const double ratio = speed.value / own->second.value;
    out[other] = std::abs(std::log(ratio)) > Calibration::kApart ? ratio : 1;
  }
  return out;
}

}  // namespace bsp::observe
