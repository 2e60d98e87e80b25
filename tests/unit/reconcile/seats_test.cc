// Pods with several seats (spec.ranksPerPod): where ranks start, how they move, and what ends with what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <format>

#include "base/json/fields.h"
#include "crds/names.h"
#include "operator/reconcile/kernel/rescheduling/rescheduling.h"
#include "operator/record/line.h"
#include "tests/unit/reconcile/expectations.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> seats_of(const World& w) {
  std::vector<std::string> seats;
  for (const crds::RankPlace& place : w.job.status.ranks) seats.push_back(name_of(place.seat()));
  return seats;
}

// Two nodes of a Set with three slots each, and five ranks in the slow one.
Options three_slots(std::uint32_t ranks_per_pod = crds::RanksPerPod::kAuto) {
  return {.ranks = 5, .slow = 2, .fast = 2, .slots = 3, .ranks_per_pod = ranks_per_pod};
}

TEST(Seats, RanksOnOneNodeShareItsPods) {
  World all(three_slots());
  ASSERT_TRUE(all.run_until(JobPhase::kRunning)) << all.trace;
  EXPECT_THAT(seats_of(all),
              ElementsAre("job-r0-g0", "job-r0-g0/app-1", "job-r0-g0/app-2", "job-r3-g0", "job-r3-g0/app-1"));
  EXPECT_THAT(all.pods, SizeIs(2));
  World two(three_slots(2));
  ASSERT_TRUE(two.run_until(JobPhase::kRunning)) << two.trace;
  EXPECT_THAT(seats_of(two), ElementsAre("job-r0-g0", "job-r0-g0/app-1", "job-r2-g0", "job-r3-g0", "job-r3-g0/app-1"));
  World one(three_slots(1));
  ASSERT_TRUE(one.run_until(JobPhase::kRunning)) << one.trace;
  EXPECT_THAT(one.pods, SizeIs(5));
}

// Each rank hears from one in its pod, in 10,000 messages that take 0.4 us besides their bytes.
TEST(Seats, ADecisionKnowsWhoSharesMemory) {
  for (const std::uint32_t ranks_per_pod : {3u, 1u}) {
    World w(three_slots(ranks_per_pod));
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    const Observed o = w.observe();
    const auto& sets = o.job.status.epoch->sets;
    Rescheduler rescheduler(o.job, sets.size(), true);
    std::optional<Decided> decided;
    for (std::uint64_t t = 1; t <= 12 && !decided; ++t) {
      for (std::uint32_t rank = 0; rank < 5; ++rank) {
        wire::SuperstepReport s;
        s.superstep = t, s.instructions = s.compute_ns = 1'000'000'000, s.comm_ns = 5'000'000;
        s.recv_bytes.resize(sets.size()), s.recv_ns.resize(sets.size());
        const auto j = std::ranges::find(sets, o.job.status.ranks[rank].set) - sets.begin();
        s.recv_bytes[static_cast<std::size_t>(j)] = 80'000;
        s.recv_ns[static_cast<std::size_t>(j)] = 4'040'000;
        constexpr std::uint32_t kPartner[] = {1, 0, 0, 4, 3};
        rescheduler.add({.rank = rank,
                         .completed = t,
                         .epoch = 1,
                         .partners = {kPartner[rank]},
                         .partner_bytes = {80'000},
                         .supersteps = {s}});
      }
      decided = rescheduler.advance(o);
    }
    ASSERT_TRUE(decided && decided->record);
    const auto call = record::from_line(*decided->record);
    ASSERT_TRUE(call) << call.error().message;
    const decide::Snapshot& told = call->snapshot;
    const bool pods = ranks_per_pod > 1;
    EXPECT_EQ(told.platform.shared.size(), pods ? sets.size() : 0);
    EXPECT_EQ(told.ranks[0].pod != 0, pods);
    EXPECT_EQ(told.ranks[0].pod, told.ranks[2].pod);
    EXPECT_EQ(told.ranks[2].pod == told.ranks[3].pod, !pods);
    ASSERT_EQ(told.ranks[3].partners.size(), 1u);
    EXPECT_NEAR(told.ranks[3].partners[0].messages, pods ? 10'000 : 0, 1);
  }
}

TEST(Seats, AnotherAttemptHasOtherPods) {
  World w(three_slots());
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.end_program(4, 3, 0);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }))
      << w.trace;
  EXPECT_THAT(seats_of(w),
              ElementsAre("job-r0-g1", "job-r0-g1/app-1", "job-r0-g1/app-2", "job-r3-g1", "job-r3-g1/app-1"));
}

