#include "sim/exchange/gather.h"

#include <algorithm>
#include <vector>

namespace bsp::sim::exchange {
namespace {

// One node: its thread and its network interface, each handling one message at a time.
class GatherNode {
 public:
  explicit GatherNode(const GatherParams& params) : params_(params) {}

  // When a message written at `time` has been sent.
  double send(double time, double bytes) {
    const double written = work(time, bytes);
    wire_free_ = std::max(wire_free_, written) + bytes / params_.interface;
    return wire_free_;
  }
  // When a message that arrived at `time` has been read.
  double receive(double time, double bytes) {
    wire_in_free_ = std::max(wire_in_free_, time) + bytes / params_.interface;
    return work(wire_in_free_, bytes);
  }
  [[nodiscard]] double cpu() const { return cpu_; }

 private:
  double work(double time, double bytes) {
    const double cost = params_.message + bytes * params_.byte;
    cpu_ += cost;
    free_ = std::max(free_, time) + cost;
    return free_;
  }

  const GatherParams& params_;
  double free_ = 0;
  double wire_free_ = 0;
  double wire_in_free_ = 0;
  double cpu_ = 0;
};

struct GatherRound {
  std::uint64_t messages = 0;
  double end = 0;
};

// `asker` requests reports of that size from `count` nodes and reads their answers in the order of arrival.
GatherRound ask_ranks(GatherNode& asker, double start, std::uint64_t count, double latency,
                      const GatherParams& params) {
  std::vector<double> arrivals;
  arrivals.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    GatherNode rank(params);
    const double asked = asker.send(start, params.request_bytes) + latency;
    arrivals.push_back(rank.send(rank.receive(asked, params.request_bytes), params.report_bytes) + latency);
  }
  std::ranges::sort(arrivals);
  double end = start;
  for (const double arrival : arrivals) end = asker.receive(arrival, params.report_bytes);
  return {.messages = 2 * count, .end = end};
}

}  // namespace

Gathered gather(Gathering way, const GatherParams& params) {
  Gathered result;
  GatherNode center(params);
  if (way == Gathering::kFlat) {
    const GatherRound round = ask_ranks(center, 0, params.ranks, params.latency_between, params);
    result.messages = result.operator_messages = round.messages;
    result.connections = params.ranks;
    result.operator_bytes = params.report_bytes * params.ranks;
    result.latency = round.end;
    result.operator_cpu = center.cpu();
    return result;
  }
  struct Answer {
    double arrival;
    double bytes;
  };
  std::vector<Answer> answers;
  for (std::uint32_t set = 0; set < params.sets; ++set) {
    const std::uint64_t members = params.ranks / params.sets + (set < params.ranks % params.sets ? 1 : 0);
    if (members == 0) continue;
    GatherNode manager(params);
    const double request = params.request_bytes * static_cast<double>(members);
    const double asked = manager.receive(center.send(0, request) + params.latency_between, request);
    const GatherRound round = ask_ranks(manager, asked, members - 1, params.latency_within, params);
    const double bytes =
        static_cast<double>(members) * (way == Gathering::kCondensed ? params.condensed_bytes : params.report_bytes);
    answers.push_back({manager.send(round.end, bytes) + params.latency_between, bytes});
    result.messages += 2 + round.messages;
  }
  result.operator_messages = 2 * answers.size();
  result.connections = answers.size();
  std::ranges::sort(answers, {}, &Answer::arrival);
  for (const Answer& answer : answers) {
    result.latency = center.receive(answer.arrival, answer.bytes);
    result.operator_bytes += answer.bytes;
  }
  result.operator_cpu = center.cpu();
  return result;
}

}  // namespace bsp::sim::exchange
