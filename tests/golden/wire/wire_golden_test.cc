// Every message of crds/wire.h and every object of the API as JSON. Each field has a unique value, so that swapped fields
// are detected; the output must round-trip.
#include <gtest/gtest.h>

#include <concepts>
#include <format>
#include <nlohmann/json.hpp>

#include "base/core/read_file.h"
#include "crds/bspjob.h"
#include "crds/exchange.h"
#include "crds/fields.h"
#include "crds/rankmigration.h"
#include "crds/requests.h"
#include "crds/wire.h"
#include "operator/migrate/wave.h"
#include "tests/golden/golden.h"

namespace bsp {
namespace {

using nlohmann::json;

wire::EpochPlan plan() {
  return {.epoch = 3,
          .pmix_namespace = "uid-e3",
          .sets = {"slow", "fast"},
          .members = {{0, "job-r0-g1", "u0", "10.0.0.1:7600", 0}, {1, "job-r1-g2", "u1", "10.0.0.2:7600", 1}},
          .cpu_level = 5};
}

wire::RankStatus status() {
  wire::RankStatus s;
  std::uint64_t n = 1ull << 40;
  for (std::uint64_t* field :
       {&s.version, &s.epoch, &s.prepared_epoch, &s.admitted_epoch, &s.completed, &s.gate_superstep, &s.memory_bytes,
        &s.gate_reached_ns, &s.close_ns, &s.stopped_ns, &s.opened_ns, &s.open_ns, &s.open_cpu_ns, &s.first_compute_ns,
        &s.transfer.bytes, &s.transfer.files, &s.transfer.dump_ns, &s.transfer.transfer_ns, &s.transfer.restore_ns})
    *field = n++;
  s.rank = 5;
  s.pod = "job-r5-g1";
  s.phase = wire::RankPhase::kStopped;
  s.init_connected = s.gate_committed = s.mpi_initialized = s.mpi_finalized = s.instructions_measured = true;
  s.blocked_reason = "an open window";
  s.blocked_for_good = true;
  s.postponed = 2;
  s.collective = "MPI_Allreduce";
  s.exit_code = 139;
  s.exit_signal = 11;
  s.exit_message = "segmentation \"fault\"\n";
  s.cpu = {.model = "a CPU", .integer_ns = 150'000, .floating_ns = 150'001, .memory_ns = 150'002};
  s.cpu_features = n++;
  s.program_features = n++;
  s.runtime = "aabb";
  s.transfer.migration = "job-m1";
  s.transfer.phase = wire::TransferPhase::kFailed;
  s.transfer.error = "no space";
  return s;
}

wire::RankReport report() {
  wire::RankReport r{.rank = 1, .completed = 9, .epoch = 2, .memory_bytes = 1 << 30, .supersteps = {}};
  r.partners = {0, 3};
  r.partner_bytes = {2048, 12};
  r.supersteps.push_back({.superstep = 7, .recv_bytes = {}, .recv_ns = {}});
  r.supersteps.push_back({.superstep = 8,
                          .end_ns = 1,
                          .instructions = 2,
                          .compute_ns = 3,
                          .comm_ns = 4,
                          .edge_ns = 5,
                          .sent_bytes = 6,
                          .recv_bytes = {7, 0, 8},
                          .recv_ns = {9}});
  return r;
}

wire::ExchangeBatch batch() {
  using enum wire::ExchangeKind;
  wire::ExchangeBatch b{
      .group = "g", .generation = 2, .from = 1, .instance = 3, .resources = {"a", "b"}, .number = 4, .messages = {}};
  b.messages.push_back({.kind = kHello, .loads = {0.5, 2}});
  b.messages.push_back({.kind = kAnswer, .id = 7, .loads = {1}});
  b.messages.push_back({.kind = kEnd, .decided = 8, .assignments = {{.to = 0, .resource = 1, .amount = 0.25}}});
  return b;
}

migrate::Wave wave() {
  using migrate::Phase;
  migrate::Wave w;
  w.number = 1;
  w.phase = Phase::kRollingBack;
  w.times = {{Phase::kPending, from_rfc3339("2026-11-21T04:05:06.000001Z")},
             {Phase::kRollingBack, from_rfc3339("2026-11-21T04:05:06.000002Z")}};
  w.base_epoch = 2, w.next_epoch = 3, w.rollback_epoch = 4;
  w.rollback_committed = true;
  w.moves = {{"job-w1-r2", 2, "job-r2-g0", "u0", "10.0.0.1:7600", 1, "job-r2-g1", "u1", "10.0.0.2:7600", 11, "fast-1"}};
  w.gate = {migrate::GateState::kCancelling, 5, 6};
  w.reason = "r", w.message = "m", w.delay = "d";
  w.late_seconds = 7.5;
  w.lost_rank = 8;
  w.pause = {1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5};
  w.bytes = {9, 10};
  w.transfer_ms = {11.5, 12.5};
  return w;
}

migrate::Wave set_wave() {
  migrate::Wave w = wave();
  w.moves.clear(), w.bytes.clear(), w.transfer_ms.clear();
  w.checkpoint = migrate::Checkpoint{.set = 13, .attempt = 14, .base = 9};
  return w;
}

wire::RankStatus saved_and_loaded() {
  wire::RankStatus s = status();
  s.save = wire::SaveStatus{.set = 1,
                            .phase = wire::SavePhase::kStored,
                            .bytes = 2,
                            .dump_ns = 3,
                            .store_ns = 4,
                            .digest = "d",
                            .stored = 5,
                            .base = 6,
                            .error = "e"};
  s.transfer.unusable = true;
  return s;
}

// Gives every member of an API object a unique value.
struct Filler {
  int& next;

  template <class T>
  void operator()(const char* name, T& member) {
    const int n = ++next;
    if constexpr (std::same_as<T, bool>)
      member = !member;
    else if constexpr (std::same_as<T, std::string>)
      member = std::format("{}-{}", name, n);
    else if constexpr (std::same_as<T, double>)
      member = n + 0.5;
    else if constexpr (std::integral<T>)
      member = static_cast<T>(n);
    else if constexpr (requires { member.value = n; })
      member.value = n;
    else if constexpr (NamedEnum<T>)
      member = static_cast<T>(1);
    else if constexpr (std::same_as<T, Time>)
      member = from_rfc3339(std::format("2026-11-21T04:05:06.{:06}Z", n));
    else if constexpr (std::same_as<T, crds::RanksPerPod>)
      member.most = static_cast<std::uint32_t>(n);
    else if constexpr (std::same_as<T, crds::Quantity>)
      member.text = std::format("{}Mi", n);
    else if constexpr (std::same_as<T, crds::CommittedEpoch>)
      member = plan();
    else if constexpr (std::same_as<T, json>)
      member = {{"n", n}};
    else if constexpr (requires { member.emplace("", ""); })
      member.emplace(name, std::to_string(n));
    else if constexpr (requires { member.emplace_back(); })
      (*this)(name, member.emplace_back());
    else if constexpr (requires { member.emplace(); })
      (*this)(name, member.emplace());
    else
      crds::visit_fields(member, *this);
  }
};

template <class T>
T filled() {
  T object;
  int n = 0;
  crds::visit_fields(object, Filler{n});
  return object;
}

crds::BspJob job(bool whole) {
  crds::BspJob j;
  j.metadata.name = "job";
  if (!whole) return j;
  j.metadata = filled<crds::ObjectMeta>();
  j.metadata.name = "job";
  j.metadata.name_space = "ns";
  j.metadata.owner_references = json::array({{{"n", 1}}});
  j.spec = filled<crds::BspJobSpec>();
  j.status = filled<crds::BspJobStatus>();
  return j;
}

crds::RankMigration migration(bool whole) {
  crds::RankMigration m;
  m.metadata.name = "job-w1-r2";
  if (!whole) return m;
  m.spec = filled<crds::RankMigrationSpec>();
  m.status = filled<crds::RankMigrationStatus>();
  return m;
}

TEST(Messages, AreByteForByteWhatTheyWere) {
  wire::RankReport partial = report();
  partial.left_out = 12;
  std::string text;
  for (const auto& [name, message] :
       {std::pair<const char*, json>{"EpochPlan", plan()},
        {"EpochPlan, empty", wire::EpochPlan{}},
        {"RankStatus", status()},
        {"RankStatus, empty", wire::RankStatus{}},
        {"RankStatus, saved and loaded", saved_and_loaded()},
        {"RankReport", report()},
        {"RankReport, a page", partial},
        {"RankReport, empty", wire::RankReport{}},
        {"ExchangeBatch", batch()},
        {"WatchRequest", reflect::write(wire::WatchRequest{1, 2})},
        {"EpochRequest", reflect::write(wire::EpochRequest{3})},
        {"GateRequest", reflect::write(wire::GateRequest{4})},
        {"ArmAnswer", reflect::write(wire::ArmAnswer{5, true})},
        {"CommitRequest", reflect::write(wire::CommitRequest{6, {}})},
        {"CommitRequest, sends", reflect::write(wire::CommitRequest{6, {{"m", "p", "a"}}})},
        {"CommitRequest, saves", reflect::write(wire::CommitRequest{6, {}, wire::SaveRequest{1, 2, 3, "key"}})},
        {"SaveRequest", reflect::write(wire::SaveRequest{1, 2, 3, "key"})},
        {"LoadRequest", reflect::write(wire::LoadRequest{{1, 2, 3, "key"}, "digest"})},
        {"KeepSetsRequest", reflect::write(wire::KeepSetsRequest{7, {5, 6}})},
        {"ReceiveRequest", reflect::write(wire::ReceiveRequest{"m", "p", true})},
        {"MigrationRequest", reflect::write(wire::MigrationRequest{"m"})},
        {"ReportRequest", reflect::write(wire::ReportRequest{7, 8, 2})},
        {"ReportRequest, all", reflect::write(wire::ReportRequest{7, 8})},
        {"Wave", to_json(wave())},
        {"Wave of a checkpoint set", to_json(set_wave())},
        {"Wave, empty", to_json(migrate::Wave{})},
        {"BSPJob", job(true)},
        {"BSPJob, empty", job(false)},
        {"RankMigration", migration(true)},
        {"RankMigration, empty", migration(false)}})
    text += std::format("{}\n{}\n", name, message.dump());
  golden::expect_same("wire/messages.txt", text);
}

TEST(Messages, AreReadBackWhole) {
  const json plan_json = plan(), status_json = status(), report_json = report(), batch_json = batch();
  EXPECT_EQ(json(wire::epoch_plan_from_json(plan_json).value()), plan_json);
  EXPECT_EQ(json(wire::rank_status_from_json(status_json).value()), status_json);
  EXPECT_EQ(json(wire::rank_report_from_json(report_json).value()), report_json);
  EXPECT_EQ(json(wire::exchange_batch_from_json(batch_json, 2).value()), batch_json);
  const json job_json = job(true), migration_json = migration(true);
  const auto read = crds::bsp_job_from_json(job_json);
  ASSERT_TRUE(read) << read.error().message;
  json again = *read, wanted = job_json;
  again["spec"].erase("template"), wanted["spec"].erase("template");  // normalised when read
  EXPECT_EQ(again, wanted);
  const auto moved = crds::rank_migration_from_json(migration_json);
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(json(*moved), migration_json);
  EXPECT_EQ(to_json(migrate::wave_from_json(to_json(wave())).value()), to_json(wave()));
}

// A job that runs while its operator is upgraded has the status of the older one: a list of ranks, each with its pod.
TEST(Messages, OfAnOlderOperatorAreRead) {
  const auto text = read_file(BSP_SOURCE_DIR "/tests/golden/wire/older_job.json");
  ASSERT_TRUE(text);
  const auto read = crds::bsp_job_from_json(json::parse(*text));
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->status.ranks.size(), 1u);
  const auto& [rank, set, node, pod, generation, seconds, compute, memory, blocked, local] = read->status.ranks[0];
  EXPECT_EQ(rank.value, 39u);
  EXPECT_EQ(set, "set-40");
  EXPECT_EQ(node, "node-41");
  EXPECT_EQ(seconds, 44.5);
  EXPECT_EQ(pod, "pod-42");
  EXPECT_EQ(generation, 43u);
  EXPECT_EQ(compute, 45.5);
  EXPECT_EQ(memory, 46u);
  EXPECT_EQ(blocked, "blockedReason-47");
  EXPECT_EQ(local, 0u);
  ASSERT_TRUE(read->status.epoch);
  wire::EpochPlan older = plan();
  older.cpu_level = 0;
  EXPECT_EQ(json(static_cast<const wire::EpochPlan&>(*read->status.epoch)), json(older));
}

}  // namespace
}  // namespace bsp