TEST(Seats, OneRankLeavesAndTheOthersStay) {
  World w(three_slots());
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.migrate_by_hand("m", 1, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 1; })) << w.trace;
  EXPECT_THAT(seats_of(w), ElementsAre("job-r0-g0", "job-r1-g1", "job-r0-g0/app-2", "job-r3-g0", "job-r3-g0/app-1"));
  ASSERT_TRUE(w.run_until([&] { return w.find(Seat{"job-r0-g0", 1})->process == Process::kNone; }))
      << "the stopped process goes, the pod stays\n"
      << w.trace;
  EXPECT_EQ(w.migration("m").status.target_pod, "job-r1-g1");
  ASSERT_TRUE(w.run_until([&] { return w.unrest().empty(); })) << w.unrest() << w.trace;
  // The pod goes with the last of its ranks.
  for (const std::uint32_t rank : {0u, 2u}) {
    w.migrate_by_hand(std::format("m{}", rank), rank, "fast");
    ASSERT_TRUE(w.run_until([&] { return w.migration(std::format("m{}", rank)).status.phase == Phase::kSucceeded; }))
        << w.trace;
  }
  ASSERT_TRUE(w.run_until([&] { return !w.find("job-r0-g0"); })) << w.trace;
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
}

TEST(Seats, RanksThatMoveToOneNodeTravelToOnePod) {
  World w(three_slots());
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.cordon("slow-0");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.migrations.succeeded == 3; })) << w.trace;
  EXPECT_EQ(w.job.status.migrations.waves, 1u) << w.trace;
  // One finds a slot in the Set.
  EXPECT_THAT(seats_of(w), ElementsAre("job-r0-g1", "job-r1-g1", "job-r1-g1/app-1", "job-r3-g0", "job-r3-g0/app-1"));
  EXPECT_TRUE(w.run_until([&] { return !w.find("job-r0-g0"); })) << w.trace;
}

TEST(Seats, AContainersEndNamesRankPodAndContainer) {
  for (const bool reports : {true, false}) {
    World w(three_slots());
    w.job.spec.run_policy.backoff_limit = 0;
    ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
    w.end_program(1, -1, 9, reports);
    ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
    EXPECT_THAT(w.job.status.message, HasSubstr("rank 1 (job-r0-g0/app-1) was ended by SIGKILL"));
    EXPECT_EQ(name_of(w.shown_logs_of), "job-r0-g0/app-1");
  }
}

TEST(Seats, AContainersEndInAWaveNamesThemToo) {
  World w(three_slots());
  w.job.spec.run_policy.backoff_limit = 0;
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.migrate_by_hand("m", 1, "fast");
  ASSERT_TRUE(w.run_until(Phase::kPausing)) << w.trace;
  w.end_program(3, 5, 0);
  ASSERT_TRUE(w.run_until(JobPhase::kFailed)) << w.trace;
  EXPECT_THAT(w.job.status.message, HasSubstr("rank 3 (job-r3-g0/app) exited with code 5"));
}

TEST(Seats, APodIsEvictedWithAllItsRanks) {
  World w(three_slots());
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.evict("job-r0-g0");
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1; })) << w.trace;
  EXPECT_THAT(w.job.status.restarts.back().message, HasSubstr("the node ended pod job-r0-g0 of rank 0"));
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
}

// One of two sidecars is silent, which concerns three of five ranks: no reason to suspect the operator's own network.
TEST(Seats, ASidecarCountsOnceHoweverManyRanksItServes) {
  World w(three_slots());
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.silence("job-r0-g0", 1000);
  ASSERT_TRUE(w.run_until([&] { return !judge_silence(w.observe(), w.job_limits).ranks.empty(); })) << w.trace;
  const Silence silence = judge_silence(w.observe(), w.job_limits);
  EXPECT_THAT(silence.ranks, SizeIs(3));
  EXPECT_EQ(silence.own_fault, "");
  EXPECT_THAT(silence.ranks[1].text, HasSubstr("rank 1 (job-r0-g0/app-1)"));
}

TEST(Seats, AJobEndsWellAfterMoves) {
  Options options = three_slots();
  options.supersteps = 120;
  World w(options);
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  w.migrate_by_hand("m", 1, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.migration("m").status.phase == Phase::kSucceeded; })) << w.trace;
  ASSERT_TRUE(w.run_until(JobPhase::kSucceeded)) << w.trace;
}

