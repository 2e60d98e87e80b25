// The JSON of crds/wire.h: it round-trips, and errors name missing or mistyped fields.
#include "crds/wire.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bsp::wire {
namespace {

using nlohmann::json;

EpochPlan a_plan() {
  return {.epoch = 3,
          .pmix_namespace = "uid-e3",
          .sets = {"slow", "fast"},
          .members = {{0, "job-r0-g1", "u0", "10.0.0.1:7600", 0}, {1, "job-r1-g2", "u1", "10.0.0.2:7600", 1}}};
}

TEST(Wire, EpochPlanRoundTrips) {
  json j = a_plan();
  auto read = epoch_plan_from_json(json::parse(j.dump()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(json(*read), j);
  EXPECT_EQ(read->members[1].pod, "job-r1-g2");
  EXPECT_EQ(read->members[1].set, 1u);
}

TEST(Wire, StatusRoundTrips) {
  RankStatus status;
  std::uint64_t n = 1ull << 40;
  // A different value in every field, to detect swapped fields.
  for (std::uint64_t* field :
       {&status.version, &status.epoch, &status.prepared_epoch, &status.admitted_epoch, &status.completed,
        &status.gate_superstep, &status.memory_bytes, &status.gate_reached_ns, &status.close_ns, &status.stopped_ns,
        &status.opened_ns, &status.open_ns, &status.open_cpu_ns, &status.first_compute_ns, &status.transfer.bytes,
        &status.transfer.files, &status.transfer.dump_ns, &status.transfer.transfer_ns, &status.transfer.restore_ns})
    *field = n++;
  status.rank = 5;
  status.pod = "job-r5-g1";
  status.phase = RankPhase::kStopped;
  status.init_connected = status.gate_committed = status.mpi_initialized = status.mpi_finalized =
      status.instructions_measured = true;
  status.blocked_reason = "an open window";
  status.blocked_for_good = true;
  status.postponed = 2;
  status.collective = "MPI_Allreduce";
  status.exit_code = 139;
  status.exit_signal = 11;
  status.exit_message = "segmentation \"fault\"\n";
  status.transfer.migration = "job-m1";
  status.transfer.phase = TransferPhase::kFailed;
  status.transfer.error = "no space";
  status.cpu = {.model = "a CPU", .integer_ns = 100'000, .floating_ns = 100'001, .memory_ns = 100'002};
  auto read = rank_status_from_json(json::parse(json(status).dump()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_TRUE(*read == status);
}

TEST(Wire, ABenchmarkThatIsNoneIsDroppedOrRefused) {
  RankStatus status;
  status.cpu = {.model = "m", .integer_ns = 100'000, .floating_ns = 100'000, .memory_ns = 100'000};
  const json good = status;
  const auto read = [&](const char* field, const json& value) {
    json j = good;
    j["cpu"][field] = value;
    return rank_status_from_json(j);
  };
  for (const char* figure : {"integer_ns", "floating_ns", "memory_ns"}) {
    for (const json& dropped : {json(0), json(1), json(kMostUnitNs + 1), json(~0ull), json(1e18)}) {
      const auto status_read = read(figure, dropped);
      ASSERT_TRUE(status_read) << figure << ' ' << dropped << ": " << status_read.error().message;
      EXPECT_FALSE(status_read->cpu) << figure << ' ' << dropped;
    }
    for (const json& refused :
         {json(-1), json(1e308), json(0.5), json("100000"), json(nullptr), json(json::array()), json(true)})
      EXPECT_FALSE(read(figure, refused)) << figure << ' ' << refused;
  }
  EXPECT_FALSE(read("model", 7));
  EXPECT_FALSE(rank_status_from_json([&] {
    json j = good;
    j["cpu"] = "fast";
    return j;
  }()));
  const auto named = read("model", std::string(100'000, 'm'));
  ASSERT_TRUE(named);
  EXPECT_EQ(named->cpu->model, std::string(kMostCpuModel, 'm'));
  json older = good;
  older.erase("cpu");
  EXPECT_FALSE(rank_status_from_json(older).value().cpu) << "of a sidecar that measures none";
}

TEST(Wire, EveryPhaseHasAName) {
  for (int i = 0; i <= static_cast<int>(RankPhase::kExited); ++i)
    for (int k = 0; k <= static_cast<int>(TransferPhase::kFailed); ++k) {
      RankStatus status;
      status.phase = static_cast<RankPhase>(i);
      status.transfer.phase = static_cast<TransferPhase>(k);
      auto read = rank_status_from_json(json(status));
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_TRUE(*read == status);
    }
}

TEST(Wire, SuperstepSizeMatchesItsJson) {
  RankReport report{.rank = 1, .completed = 100, .epoch = 0, .memory_bytes = 0, .supersteps = {}};
  std::uint64_t n = 7;
  for (std::uint64_t s = 1; s <= 60; ++s) {
    const auto next = [&] {
      n = n * 6364136223846793005u + 1442695040888963407u;
      return n >> (n % 60 + 3);
    };
    SuperstepReport one{s, next(), next(), next(), next(), next(), next(), {}, {}};
    for (std::uint64_t i = 0; i < s; ++i) one.recv_bytes.push_back(next());
    for (std::uint64_t i = 0; i < s / 2; ++i) one.recv_ns.push_back(next());
    report.supersteps = {one};
    EXPECT_EQ(bytes_of(one), json(report).at("supersteps").at(0).dump().size());
    auto read = rank_report_from_json(json(report));
    ASSERT_TRUE(read) << read.error().message;
  }
}

// Reports with implausible values that would otherwise pass as measurements.
struct BadReport {
  const char* name;
  void (*spoil)(json&);
  const char* message;
};
void PrintTo(const BadReport& bad, std::ostream* os) { *os << bad.name; }
class Unbelievable : public testing::TestWithParam<BadReport> {};

TEST_P(Unbelievable, IsRejected) {
  RankReport report{.rank = 2, .completed = 9, .epoch = 1, .memory_bytes = 1, .supersteps = {}};
  for (std::uint64_t s = 7; s <= 9; ++s)
    report.supersteps.push_back({.superstep = s, .recv_bytes = {1, 2}, .recv_ns = {3}});
  report.partners = {0, 1};
  report.partner_bytes = {20, 10};
  json j = report;
  ASSERT_TRUE(rank_report_from_json(j));
  GetParam().spoil(j);
  const auto read = rank_report_from_json(j);
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find(GetParam().message), std::string::npos) << read.error().message;
}

INSTANTIATE_TEST_SUITE_P(
    Reports, Unbelievable,
    testing::Values(
        BadReport{"FarAhead", [](json& j) { j["completed"] = 1ull << 63; },
                  "report.completed: 9223372036854775808 is too large"},
        BadReport{"BeyondCompleted", [](json& j) { j["supersteps"][2]["superstep"] = 10; }, "superstep 10 after 8"},
        BadReport{"Twice", [](json& j) { j["supersteps"][1]["superstep"] = 7; }, "superstep 7 after 7"},
        BadReport{"Backwards", [](json& j) { j["supersteps"][1]["superstep"] = 3; }, "superstep 3 after 7"},
        BadReport{"Zero", [](json& j) { j["supersteps"][0]["superstep"] = 0; }, "superstep 0 after 0"},
        BadReport{"NegativeTime", [](json& j) { j["supersteps"][0]["compute_ns"] = -5; },
                  "report.supersteps[0].compute_ns: must not be negative, but is -5"},
        BadReport{"EndlessTime", [](json& j) { j["supersteps"][0]["edge_ns"] = ~0ull; },
                  "report.supersteps[0].edge_ns: 18446744073709551615 is too large"},
        BadReport{"EndlessWork", [](json& j) { j["supersteps"][0]["instructions"] = 1e19; },
                  "report.supersteps[0].instructions: 1e+19 is too large"},
        BadReport{"NotANumber", [](json& j) { j["supersteps"][0]["comm_ns"] = "NaN"; },
                  "report.supersteps[0].comm_ns: must be a whole number, not a string"},
        BadReport{"TooManySets", [](json& j) { j["supersteps"][0]["recv_ns"] = std::vector<int>(65, 1); },
                  "more than 64 entries"},
        BadReport{"TooManySupersteps", [](json& j) { j["supersteps"] = std::vector<json>(257, j["supersteps"][0]); },
                  "more than 256 entries"},
        BadReport{"PartnerWithoutBytes", [](json& j) { j["partner_bytes"] = {20}; }, "2 partners and bytes of 1"},
        BadReport{"BytesOfNoPartner", [](json& j) { j.erase("partners"); }, "0 partners and bytes of 2"},
        BadReport{"TooManyPartners", [](json& j) { j["partners"] = j["partner_bytes"] = std::vector<int>(17, 1); },
                  "report.partners: has more than 16 entries"},
        BadReport{"NegativePartner", [](json& j) { j["partners"][0] = -1; },
                  "report.partners[0]: must not be negative, but is -1"},
        BadReport{"HugePartner", [](json& j) { j["partners"][0] = 1ull << 40; },
                  "report.partners[0]: 1099511627776 is too large"},
        BadReport{"EndlessPartner", [](json& j) { j["partner_bytes"][1] = ~0ull; },
                  "report.partner_bytes[1]: 18446744073709551615 is too large"},
        BadReport{"PartnersAreText", [](json& j) { j["partners"] = "all"; },
                  "report.partners: must be a list, not a string"},
        BadReport{"NoRank", [](json& j) { j["rank"] = -1; }, "report.rank: must not be negative, but is -1"}),
    [](const auto& tested) { return tested.param.name; });

struct BadPlan {
  const char* name;
  void (*spoil)(json&);
  const char* message;
};
void PrintTo(const BadPlan& bad, std::ostream* os) { *os << bad.name; }

class Bad : public testing::TestWithParam<BadPlan> {};

TEST_P(Bad, NamesTheField) {
  json j = a_plan();
  GetParam().spoil(j);
  auto read = epoch_plan_from_json(j);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(read.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, Bad,
    testing::Values(
        BadPlan{"NoEpoch", [](json& j) { j.erase("epoch"); }, "epoch plan.epoch: is required"},
        BadPlan{"NegativeEpoch", [](json& j) { j["epoch"] = -1; }, "epoch plan.epoch: must not be negative, but is -1"},
        BadPlan{"TextEpoch", [](json& j) { j["epoch"] = "3"; },
                "epoch plan.epoch: must be a whole number, not a string"},
        BadPlan{"HugeRank", [](json& j) { j["members"][1]["rank"] = 1ull << 40; },
                "epoch plan.members[1].rank: 1099511627776 is too large; the most is 4294967295"},
        BadPlan{"NoPod", [](json& j) { j["members"][0].erase("pod"); }, "epoch plan.members[0].pod: is required"},
        BadPlan{"MemberIsText", [](json& j) { j["members"][0] = "x"; },
                "epoch plan.members[0]: must be an object, not a string"},
        BadPlan{"MembersMissing", [](json& j) { j.erase("members"); }, "epoch plan.members: is required"},
        BadPlan{"Exchanged", [](json& j) { std::swap(j["members"][0], j["members"][1]); },
                "epoch plan: has rank 1 at place 0"},
        BadPlan{"NoObject", [](json& j) { j = json::array(); }, "epoch plan: must be an object, not a list"}),
    [](const auto& tested) { return tested.param.name; });

TEST(Wire, UnknownFieldsAreIgnored) {
  json j = a_plan();
  j["later"] = {{"than", "us"}};
  j["members"][0]["more"] = 1;
  EXPECT_TRUE(epoch_plan_from_json(j));
}

TEST(Wire, UnknownPhaseIsAnError) {
  json j = RankStatus{};
  j["phase"] = "Flying";
  EXPECT_FALSE(rank_status_from_json(j));
}

}  // namespace
}  // namespace bsp::wire
