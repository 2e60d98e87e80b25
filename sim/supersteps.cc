#include "sim/supersteps.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

namespace bsp::sim {
namespace {

std::size_t hash_of(const Demand& demand, std::span<const ProcessorId> mapping) {
  std::uint64_t h = 0x9e3779b97f4a7c15;
  const auto mix = [&h](std::uint64_t v) { h = std::rotl((h ^ v) * 0xbf58476d1ce4e5b9, 31); };
  for (const double instructions : demand.instructions) mix(std::bit_cast<std::uint64_t>(instructions));
  for (const Message& m : demand.messages)
    mix((std::uint64_t{m.from.value} << 32 | m.to.value) ^ std::bit_cast<std::uint64_t>(m.bytes));
  for (const ProcessorId p : mapping) mix(p.value);
  return h;
}

// The total time covered by at least one span.
double covered(std::vector<SuperstepTimes::Span>& spans) {
  std::ranges::sort(spans, {}, &SuperstepTimes::Span::begin);
  double sum = 0, until = 0;
  for (const SuperstepTimes::Span& span : spans) {
    sum += std::max(0.0, span.end - std::max(span.begin, until));
    until = std::max(until, span.end);
  }
  return sum;
}

SuperstepOrder order_of(const Demand& demand, std::span<const ProcessorId> mapping) {
  SuperstepOrder order;
  for (std::uint32_t i = 0; i < demand.instructions.size(); ++i)
    if (demand.instructions[i] > 0) order.works.push_back({i, mapping[i].value, demand.instructions[i]});
  for (const Message& m : demand.messages) {
    check(m.from.value < mapping.size() && m.to.value < mapping.size() && m.from != m.to && m.bytes > 0,
          "a workload's messages go from one rank to another");
    const ProcessorId from = mapping[m.from.value], to = mapping[m.to.value];
    if (from != to) order.transfers.push_back({m.from.value, from.value, to.value, m.to.value, m.bytes});
  }
  return order;
}

template <class Value>
std::span<const std::byte> bytes_of(const Value& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

Result<Supersteps> Supersteps::start(const Platform& platform, const decide::Platform& nodes, bool memoise) {
  BSP_TRY(Child child, Child::start([&platform](int channel) { serve_supersteps(platform, channel); }));
  return Supersteps(nodes, memoise, std::move(child));
}

Result<const Simulated*> Supersteps::run(const Demand& demand, std::span<const ProcessorId> mapping) {
  check(demand.instructions.size() == mapping.size(), "a workload has a demand for every rank");
  if (!memoise_) {
    BSP_TRY(last_, simulate(demand, mapping));
    return &last_;
  }
  const std::size_t hash = hash_of(demand, mapping);
  for (auto [at, end] = known_.equal_range(hash); at != end; ++at)
    if (at->second.demand == demand && std::ranges::equal(at->second.mapping, mapping)) return &at->second.result;
  BSP_TRY(Simulated result, simulate(demand, mapping));
  if (known_.size() == kMaxKnown) known_.clear();
  const auto added = known_.emplace(hash, Known{demand, {mapping.begin(), mapping.end()}, std::move(result)});
  return &added->second.result;
}

Result<Simulated> Supersteps::simulate(const Demand& demand, std::span<const ProcessorId> mapping) {
  const SuperstepOrder order = order_of(demand, mapping);
  const std::uint64_t sizes[] = {order.works.size(), order.transfers.size()};
  SuperstepTimes times;
  times.works.resize(order.works.size());
  times.transfers.resize(order.transfers.size());
  BSP_CHECK_OK(child_.write(bytes_of(sizes)));
  BSP_CHECK_OK(child_.write(bytes_of(order.works)));
  BSP_CHECK_OK(child_.write(bytes_of(order.transfers)));
  BSP_CHECK_OK(child_.read(std::as_writable_bytes(std::span(times.works))));
  BSP_CHECK_OK(child_.read(std::as_writable_bytes(std::span(times.transfers))));
  ++simulated_;

  const std::size_t ranks = mapping.size(), sets = nodes_->sets.size();
  const auto set_of = [&](ProcessorId p) { return nodes_->processor(p).set.value; };
  Simulated out{.seconds = 0, .compute_seconds = std::vector<double>(ranks, 0)};
  for (std::size_t w = 0; w < order.works.size(); ++w) {
    out.compute_seconds[order.works[w].rank] = times.works[w].end - times.works[w].begin;
    out.seconds = std::max(out.seconds, times.works[w].end);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<SuperstepTimes::Span>>
      in_transit;  // by receiver and Set
  for (std::size_t t = 0; t < order.transfers.size(); ++t) {
    in_transit[{order.transfers[t].to_rank, set_of(ProcessorId{order.transfers[t].from})}].push_back(
        times.transfers[t]);
    out.seconds = std::max(out.seconds, times.transfers[t].end);
  }
  decide::Grid<double> bytes(ranks, sets), seconds(ranks, sets);
  for (auto& [receiver, spans] : in_transit) seconds[receiver.first, receiver.second] = covered(spans);
  for (const Message& m : demand.messages) bytes[m.to.value, set_of(mapping[m.from.value])] += m.bytes;
  out.recv_bytes = bytes;
  out.recv_seconds = seconds;
  return out;
}

}  // namespace bsp::sim