// --- Every fault in every phase ---------------------------------------------------------------------------------
struct Fault {
  const char* name;
  void (*strikes)(World&);
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

constexpr const char* kSource = "job-r0-g0";
constexpr const char* kTarget = "job-r0-g1";
const Fault kFaults[] = {
    {"SourcePod", [](World& w) { w.lose_pod(kSource); }},
    {"TargetPod", [](World& w) { w.lose_pod(kTarget); }},
    {"TargetDeleted", [](World& w) { w.delete_pod(kTarget); }},
    {"StayingPod", [](World& w) { w.lose_pod("job-r3-g0"); }},
    {"SourceEvicted", [](World& w) { w.evict(kSource); }},
    {"MovingProgram", [](World& w) { w.end_program(0, -1, 9); }},
    {"ProgramBesideIt", [](World& w) { w.end_program(2, -1, 9); }},
    {"OneOfThreeExitsEarly", [](World& w) { w.end_program(2, 3, 0); }},
    {"UnreportedEnd", [](World& w) { w.end_program(2, -1, 9, false); }},
    {"SourceSidecar", [](World& w) { w.restart_sidecar(kSource); }},
    {"TargetSidecar", [](World& w) { w.restart_sidecar(kTarget); }},
    {"SourceSilent", [](World& w) { w.silence(kSource, 40); }},
    {"TargetSilent", [](World& w) { w.silence(kTarget, 40); }},
    {"Operator", [](World& w) { w.restart_operator(3); }},
    {"Conflicts", [](World& w) { w.conflicts = 3; }},
    {"MigrationDeleted", [](World& w) { w.delete_migration("m"); }},
};
constexpr Phase kPhases[] = {Phase::kPreparing, Phase::kPausing,  Phase::kCheckpointing, Phase::kTransferring,
                             Phase::kRestoring, Phase::kResuming, Phase::kSucceeded};

bool is_at_rest(const World& w) {
  const auto wave = stored_wave(w.job.status);
  return w.job.status.phase == JobPhase::kRunning && wave && (!*wave || migrate::is_finished(**wave));
}

class SeatsFault : public testing::TestWithParam<std::tuple<Fault, Phase>> {};

// `moves`: how many of the three ranks of the first pod move, together.
TEST_P(SeatsFault, LeavesOneCopyOfEachRankAndAJobThatGoesOn) {
  const auto& [fault, phase] = GetParam();
  for (const std::uint32_t moves : {1u, 2u, 3u})
    for (const std::uint32_t seed : {0u, 1u, 2u}) {
      Options options = three_slots();
      options.seed = seed;
      World w(options);
      ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
      for (std::uint32_t rank = 0; rank < moves; ++rank)
        w.migrate_by_hand(rank == 0 ? "m" : std::format("m{}", rank), rank, "fast");
      ASSERT_TRUE(w.run_until(phase)) << w.trace;
      fault.strikes(w);
      ASSERT_TRUE(w.run_until([&] { return is_at_rest(w); }, 3000)) << w.violation << '\n' << w.trace;
      const std::uint64_t superstep = w.job.status.superstep.value;
      ASSERT_TRUE(w.run_until([&] { return w.job.status.superstep.value > superstep + 5; }, 3000))
          << w.violation << '\n'
          << w.trace;
      EXPECT_EQ(w.violation, "");
    }
}

INSTANTIATE_TEST_SUITE_P(InEachPhase, SeatsFault,
                         testing::Combine(testing::ValuesIn(kFaults), testing::ValuesIn(kPhases)), [](const auto& p) {
                           return std::format("{}_{}", std::get<0>(p.param).name,
                                              crds::to_string(std::get<1>(p.param)));
                         });

// --- The pod as it is made --------------------------------------------------------------------------------------
crds::BspJob job_with(const json& app) {
  crds::BspJob job;
  job.metadata.name = "job";
  job.metadata.uid = "uid";
  job.spec.ranks = 8;
  job.spec.pod_template = {{"spec",
                            {{"containers", {{{"name", "helper"}, {"image", "h"}}, app}},
                             {"volumes",
                              {{{"name", "scratch"}, {"emptyDir", json::object()}},
                               {{"name", "data"}, {"hostPath", {{"path", "/data"}}}}}}}}};
  return job;
}
const json& container(const json& pod, std::string_view name) {
  for (const json& each : pod.at("spec").at("containers"))
    if (each.at("name") == name) return each;
  throw std::out_of_range(std::string(name));
}
std::string env_of(const json& container, std::string_view name) {
  for (const json& entry : container.at("env"))
    if (entry.at("name") == name) return entry.value("value", "");
  return "none";
}
json mount_at(const json& container, std::string_view path) {
  for (const json& mount : container.at("volumeMounts"))
    if (mount.at("mountPath") == path) return mount;
  return {};
}

TEST(MakePod, MultipliesTheAppContainer) {
  const json app = {{"name", "app"},
                    {"image", "i"},
                    {"command", {"p"}},
                    {"ports", {{{"name", "web"}, {"containerPort", 80}}}},
                    {"resources", {{"limits", {{"cpu", "1"}, {"memory", "1Gi"}}}}},
                    {"volumeMounts",
                     {{{"name", "scratch"}, {"mountPath", "/scratch"}, {"subPath", "a"}},
                      {{"name", "data"}, {"mountPath", "/data"}}}}};
  const json pod = make_pod(job_with(app), {.rank = 4, .generation = 2, .beside = {6, 5}}, {}, {.scheduled = true});
  EXPECT_EQ(pod.at("metadata").at("name"), "job-r4-g2");
  std::vector<std::string> names;
  for (const json& each : pod.at("spec").at("containers")) names.push_back(each.at("name"));
  EXPECT_THAT(names, ElementsAre("helper", "app", "app-1", "app-2"));
  const std::vector<std::string> ranks{"4", "6", "5"};
  for (std::uint32_t local = 0; local < 3; ++local) {
    const json& made = container(pod, container_of(local));
    EXPECT_EQ(env_of(made, "OMPI_COMM_WORLD_RANK"), ranks[local]);
    EXPECT_EQ(env_of(made, "OMPI_COMM_WORLD_LOCAL_RANK"), std::to_string(local));
    EXPECT_EQ(env_of(made, "OMPI_COMM_WORLD_LOCAL_SIZE"), "3");
    EXPECT_EQ(made.at("resources"), app.at("resources"));
    EXPECT_EQ(mount_at(made, "/run/bsp"),
              (json{{"name", "bsp-run"}, {"mountPath", "/run/bsp"}, {"subPath", std::format("seat-{}", local)}}));
    EXPECT_EQ(mount_at(made, "/dev/shm"), (json{{"name", "bsp-shm"}, {"mountPath", "/dev/shm"}}));
    EXPECT_EQ(mount_at(made, "/scratch").at("subPath"), std::format("seat-{}/a", local)) << "it moves with the rank";
    EXPECT_EQ(mount_at(made, "/data"), (json{{"name", "data"}, {"mountPath", "/data"}}));
    EXPECT_EQ(made.contains("ports"), local == 0);
  }
  const json& run = pod.at("spec").at("volumes").at(3);
  EXPECT_EQ(run.at("name"), "bsp-run");
  EXPECT_EQ(run.at("emptyDir").at("sizeLimit"), std::to_string(3 * (2ull << 30))) << "all may arrive together";
  const json& sidecar = pod.at("spec").at("initContainers").at(0);
  EXPECT_EQ(env_of(sidecar, "BSP_RANK"), "4,6,5");
  EXPECT_EQ(mount_at(sidecar, "/run/bsp"), (json{{"name", "bsp-run"}, {"mountPath", "/run/bsp"}}));
  EXPECT_EQ(request_of(pod).ranks(), (std::vector<std::uint32_t>{4, 6, 5}));
  EXPECT_THAT(pod_facts(pod).apps, SizeIs(3));
  const json alone = make_pod(job_with(app), {.rank = 4}, {}, {.scheduled = true});
  EXPECT_TRUE(mount_at(container(alone, "app"), "/dev/shm").is_null());
  EXPECT_FALSE(mount_at(container(alone, "app"), "/run/bsp").contains("subPath"));
  EXPECT_EQ(mount_at(container(alone, "app"), "/scratch").at("subPath"), "a");
}

crds::BspJob alone() {
  crds::BspJob job = job_with({{"name", "app"}, {"image", "i"}});
  job.spec.pod_template["spec"]["containers"].erase(0);
  return job;
}

// Nothing that the template gives each pod would then be missing for a rank.
TEST(RanksPerPod, UnsetFillsNodesWhereAPodHasNothingOfARank) {
  const auto seats_with = [](const std::string& at, const json& value) {
    crds::BspJob job = alone();
    if (!at.empty()) job.spec.pod_template[json::json_pointer(at)] = value;
    EXPECT_FALSE(json(job).at("spec").contains("ranksPerPod"));
    return most_seats(job);
  };
  const std::string spec = "/spec", app = "/spec/containers/0";
  EXPECT_EQ(seats_with("", {}), 256u);
  EXPECT_EQ(seats_with(app + "/env", json::array({{{"name", "A"}, {"value", "b"}}})), 256u);
  EXPECT_EQ(seats_with(app + "/resources", {{"requests", {{"cpu", "1"}}}}), 256u);
  EXPECT_EQ(seats_with(spec + "/volumes", json::array({{{"name", "a"}, {"emptyDir", json::object()}}})), 256u);
  const json port = {{"containerPort", 80}}, by_name = {{"fieldRef", {{"fieldPath", "metadata.name"}}}};
  const std::map<std::string, json> of_a_rank{
      {spec + "/containers/1", {{"name", "helper"}, {"image", "i"}}},
      {spec + "/initContainers", json::array({{{"name", "first"}, {"image", "i"}}})},
      {spec + "/resources", {{"limits", {{"memory", "1Gi"}}}}},
      {spec + "/resourceClaims", json::array({{{"name", "a"}}})},
      {app + "/ports", json::array({port})},
      {app + "/readinessProbe", {{"tcpSocket", {{"port", 80}}}}},
      {app + "/env", json::array({{{"name", "A"}, {"valueFrom", by_name}}})}};
  for (const auto& [at, value] : of_a_rank) EXPECT_EQ(seats_with(at, value), 1u) << at;
  crds::BspJob gang = alone();
  gang.spec.scheduling.gang = crds::Gang::kVolcano;
  EXPECT_EQ(most_seats(gang), 1u);
}

TEST(RanksPerPod, UnsetSharesPodsFromTheNextAttemptOn) {
  World w(three_slots(crds::RanksPerPod::kUnset));
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_THAT(w.pods, SizeIs(2));
  EXPECT_EQ(most_seats(w.job), 256u);
  // An older operator has begun it: its sidecars may serve one rank.
  World old(three_slots(1));
  ASSERT_TRUE(old.run_until(JobPhase::kRunning)) << old.trace;
  old.job.spec.ranks_per_pod = {};
  EXPECT_EQ(most_seats(old.job), 1u);
  old.job.status.ranks.clear();
  EXPECT_EQ(most_seats(old.job), 256u);
}

TEST(RanksPerPod, IsANumberOrAuto) {
  crds::BspJob job = job_with({{"name", "app"}, {"image", "i"}});
  for (const auto& [value, most] : {std::pair{json(1), 1u}, {json(7), 7u}, {json(256), 256u}, {json("Auto"), 256u}}) {
    json object = job;
    object["spec"]["ranksPerPod"] = value;
    const auto read = crds::bsp_job_from_json(object);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_TRUE(crds::validate(read->spec)) << value;
    EXPECT_EQ(most_seats(read->spec), most) << value;
    EXPECT_EQ(json(*read).at("spec").at("ranksPerPod"), value);
  }
  for (const json& value : {json(-1), json(0), json(257), json(1.5), json(""), json("auto"), json("4"),
                            json(99999999999), json(true), json::array({1})}) {
    json object = job;
    object["spec"]["ranksPerPod"] = value;
    auto valid =
        crds::bsp_job_from_json(object).and_then([](const crds::BspJob& read) { return crds::validate(read.spec); });
    ASSERT_FALSE(valid) << value;
    EXPECT_THAT(valid.error().message, HasSubstr("spec.ranksPerPod: ")) << value;
  }
  job.spec.ranks_per_pod.most = 2;
  job.spec.scheduling.gang = crds::Gang::kVolcano;
  EXPECT_TRUE(crds::validate(job.spec));
  job.spec.ranks_per_pod.most = crds::RanksPerPod::kAuto;
  EXPECT_THAT(crds::validate(job.spec).error().message,
              HasSubstr("spec.ranksPerPod: must be a number unless spec.scheduling.gang is Reserve"));
  job.spec.ranks_per_pod.most = 2;
  job.spec.scheduling.gang = {};
  job.spec.pod_template["spec"]["containers"][0]["name"] = "app-1";
  EXPECT_THAT(crds::validate(job.spec).error().message, HasSubstr("spec.template.spec.containers[0].name: app-1"));
  job.spec.ranks_per_pod.most = 1;
  EXPECT_TRUE(crds::validate(job.spec));
}

}  // namespace
}  // namespace bsp::reconcile::sim
