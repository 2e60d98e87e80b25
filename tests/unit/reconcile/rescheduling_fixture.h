// A job whose reports the test writes itself, for the scheduler's tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "operator/reconcile/kernel/rescheduling/rescheduling.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile {

using ::testing::UnorderedElementsAre;

// Ranks 0 and 1 in slow (half a superstep's speed), rank 2 in fast, two slots free there; the first call follows
// superstep 4. Each rank executes 1e9 instructions a superstep: 2 s in slow, 1 s in fast.
class Rescheduling : public testing::Test {
 protected:
  Rescheduling() {
    sim::World w({.ranks = 3, .slow = 2, .fast = 3});
    w.job.spec.rescheduling.alpha = 4;
    w.job.spec.rescheduling.heuristic = crds::Heuristic::kAutoMig;  // it counts a gain over α supersteps
    w.job.spec.sets.names.clear();
    w.job.spec.initial_mapping = crds::InitialMapping::kAscending;  // the slowest first
    check(w.run_until(crds::JobPhase::kRunning), "the job runs");
    o = w.observe();
  }

  Rescheduler rescheduler() const { return Rescheduler(o.job, o.job.status.epoch->sets.size()); }

  wire::RankReport report(std::uint32_t rank, std::uint64_t superstep) const {
    const bool slow = o.job.status.ranks[rank].set == "slow";
    const bool any_slow = std::ranges::any_of(o.job.status.ranks, [](const auto& p) { return p.set == "slow"; });
    wire::SuperstepReport s;
    s.superstep = superstep;
    s.instructions = rank == 1 ? counted_of_rank_1 : 1'000'000'000;
    s.compute_ns = slow ? 2'000'000'000 : rank < 2 ? moved_ns : 1'000'000'000;
    s.edge_ns = !slow && any_slow ? 1'000'000'000 : 0;  // it waits for the slow ones
    if (waits && rank == 2 && !any_slow) s.edge_ns = moved_ns - s.compute_ns;
    for (std::uint64_t* ns : {&s.compute_ns, &s.edge_ns})
      *ns = static_cast<std::uint64_t>(static_cast<double>(*ns) * (superstep >= loaded_from ? 1.5 : 1));
    if (unpredictable && rank > 0) {
      s.recv_bytes = {0, 1000 * (superstep % 3)};
      s.recv_ns = {0, 10 * (superstep % 3)};
    }
    return {.rank = rank, .completed = superstep, .epoch = 1, .memory_bytes = 1'000'000, .supersteps = {s}};
  }
  std::optional<Decided> feed(Rescheduler& r, std::uint64_t superstep) const {
    for (std::uint32_t rank = 0; rank < 3; ++rank) r.add(report(rank, superstep));
    return r.advance(o);
  }
  std::optional<Decided> feed(Rescheduler& r, std::uint64_t first, std::uint64_t last) const {
    std::optional<Decided> decided;
    for (std::uint64_t t = first; t <= last; ++t)
      if (auto d = feed(r, t)) decided = std::move(d);
    return decided;
  }
  // What a fresh operator reads.
  void store(const Rescheduler& r) {
    r.store(o.job.status, o);
    nlohmann::json j;
    to_json(j, o.job);
    o.job = crds::bsp_job_from_json(nlohmann::json::parse(j.dump())).value();
  }
  // ns of CPU time for each kind of work, as the pod's sidecar reports them.
  void benchmark(const std::string& pod, std::uint64_t ns) {
    o.sidecars.at(Seat{pod}).status->cpu = {.model = "CPU", .integer_ns = ns, .floating_ns = ns, .memory_ns = ns};
  }
  // On machines that don't count instructions; those of fast need half the time for the same.
  void time_and_benchmark() {
    for (const crds::RankPlace& place : o.job.status.ranks) {
      o.sidecars.at(place.seat()).status->instructions_measured = false;
      o.sidecars.at(place.seat()).completed = 1;
      benchmark(place.pod, place.set == "slow" ? 200'000 : 100'000);
    }
  }
  const crds::CalibrationEntry* calibrated(std::string_view name, std::string_view set) const {
    for (const auto& entry : o.job.status.calibration)
      if (entry.name == name && entry.set == set) return &entry;
    return nullptr;
  }
  migrate::Wave begin(const Decided& decided) {
    o.job.status.last_decision = decided.decision;
    WaveStart begun = begin_wave(o, decided.moves, o.job.status);
    check(begun.wave.has_value(), "there is something to move");
    return *begun.wave;
  }
  // The wave of `decided` has ended after superstep `edge`.
  void end(migrate::Wave wave, migrate::Phase phase, std::uint64_t edge) {
    wave.phase = phase;
    wave.times.push_back({phase, o.now});
    wave.pause = {.total_ms = 500.0001, .transfer_ms = 100};
    wave.bytes.assign(wave.moves.size(), 10'000'000);
    wave.gate.superstep = edge;
    if (phase == migrate::Phase::kSucceeded) {
      const std::uint64_t reported = o.job.status.epoch->epoch;
      o.job.status.epoch = migrate::next_plan(wave, *o.job.status.epoch);
      o.job.status.epoch->epoch = reported;
      place_ranks(wave, o, o.job.status);
    }
    for (const auto& move : wave.moves) {
      crds::RankMigration m;
      m.metadata.name = move.migration;
      m.spec.rank = {move.rank};
      m.status.phase = phase;
      m.status.superstep = {edge};
      m.status.source_node = move.source_node;
      if (phase == migrate::Phase::kSucceeded) o.pods.erase(move.source_pod);
      m.status.source_set = "slow";
      m.status.target_set = "fast";
      o.migrations.push_back(m);
    }
    for (auto& [seat, s] : o.sidecars) s.completed = edge;
    o.job.status.wave_state = migrate::to_json(wave);
  }

  // Of the wave that the first call decides, once there are enough supersteps after it.
  std::vector<RealisedGain> gains_of_a_wave(Rescheduler& r) {
    const auto decided = feed(r, 1, 4);
    check(decided.has_value(), "the first call decides");
    const migrate::Wave wave = begin(*decided);
    feed(r, 5, 7);
    end(wave, migrate::Phase::kSucceeded, 7);
    feed(r, 8, 18);
    return r.realised(o.job.status, false);
  }

  Observed o;
  std::uint64_t moved_ns = 1'000'000'000;           // a superstep of ranks 0 and 1 in fast
  std::uint64_t counted_of_rank_1 = 1'000'000'000;  // instructions of a superstep
  std::uint64_t loaded_from = ~0ull;                // superstep from which the machine takes half as long again
  bool waits = false;                               // rank 2 for those that have moved
  bool unpredictable = false;                       // what ranks 1 and 2 receive
};

}  // namespace bsp::reconcile
