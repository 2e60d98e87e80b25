// One step of the migration machine at a time, for tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>
#include <optional>
#include <string>
#include <vector>

#include "operator/migrate/step.h"

namespace bsp::migrate {

using wire::RankPhase;
using wire::TransferPhase;

// An action without the fields of its verb, which follow from it.
struct Asked {
  ActionKind kind;
  std::string pod;
  std::uint64_t number;
  std::optional<std::size_t> move;
  bool operator==(const Asked&) const = default;
};

struct Answer {
  Wave wave;  // as it is after the step
  bool changed = false;
  std::optional<wire::EpochPlan> commit;
  std::vector<Asked> actions;
};

// Rank 0 of two moves from a to b in epoch 4.
class Steps : public testing::Test {
 protected:
  Steps() {
    view.epoch = {.epoch = 3,
                  .pmix_namespace = "uid-e3",
                  .sets = {"slow", "fast"},
                  .members = {{0, "a", "uid-a", "a:1", 0}, {1, "c", "uid-c", "c:1", 0}}};
    for (const char* name : {"a", "b", "c"}) {
      SeatView& pod = view.seats[{name}];
      pod.exists = true;
      pod.uid = std::string("uid-") + name;
      pod.address = std::string(name) + ":1";
      pod.status.emplace();
      pod.status->pod = name;
      pod.status->init_connected = true;
      pod.status->phase = RankPhase::kRunning;
      pod.status->epoch = 3;
      pod.status->prepared_epoch = 4;
    }
    view.seats[{"b"}].status->phase = RankPhase::kWaiting;
    view.seats[{"b"}].status->epoch = 0;
    transfer("b", TransferPhase::kReceiving);
    view.now = SteadyTime{std::chrono::seconds(500)};
    wave.number = 1;
    wave.phase = Phase::kPausing;
    wave.times = {{Phase::kPreparing, now}, {Phase::kPausing, now}};
    wave.base_epoch = 3;
    wave.next_epoch = 4;
    wave.rollback_epoch = 5;
    wave.moves.push_back(move("m", 0, "a", "b"));
  }
  // From a slow node to a fast one.
  static Move move(const std::string& migration, std::uint32_t rank, const std::string& source,
                   const std::string& target) {
    return {.migration = migration,
            .rank = rank,
            .source_pod = source,
            .source_uid = "uid-" + source,
            .source_address = source + ":1",
            .source_set = 0,
            .target_pod = target,
            .target_uid = "uid-" + target,
            .target_address = target + ":1",
            .target_set = 1,
            .target_node = std::format("fast-{}", rank)};
  }
  void transfer(const char* pod, TransferPhase phase) {
    view.seats[{pod}].status->transfer.migration = "m";
    view.seats[{pod}].status->transfer.phase = phase;
  }
  void all_stopped() {
    wave.gate = {GateState::kCommitted, 20, 1};
    for (const char* pod : {"a", "c"}) view.seats[{pod}].status->phase = RankPhase::kStopped;
  }
  Answer step() const {
    const Step step = migrate::step(wave, view, now, {});
    if (const WaveChange* change = step.change()) return {change->wave, true, change->commit, {}};
    Answer answer{.wave = wave, .commit = {}, .actions = {}};
    for (const Action& a : step.work()) answer.actions.push_back({a.kind, a.seat.pod, a.number, a.move});
    return answer;
  }
  std::vector<Phase> entered(const Answer& s) const {
    std::vector<Phase> phases;
    for (std::size_t i = wave.times.size(); i < s.wave.times.size(); ++i) phases.push_back(s.wave.times[i].phase);
    return phases;
  }

  Time now{std::chrono::seconds(1000)};
  Wave wave;
  View view;
};

}  // namespace bsp::migrate
