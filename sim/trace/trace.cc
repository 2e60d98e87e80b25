#include "sim/trace/trace.h"

#include <algorithm>
#include <format>
#include <fstream>

#include "operator/record/line.h"

namespace bsp::sim {
namespace {

class Trace : public Workload {
 public:
  explicit Trace(std::string name) : name_(std::move(name)) {}

  // kInvalid if the call is of another run. Repeated supersteps are ignored.
  Result<void> add(const record::Call& call) {
    if (calls_.empty()) run_ = record::run_of(call);
    if (record::run_of(call) != run_ || (!calls_.empty() && call.snapshot.ranks.size() != ranks()))
      return fail(ErrorCode::kInvalid,
                  std::format("is of another run than the previous lines (job {}, attempt {}, {} ranks): "
                              "keep the lines of one run",
                              call.job, call.attempt, call.snapshot.ranks.size()));
    BSP_CHECK_OK(record::check_order(last_, call));
    for (const decide::MeasuredSuperstep& t : call.supersteps) {
      if (t.superstep <= last_) continue;
      last_ = t.superstep;
      supersteps_.push_back({demand_of(t, call.snapshot), calls_.size()});
    }
    std::vector<double>& memory = calls_.emplace_back();
    for (const decide::Rank& rank : call.snapshot.ranks) memory.push_back(rank.memory_bytes);
    return {};
  }

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::uint32_t ranks() const override {
    return calls_.empty() ? 0 : static_cast<std::uint32_t>(calls_[0].size());
  }
  [[nodiscard]] std::uint64_t supersteps() const override { return supersteps_.size(); }
  void demand(std::uint64_t t, Demand& out) const override { out = supersteps_[t - 1].demand; }
  [[nodiscard]] double memory_bytes(RankId i, std::uint64_t t) const override {
    return calls_[t == 0 ? 0 : supersteps_[t - 1].call][i.value];
  }

 private:
  static Demand demand_of(const decide::MeasuredSuperstep& t, const decide::Snapshot& snapshot) {
    Demand demand{.instructions = t.instructions};
    std::vector<std::vector<RankId>> in(snapshot.platform.sets.size());
    for (std::uint32_t i = 0; i < snapshot.ranks.size(); ++i) in[snapshot.set({i}).value].push_back({i});
    for (std::uint32_t i = 0; i < t.recv_bytes.rows(); ++i) {
      const auto heard_from = t.recv_bytes.pattern().columns(i);
      for (std::size_t k = 0; k < heard_from.size(); ++k) {
        const double bytes = t.recv_bytes.row(i)[k];
        if (!(bytes > 0)) continue;
        const std::vector<RankId> senders = nearest(in[heard_from[k]], i);
        for (const RankId from : senders)
          demand.messages.push_back({from, {i}, bytes / static_cast<double>(senders.size())});
      }
    }
    return demand;
  }

  // A record doesn't name the senders. Assume the four other ranks with the nearest numbers, which are likely
  // neighbours.
  static std::vector<RankId> nearest(const std::vector<RankId>& in_set, std::uint32_t i) {
    constexpr std::size_t kSenders = 4;
    auto above = std::ranges::lower_bound(in_set, i, {}, &RankId::value), below = above;
    if (above != in_set.end() && above->value == i) ++above;
    std::vector<RankId> found;
    while (found.size() < kSenders && (below != in_set.begin() || above != in_set.end())) {
      const bool down =
          above == in_set.end() || (below != in_set.begin() && i - std::prev(below)->value <= above->value - i);
      found.push_back(down ? *--below : *above++);
    }
    return found;
  }

  struct Recorded {
    Demand demand;
    std::size_t call;  // the call after it
  };
  std::string name_;
  std::string run_;  // record::run_of() of the calls
  Superstep last_{};
  std::vector<Recorded> supersteps_;
  std::vector<std::vector<double>> calls_;  // M(i) at each
};

}  // namespace

Result<std::unique_ptr<Workload>> read_trace(std::istream& records, const std::string& name) {
  auto trace = std::make_unique<Trace>("trace of " + name);
  std::string line;
  for (std::size_t number = 1; std::getline(records, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto call = record::from_line(line);
    if (!call) return std::unexpected(call.error().in(std::format("{}:{}", name, number)));
    if (const auto added = trace->add(*call); !added)
      return std::unexpected(added.error().in(std::format("{}:{}", name, number)));
  }
  if (trace->supersteps() == 0)
    return fail(
        ErrorCode::kInvalid,
        std::format("{} has no recorded superstep; local run --record FILE writes a line for each rescheduling call",
                    name));
  return trace;
}

Application trace() {
  return {.name = "trace",
          .summary = "a recorded run: its instructions and bytes, superstep by superstep",
          .parameters = {{"file", "", "a file written by --record"}},
          .make = [](std::uint32_t ranks, const Parameters& given) -> Result<std::unique_ptr<Workload>> {
            std::ifstream file(given.text("file"));
            if (!file) return fail_errno("--application: trace:file: reading " + given.text("file"));
            BSP_TRY(auto workload, read_trace(file, given.text("file")));
            if (workload->ranks() != ranks)
              return fail(ErrorCode::kInvalid,
                          std::format("spec.ranks is {}, but the run in {} had {} ranks: use that number", ranks,
                                      given.text("file"), workload->ranks()));
            return workload;
          }};
}

}  // namespace bsp::sim
