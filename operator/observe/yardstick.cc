#include "operator/observe/yardstick.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace bsp::observe {

Yardstick::Yardstick(const std::vector<crds::CalibrationEntry>& values, const nlohmann::json& work,
                     const nlohmann::json& ranks, std::size_t number_of_ranks)
    : calibration_(Calibration::from_status(values)),
      benchmarks_(Benchmarks::from_status(values)),
      work_(Work::from_json(work)),
      factors_(RankFactors::from_json(ranks, number_of_ranks)) {
  for (const crds::CalibrationEntry& entry : values)
    if (entry.name == "messagePrice") prices_.restore(entry.set, entry.value);
}

std::vector<double> Yardstick::work_of(SuperstepTimes reported, const Places& places) {
  std::vector<double> work = in_one_unit(reported.instructions, places);
  leave_out_limits(reported, places.held_back, unit());
  reported.instructions = work;
  for (std::size_t i = 0; i < places.alone.size(); ++i)
    if (places.held_back[i] == 0) reported.instructions[i] *= places.alone[i];
  if (unit() == WorkUnit::kMixed) return work;  // no speed follows from it, and nothing is decided on it
  for (std::size_t i = 0; i < places.sets.size(); ++i) {
    reported.instructions[i] *= factors_.factor(i);
    work[i] *= factors_.factor(i);
  }
  calibration_.add_superstep(reported, places.sets, places.nodes);
  factors_.add(reported, places.sets, places.nodes, calibration_);
  return work;
}

std::vector<double> Yardstick::in_one_unit(std::vector<double> instructions, const Places& places) {
  std::vector<std::uint8_t> suspects(instructions.size());
  for (std::size_t i = 0; i < suspects.size(); ++i) suspects[i] = slowdowns_.suspects(i);
  work_.add(instructions, places.sets, suspects);
  for (std::size_t i = 0; i < places.sets.size(); ++i) instructions[i] *= work_.factor(places.sets[i]);
  if (unit() != WorkUnit::kCpuTime) return instructions;
  slowdowns_.add(instructions, places.nodes, calibration_);
  for (std::size_t i = 0; i < instructions.size(); ++i) instructions[i] *= slowdowns_.factor(i);
  return instructions;
}

void Yardstick::add_traffic(const decide::MeasuredSuperstep& superstep, const std::vector<std::string>& sets,
                            const Places& places, const Collector& collector) {
  if (places.pods.empty()) return calibration_.add_traffic(superstep, sets, places.sets);
  std::vector<std::span<const decide::Partner>> partners;
  for (std::size_t i = 0; i < places.sets.size(); ++i) partners.push_back(collector.partners(i));
  prices_.add(superstep, sets, places.sets, places.pods, partners);
  // By rank and Set, what its messages from there take besides their bytes.
  decide::Grid<double> besides(places.sets.size(), sets.size());
  for (std::size_t i = 0; i < partners.size(); ++i)
    for (const decide::Partner& k : partners[i])
      if (const auto from = std::ranges::find(sets, places.sets[k.rank.value]); from != sets.end())
        besides[i, static_cast<std::size_t>(from - sets.begin())] +=
            k.bytes * prices_.at_most_per_byte(i) * prices_.apart(places.sets[i]).message;
  calibration_.add_traffic(superstep, sets, places.sets, besides);
}

// Of all moves from one Set to another, the one with the most bytes: the time of others is mostly not that of their bytes. The pause
// waits for the longest transfer of the wave; what that one takes longer than this one is no fixed part of this one.
void Yardstick::add_moves(std::span<const Moved> moves, const std::vector<std::string>& sets,
                          const crds::PauseParts& pause) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, const Moved*> largest;  // by source and target Set
  for (const Moved& move : moves) {
    const auto [at, first] = largest.try_emplace({move.from, move.to}, &move);
    if (!first && move.bytes > at->second->bytes) at->second = &move;
  }
  const auto of_all = std::ranges::max_element(moves, {}, &Moved::bytes);
  for (const auto& [pair, move] : largest) {
    crds::PauseParts own = pause;
    if (move->transfer_ms)
      own.transfer_ms = *move->transfer_ms;
    else if (move != &*of_all)
      continue;  // which of the times is the longest one's is all that such a wave says
    own.total_ms = std::max(0.0, pause.total_ms - (pause.transfer_ms - own.transfer_ms));
    calibration_.add_move(sets[pair.first], sets[pair.second], move->bytes, own);
  }
}

