// The size of the object of a job of 10,000 ranks as an API server stores it. Names, uids and addresses are those of a large
// cloud cluster: long, and with little in common.
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <random>

#include "operator/reconcile/kernel/drain.h"
#include "operator/reconcile/kernel/rescheduling/rescheduling.h"
#include "operator/reconcile/kernel/stored.h"
#include "operator/reconcile/kernel/waves.h"

namespace bsp::reconcile {
namespace {

std::size_t stored_bytes(const crds::BspJob& job) {
  nlohmann::json object;
  to_json(object, job);
  return object.dump().size();
}

class TenThousandRanks : public testing::Test {
 protected:
  static constexpr std::uint32_t kRanks = 10'000, kMoves = 100, kSlots = 32;
  static constexpr std::size_t kMost = 512 * 1024;  // etcd refuses more than 1.5 MiB

  TenThousandRanks() {
    crds::BspJob& job = o.job;
    job.metadata.name = "lattice-boltzmann-d3q19-reynolds-4000-production-7";
    job.metadata.uid = uid();
    job.spec.ranks = kRanks;
    job.spec.rescheduling.alpha = 4;
    job.spec.pod_template = {{"spec", {{"containers", {{{"name", "app"}, {"image", "i"}}}}}}};
    job.status.phase = crds::JobPhase::kRunning;
    job.status.epochs_used = 2;
    // 313 nodes are full, and half as many fast ones are free.
    for (std::uint32_t n = 0; n * kSlots < kRanks * 3 / 2; ++n)
      o.nodes.push_back({.name = std::format("ip-10-{}-{}-{}.eu-central-1.compute.internal", n % 7, n / 256, n % 256),
                         .set = set_of(n),
                         .slots = kSlots});
    job.status.epoch = wire::EpochPlan{
        .epoch = 1, .pmix_namespace = job.metadata.uid + "-e1", .sets = {"slow", "fast"}, .members = {}};
    for (std::uint32_t r = 0; r < kRanks; ++r) {
      const observe::NodeFacts& node = o.nodes[r / kSlots];
      const std::string pod = pod_name(job.metadata.name, r, 0);
      job.status.ranks.push_back({{r}, node.set, node.name, pod, 1, 0, 0, 0, ""});
      job.status.epoch->members.push_back({r, pod, uid(), address(r / kSlots), node.set == "fast"});
      PodFacts& facts = o.pods[pod];
      facts.node = node.name;
      facts.set = node.set;
      facts.apps[0].rank = r;
    }
  }

  static std::string set_of(std::uint32_t node) { return node * kSlots < kRanks / 2 ? "slow" : "fast"; }
  std::uint32_t number(std::uint32_t below) {
    return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(random_);
  }
  std::string uid() {
    return std::format("{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}", random_(), number(1 << 16), number(1 << 12),
                       number(1 << 12), (std::uint64_t{number(1 << 16)} << 32) | random_());
  }
  // The pods of a node are in one subnet, anywhere in it.
  std::string address(std::uint32_t node) {
    return std::format("10.{}.{}.{}:7600", 100 + node % 100, number(256), number(256));
  }

  // Of reports in which no two ranks measure the same, and one in 32 of those in slow has four times the work of the others.
  Decided decide() {
    Rescheduler rescheduler(o.job, 2);
    std::optional<Decided> decided;
    for (std::uint64_t superstep = 1; superstep <= 4; ++superstep) {
      for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
        wire::SuperstepReport s;
        s.superstep = superstep;
        const bool slow = o.job.status.ranks[rank].set == "slow";
        const std::uint64_t part = slow && rank % 32 != 0 ? 4 : 1;
        s.instructions = (1'000'000'000 + number(400'000'000)) / part;
        s.compute_ns = ((slow ? 2'000'000'000 : 1'000'000'000) + number(100'000'000)) / part;
        s.recv_bytes = {number(1 << 20), number(1 << 20)};
        s.recv_ns = {number(1 << 20), number(1 << 20)};
        const std::uint64_t memory = (64 << 20) + number(16 << 20);
        rescheduler.add({.rank = rank, .completed = superstep, .epoch = 1, .memory_bytes = memory, .supersteps = {s}});
        o.job.status.ranks[rank].memory_bytes = memory;
      }
      if (auto d = rescheduler.advance(o)) decided = std::move(d);
    }
    check(decided.has_value(), "a full window leads to a decision");
    rescheduler.store(o.job.status, o);
    o.job.status.last_decision = decided->decision;
    return *decided;
  }

