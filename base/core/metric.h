// Counters, gauges and histograms of this process, as Prometheus reads them. They live as long as the process, so what they
// count survives the job that it happened to.
//
//   Metric migrations(Metric::Type::kCounter, "bsp_migrations_total", "Migrations by outcome.", {"outcome"});
//   migrations.add({"Succeeded"});
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace bsp {

// Thread-safe. Those of the same name would be two families: declare each once.
class Metric {
 public:
  enum class Type { kCounter, kGauge, kHistogram };
  using Values = std::vector<std::string>;  // of the labels, in their order

  // `bounds` of a histogram, ascending.
  Metric(Type type, std::string name, std::string help, std::vector<std::string> labels = {},
         std::vector<double> bounds = {});
  ~Metric();
  Metric(const Metric&) = delete;
  Metric& operator=(const Metric&) = delete;

  void add(const Values& labels, double amount = 1);  // of a counter, or of a gauge
  void set(const Values& labels, double value);       // of a gauge
  void observe(const Values& labels, double value);   // of a histogram
  // Instead of all gauges whose first labels these are.
  void replace(const Values& first, const std::map<Values, double>& values);
  void remove(const Values& first) { replace(first, {}); }

  [[nodiscard]] std::string text() const;

 private:
  struct Sample {
    double value = 0;                   // of a histogram the sum
    std::vector<std::uint64_t> counts;  // of those up to each bound and above the one before; the rest
  };
  [[nodiscard]] std::string labelled(const Values& values, const std::string& le = "") const;

  const Type type_;
  const std::string name_, help_;
  const std::vector<std::string> labels_;
  const std::vector<double> bounds_;
  mutable std::mutex mutex_;
  std::map<Values, Sample> samples_;
};

// All of the process, by name, in Prometheus' text format 0.0.4; those without a sample are omitted.
std::string all_metrics();
// A label's value between quotation marks.
std::string escaped_label(std::string_view value);

}  // namespace bsp