void Yardstick::settle(const std::vector<std::string>& set_of_rank, const std::vector<PodBenchmark>& pods,
                       const std::vector<NodeFacts>& nodes) {
  benchmarks_.update(pods, nodes);
  for (const auto& [set, ratio] : work_.settle(set_of_rank, benchmarks_)) {
    calibration_.rescale(set, ratio);
    for (std::size_t i = 0; i < set_of_rank.size(); ++i)
      if (set_of_rank[i] == set) slowdowns_.rescale(i, ratio);
  }
}

void Yardstick::limit(decide::Params& params) const {
  params.timed_work = unit() == WorkUnit::kCpuTime && benchmarks_.speeds().empty();
  if (work_.guesses()) params.max_moves = 1;  // one rank shows whether the guess was right
}

decide::Platform Yardstick::platform(const std::vector<std::string>& sets, const std::vector<NodeFacts>& nodes,
                                     const std::vector<std::string>& set_of_rank, bool pods) const {
  decide::Platform platform = make_platform(sets, nodes, calibration_, speeds_of_cores(set_of_rank));
  for (std::size_t j = 0; pods && j < sets.size(); ++j) {
    const bool measured = platform.T_origin[j, j] == decide::Origin::kMeasured;
    const double byte = measured ? platform.T[j, j] : std::min(platform.T[j, j], MessagePrices::kApart.byte);
    platform.apart.push_back({.byte = byte, .message = prices_.apart(sets[j]).message});
    platform.shared.push_back(
        {.byte = std::min(byte, MessagePrices::kShared.byte), .message = MessagePrices::kShared.message});
  }
  return platform;
}

std::vector<crds::CalibrationEntry> Yardstick::to_status(const std::vector<NodeFacts>& nodes,
                                                         const std::vector<std::string>& set_of_rank) const {
  const std::map<std::string, double> of_core = speeds_of_cores(set_of_rank), nominal = nominal_speeds(nodes, of_core);
  std::map<std::string, crds::CalibrationSource> rests_on;
  for (const auto& [set, speed] : nominal) {
    using enum crds::CalibrationSource;
    const bool measured = calibration_.cpu(set, nominal).measured;
    if (unit() == WorkUnit::kInstructions)
      rests_on[set] = measured ? kCounted : of_core.contains(set) ? kCalibrated : kAssumed;
    if (unit() == WorkUnit::kCpuTime)
      rests_on[set] = work_.confirmed(set) ? kInferred : work_.calibrated(set) ? kCalibrated : kAssumed;
  }
  std::vector<crds::CalibrationEntry> values = calibration_.to_status(nominal, rests_on);
  std::ranges::move(benchmarks_.to_status(), std::back_inserter(values));
  for (const auto& [set, message] : prices_.learned())
    values.push_back({"messagePrice", set, "", message, "s", crds::CalibrationSource::kMeasured, 1});
  return values;
}

std::map<std::string, double> Yardstick::speeds_of_cores(const std::vector<std::string>& set_of_rank) const {
  std::map<std::string, std::size_t> ranks;
  for (const std::string& set : set_of_rank) ++ranks[set];
  const auto most = std::ranges::max_element(ranks, {}, [](const auto& set) { return set.second; });
  return most == ranks.end() ? std::map<std::string, double>{} : benchmarks_.relative_to(most->first);
}

}  // namespace bsp::observe