  Observed o;
  std::mt19937 random_{7};
};

TEST_F(TenThousandRanks, StatusStaysBelow512KiBAfterADecisionAndInAWave) {
  const std::size_t placed = stored_bytes(o.job);
  Decided decided = decide();
  ASSERT_GT(decided.moves.size(), kMoves);
  const std::size_t after_decision = stored_bytes(o.job);
  decided.moves.resize(kMoves);
  WaveStart begun = begin_wave(o, decided.moves, o.job.status);
  ASSERT_TRUE(begun.wave);
  for (migrate::Move& move : begun.wave->moves) move.target_uid = uid(), move.target_address = address(move.rank);
  o.job.status.wave_state = migrate::to_json(*begun.wave);
  Rescheduler(o.job, 2).store(o.job.status, o);
  const std::size_t in_wave = stored_bytes(o.job);
  // The wave commits, which breaks up runs of ranks.
  o.job.status.epoch = migrate::next_plan(*begun.wave, *o.job.status.epoch);
  place_ranks(*begun.wave, o, o.job.status);
  const std::size_t committed = stored_bytes(o.job);
  std::printf("KiB: placed %zu, after a decision %zu, in a wave %zu, after its commit %zu\n", placed / 1024,
              after_decision / 1024, in_wave / 1024, committed / 1024);
  EXPECT_LT(placed, kMost);
  EXPECT_LT(after_decision, kMost);
  EXPECT_LT(in_wave, kMost);
  EXPECT_LT(committed, kMost);
}

TEST_F(TenThousandRanks, TheMessageOfADrainOfAllNodesIsShort) {
  for (const observe::NodeFacts& node : o.nodes) o.leaving[node.name] = "is cordoned";
  ASSERT_TRUE(show_drain(o, "", o.job.status));
  const crds::Condition* draining = crds::find_condition(o.job.status.conditions, kDraining);
  ASSERT_TRUE(draining);
  EXPECT_LT(draining->message.size(), 2048u);
  EXPECT_NE(draining->message.find("and ranks 0, 1, 2, "), std::string::npos) << draining->message;
  EXPECT_TRUE(draining->message.contains("; and 305 more; ")) << draining->message;
}

// A start reserves a slot for each rank, in a ConfigMap, which holds a MiB of the starts and waves of all jobs.
TEST_F(TenThousandRanks, ReservationOfAStartLeavesThreeQuartersOfItsObjectToOthers) {
  Reservation start{.uid = uid(), .each = {500, 64 << 20, 1}, .slots = {}, .until = o.now, .start = true};
  for (const crds::RankPlace& place : o.job.status.ranks)
    start.slots.push_back({place.pod, place.rank.value, place.set, place.node});
  const std::string key = "default/" + o.job.metadata.name;
  const nlohmann::json data = reservation_data({.of_job = {{key, start}}, .version = ""});
  std::printf("KiB: reserved %zu\n", data.dump().size() / 1024);
  EXPECT_LT(data.dump().size(), 256u * 1024);
  const Reservations read = reservations_from_json({{"data", data}});
  ASSERT_TRUE(read.of_job.contains(key));
  EXPECT_EQ(read.of_job.at(key), start);
}

}  // namespace
}  // namespace bsp::reconcile
