// What a running job costs the API server, and how it takes refusals: the shell with sidecars that answer.
#include <ranges>

#include "base/json/fields.h"
#include "fake_ranks.h"
#include "install_crds.h"
#include "operator/kinds.h"
#include "operator/reconcile/kernel/silence.h"
#include "operator/reconcile/shell/shell.h"
#include "tests/unit/kube/world.h"

namespace bsp::controller {
namespace {

using namespace std::chrono_literals;
using kube_test::eventually;
using nlohmann::json;

class WritesTest : public ::testing::Test {
 protected:
  struct Write {
    std::string what;  // "PATCH /apis/…"
    json body;
  };

  WritesTest()
      : server_(
            kube_test::Pki::get().server, kube_test::Pki::get().ca.certificate,
            [this](const kube_test::Request& request, kube_test::Reply& reply) {
              if (request.method != "GET") {
                const std::lock_guard lock(mutex_);
                writes_.push_back({request.method + " " + request.target, json::parse(request.body, nullptr, false)});
              }
              api_.handle(request, reply);
            }) {
    kube::Config config;
    config.server = "https://127.0.0.1:" + std::to_string(server_.port());
    config.ca.text = kube_test::Pki::get().ca.certificate;
    config.token.text = "secret";
    config.source = "the test";
    client_ = std::move(kube::ApiClient::create(config, kube_test::quick())).value();
    shells_ = std::move(kube::ApiClient::create(config, kube_test::quick())).value();
    install_crds(*client_);
    for (const char* name : {"slow-1", "fast-1"}) {
      json node = {{"apiVersion", "v1"},
                   {"kind", "Node"},
                   {"metadata", {{"name", name}, {"labels", {{"pool", std::string(name).substr(0, 4)}}}}}};
      check(client_->create(node).has_value(), "a node can be made");
      node["status"] = {{"allocatable", {{"cpu", "100"}, {"memory", "100Gi"}, {"pods", "100"}}},
                        {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
      check(client_->update_status(node).has_value(), "its status can be written");
    }
  }
  ~WritesTest() override { shells_->close(); }

  void start(reconcile::ShellOptions options, std::chrono::nanoseconds unreachable = 10min) {  // a busy machine
    options.name_space = "";
    options.pods.scheduled = true;
    options.collects_garbage = true;
    options.reservations_name_space = "default";
    options.job_limits.unreachable = unreachable;
    shell_ = std::make_unique<reconcile::Shell>(*shells_, std::move(options));
  }
  void create_job(const json& rescheduling, const json& run_policy = json::object(),
                  const json& sets = {{"label", "pool"}}, const std::string& name = "job") {
    const json container = {{"name", "app"}, {"image", "localhost/x"}, {"command", {"solver"}}};
    ASSERT_TRUE(client_->create({{"apiVersion", "migbsp.io/v1alpha1"},
                                 {"kind", "BSPJob"},
                                 {"metadata", {{"name", name}, {"namespace", "default"}}},
                                 {"spec",
                                  {{"ranks", 2},
                                   {"ranksPerPod", 1},
                                   {"sets", sets},
                                   {"initialMapping", "RoundRobin"},
                                   {"rescheduling", rescheduling},
                                   {"runPolicy", run_policy},
                                   {"template", {{"spec", {{"containers", json::array({container})}}}}}}}}));
  }
  json status(const std::string& name = "job") {
    const auto job = client_->get({kBspJob, "default", name});
    return job ? job->value("status", json::object()) : json::object();
  }
  bool runs(FakeRanks& ranks, const std::string& name = "job") {
    return eventually([&] {
      ranks.bring_up([](const std::string& set, std::uint32_t) { return set + "-1"; });
      return status(name).value("phase", "") == "Running";
    });
  }
  bool shows(const std::string& condition, const std::string& name) {
    const json stored = status(name);
    for (const json& one : part_at(stored, "conditions"))
      if (one.value("type", "") == condition) return one.value("status", "") == "True";
    return false;
  }
  // Without the operator's finalizer, which it can't put back.
  void delete_by_force(const std::string& name) {
    ASSERT_TRUE(eventually([&] {
      server_.clear_faults();
      auto job = client_->get({kBspJob, "default", name});
      server_.inject({.match = "GET /apis/migbsp.io/v1alpha1/namespaces/default/bspjobs/" + name,
                      .times = 1'000'000,
                      .status = 403,
                      .body = R"({"kind": "Status", "message": "not now", "reason": "Forbidden"})"});
      if (!job) return false;
      (*job)["metadata"]["finalizers"] = json::array();
      return client_->update(*job).has_value();
    }));
    ASSERT_TRUE(client_->remove({kBspJob, "default", name}, ""));
    server_.clear_faults();
    ASSERT_FALSE(client_->get({kBspJob, "default", name}));
  }
  std::vector<Write> writes(const std::string& match) {
    const std::lock_guard lock(mutex_);
    std::vector<Write> found;
    for (const Write& write : writes_)
      if (write.what.contains(match)) found.push_back(write);
    return found;
  }

  std::atomic<int> recorded_ = 0;  // calls; the shell outlives a test's body
  std::mutex mutex_;
  std::vector<Write> writes_;
  kube_test::ApiServer api_;
  kube_test::TlsServer server_;
  std::unique_ptr<kube::ApiClient> client_, shells_;
  std::unique_ptr<reconcile::Shell> shell_;
};

TEST_F(WritesTest, WritesProgressWithoutTheDecisionAndReportsCallsWithoutMovesRarely) {
  FakeRanks ranks(*client_, {.compute_share = [](std::uint32_t rank, std::uint64_t) { return 0.2 + 0.6 * rank; }});
  start({.name_space = "",
         .network = "",
         .progress = 50ms,
         .calls = 1h,
         .record = [this](const auto&, const auto&, const auto&) { ++recorded_; }});
  create_job({{"mode", "Advise"}, {"heuristic", "AutoMig"}, {"alpha", 4}, {"d", 0.01}, {"omega", 1'000'000}});
  ASSERT_TRUE(runs(ranks));
  const std::size_t while_starting = writes("/bspjobs/job/status").size();
  ASSERT_TRUE(eventually([&] { return recorded_ >= 50; })) << "every call is recorded";
  const auto superstep = status().value("superstep", std::uint64_t{0});
  ASSERT_TRUE(eventually([&] { return status().value("superstep", std::uint64_t{0}) > superstep; }))
      << "progress is reported";
  int decisions = 0, progress = 0;
  for (const Write& write : writes("/bspjobs/job/status"))
    decisions += part_at(write.body, "status").contains("lastDecision");
  for (const Write& write : writes("/bspjobs/job/status") | std::views::drop(while_starting)) {
    const json written = write.body.value("status", json::object());
    if (!written.contains("lastDecision") && written.contains("superstep")) {
      ++progress;
      for (const char* part : {"epoch", "phase", "startTime"}) EXPECT_FALSE(written.contains(part)) << part;
    }
  }
  EXPECT_EQ(decisions, 1) << "the first at once, the next in an hour";
  EXPECT_GE(progress, 2);
  int events = 0;
  for (const Write& write : writes("/events")) events += write.body.value("reason", "") == "Rescheduled";
  EXPECT_EQ(events, 1);
}

TEST_F(WritesTest, AReportedCallCountsThoseThatWereNot) {
  FakeRanks ranks(*client_, {.compute_share = [](std::uint32_t rank, std::uint64_t) { return 0.2 + 0.6 * rank; }});
  start({.name_space = "", .network = "", .calls = 1s});
  create_job({{"mode", "Advise"}, {"heuristic", "AutoMig"}, {"alpha", 4}, {"d", 0.01}, {"omega", 1'000'000}});
  ASSERT_TRUE(runs(ranks));
  EXPECT_TRUE(eventually([&] {
    return text_at(part_at(status(), "lastDecision"), "message").contains(" earlier calls are not reported)");
  }));
}

TEST_F(WritesTest, AStatusThatIsRefusedIsTriedLaterAndLater) {
  const std::string match = "PATCH /apis/migbsp.io/v1alpha1/namespaces/default/bspjobs/job/status";
  server_.inject({.match = match,
                  .times = 1'000'000,
                  .status = 403,
                  .body = R"({"kind": "Status", "message": "a webhook says no", "reason": "Forbidden"})"});
  start({});
  const auto began = std::chrono::steady_clock::now();  // before the first request: this thread may be held up after it
  create_job({{"mode", "Off"}});
  ASSERT_TRUE(server_.wait_for_requests(match, 7));
  // 0.1 s, doubled five times, less the half by which each varies.
  EXPECT_GE(std::chrono::steady_clock::now() - began, 1500ms);
  server_.clear_faults();
  EXPECT_TRUE(eventually([&] { return status().value("phase", "") == "Starting"; }));
}

TEST_F(WritesTest, MigrationsThatHaveEndedGoBeyondTheLimitTheOldestFirst) {
  FakeRanks ranks(*client_, {});
  start({});
  create_job({{"mode", "Off"}}, {{"migrationHistoryLimit", 2}});
  ASSERT_TRUE(runs(ranks));
  const auto left = [&] {
    std::vector<std::string> names;
    const std::vector<kube::Object> there = client_->list(kRankMigration, "default").value();
    for (const json& m : there) names.push_back(m["metadata"]["name"]);
    return names;
  };
  std::map<std::string, std::string> uids;
  for (const char* name : {"m1", "m2", "m3", "m4"}) {
    const auto made = client_->create({{"apiVersion", "migbsp.io/v1alpha1"},
                                       {"kind", "RankMigration"},
                                       {"metadata", {{"name", name}, {"namespace", "default"}}},
                                       {"spec", {{"job", "job"}, {"rank", 0}, {"targetSet", "nowhere"}}}});
    ASSERT_TRUE(made);
    uids[name] = (*made)["metadata"]["uid"];
    ASSERT_TRUE(eventually([&] {
      const auto now = client_->get({kRankMigration, "default", name});
      return now && text_at(part_at(*now, "status"), "phase") == "Failed";
    })) << name;
  }
  EXPECT_TRUE(eventually([&] { return left() == std::vector<std::string>{"m3", "m4"}; }));
  for (const char* name : {"m1", "m2"}) {
    const auto deleted =
        writes(std::string("DELETE /apis/migbsp.io/v1alpha1/namespaces/default/rankmigrations/") + name);
    ASSERT_EQ(deleted.size(), 1u) << name;
    EXPECT_EQ(deleted[0].body["preconditions"]["uid"], uids[name]) << "this very one";
  }
}

TEST_F(WritesTest, ReportsComeByWayOfTheNextRankWhereTheLowestOfTheSetIsSilent) {
  FakeRanks ranks(*client_, {});
  start({.name_space = "", .network = ""});
  create_job({{"mode", "Off"}}, json::object(), {{"label", "pool"}, {"names", {"slow"}}});
  ASSERT_TRUE(runs(ranks)) << status();
  ASSERT_TRUE(eventually([&] { return ranks.asked(wire::kSetReport) > 0; }));
  ranks.silence("job-r0-g0");
  const std::uint64_t before = ranks.asked(wire::kSetReport);
  EXPECT_TRUE(eventually([&] { return ranks.asked(wire::kSetReport) >= before + 20; }));
  EXPECT_EQ(status().value("phase", ""), "Running");
}

// Its silent sidecars would be most of all for ever, and no rank of another job would be given up as lost.
TEST_F(WritesTest, AJobThatIsGoneSaysNothingOfTheOperatorsNetwork) {
  FakeRanks ranks(*client_, {});
  start({.name_space = "", .network = ""}, 500ms);
  create_job({{"mode", "Off"}});
  ASSERT_TRUE(runs(ranks)) << status();
  for (const char* pod : {"job-r0-g0", "job-r1-g0"}) ranks.silence(pod);
  ASSERT_TRUE(eventually([&] { return shows(reconcile::kOperatorCutOff, "job"); })) << status();
  ASSERT_NO_FATAL_FAILURE(delete_by_force("job"));

  create_job({{"mode", "Off"}}, json::object(), {{"label", "pool"}}, "later");
  ASSERT_TRUE(runs(ranks, "later")) << status("later");
  ranks.silence("later-r1-g0");
  EXPECT_TRUE(eventually([&] { return shows(reconcile::kSidecarSilent, "later"); })) << status("later");
  EXPECT_FALSE(shows(reconcile::kOperatorCutOff, "later"));
}

// Else nobody could drain the node any more.
TEST_F(WritesTest, ABudgetThatCouldNotBeDeletedIsDeletedLater) {
  FakeRanks ranks(*client_, {});
  start({.name_space = "", .network = ""});
  const std::string budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
  create_job({{"mode", "Off"}}, {{"drainTimeoutSeconds", 1}}, {{"label", "pool"}, {"names", {"slow"}}});
  ASSERT_TRUE(runs(ranks)) << status();
  ASSERT_TRUE(server_.wait_for_requests("POST " + budgets, 1));
  server_.inject({.match = "DELETE " + budgets,
                  .times = 1,
                  .status = 403,
                  .body = R"({"kind": "Status", "message": "a webhook says no", "reason": "Forbidden"})"});
  json node = client_->get({kNode, "", "slow-1"}).value();
  node["spec"]["unschedulable"] = true;
  ASSERT_TRUE(client_->update(node));
  ASSERT_TRUE(server_.wait_for_requests("DELETE " + budgets, 1));
  EXPECT_TRUE(eventually([&] { return client_->list(kDisruptionBudget, "default").value().empty(); }));
}

}  // namespace
}  // namespace bsp::controller
