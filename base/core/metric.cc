#include "base/core/metric.h"

#include <algorithm>
#include <format>
#include <ranges>
#include <utility>

namespace bsp {
namespace {

struct ByName {
  std::mutex mutex;
  std::multimap<std::string, const Metric*> metrics;
};
ByName& registry() {
  static ByName all;
  return all;
}

}  // namespace

std::string escaped_label(std::string_view value) {
  std::string out;
  for (const char c : value) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

Metric::Metric(Type type, std::string name, std::string help, std::vector<std::string> labels,
               std::vector<double> bounds)
    : type_(type),
      name_(std::move(name)),
      help_(std::move(help)),
      labels_(std::move(labels)),
      bounds_(std::move(bounds)) {
  const std::lock_guard lock(registry().mutex);
  registry().metrics.emplace(name_, this);
}

Metric::~Metric() {
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().metrics, [this](const auto& entry) { return entry.second == this; });
}

void Metric::add(const Values& labels, double amount) {
  const std::lock_guard lock(mutex_);
  samples_[labels].value += amount;
}

void Metric::set(const Values& labels, double value) {
  const std::lock_guard lock(mutex_);
  samples_[labels].value = value;
}

void Metric::observe(const Values& labels, double value) {
  const std::lock_guard lock(mutex_);
  Sample& sample = samples_[labels];
  sample.counts.resize(bounds_.size() + 1);
  sample.value += value;
  ++sample.counts[static_cast<std::size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin())];
}

void Metric::replace(const Values& first, const std::map<Values, double>& values) {
  const std::lock_guard lock(mutex_);
  std::erase_if(samples_, [&](const auto& entry) {
    return first.size() <= entry.first.size() &&
           std::ranges::equal(first, entry.first | std::views::take(first.size()));
  });
  for (const auto& [labels, value] : values) samples_[labels].value = value;
}

std::string Metric::labelled(const Values& values, const std::string& le) const {
  std::string text;
  const auto label = [&](const std::string& name, const std::string& value) {
    text += std::format("{}{}=\"{}\"", text.empty() ? "" : ",", name, escaped_label(value));
  };
  for (std::size_t i = 0; i < std::min(labels_.size(), values.size()); ++i) label(labels_[i], values[i]);
  if (!le.empty()) label("le", le);
  return text.empty() ? "" : "{" + text + "}";
}

std::string Metric::text() const {
  const std::lock_guard lock(mutex_);
  if (samples_.empty()) return "";
  constexpr std::string_view kTypes[] = {"counter", "gauge", "histogram"};
  std::string out =
      std::format("# HELP {} {}\n# TYPE {} {}\n", name_, help_, name_, kTypes[static_cast<std::size_t>(type_)]);
  for (const auto& [values, sample] : samples_) {
    if (type_ != Type::kHistogram) {
      out += std::format("{}{} {}\n", name_, labelled(values), sample.value);
      continue;
    }
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < sample.counts.size(); ++i) {
      count += sample.counts[i];
      const std::string le = i < bounds_.size() ? std::format("{}", bounds_[i]) : "+Inf";
      out += std::format("{}_bucket{} {}\n", name_, labelled(values, le), count);
    }
    out += std::format("{}_sum{} {}\n{}_count{} {}\n", name_, labelled(values), sample.value, name_, labelled(values),
                       count);
  }
  return out;
}

std::string all_metrics() {
  std::string out;
  const std::lock_guard lock(registry().mutex);
  for (const auto& [name, metric] : registry().metrics) out += metric->text();
  return out;
}

}  // namespace bsp
