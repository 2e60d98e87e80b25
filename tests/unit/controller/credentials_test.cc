// A new leader finds a job that has run for long, or under certificates that no peer accepts: a whole controller over an API
// server, real links to sidecars of the test's own, which read their certificates from the Secret as a kubelet shows it.
#include <filesystem>

#include "base/core/base64.h"
#include "operator/controller/controller.h"
#include "operator/kinds.h"
#include "tests/unit/controller/fake_ranks.h"
#include "tests/unit/controller/install_crds.h"
#include "tests/unit/kube/world.h"
#include "tests/unit/net/link_world.h"

namespace bsp::controller {
namespace {

using kube::Object;
using kube_test::eventually;
using nlohmann::json;
using namespace std::chrono_literals;

constexpr const char* kPodName = "lbm-r0-g0";

// What an earlier operator left behind.
struct Left {
  const char* name;
  Duration from, to;           // of the pod's certificate and its CA's
  std::string signed_by = {};  // a seed that is lost; else the one that is stored
  std::string stored = {};     // instead of the seed, in the operator's Secret
};

class CredentialsTest : public kube_test::World, public testing::WithParamInterface<Left> {
 protected:
  void SetUp() override {
    if (is_real()) GTEST_SKIP() << "needs a server to which nodes can be added";
    client_ = open();
    ASSERT_NO_FATAL_FAILURE(install_crds(*client_));
    json node = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", "n"}, {"labels", {{"pool", "all"}}}}}};
    node["spec"] = json::object();
    ASSERT_TRUE(client_->create(node));
    node["status"] = {{"allocatable", {{"cpu", "8"}, {"memory", "4Gi"}, {"pods", "110"}}},
                      {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
    ASSERT_TRUE(client_->update_status(node));
  }
  void TearDown() override {
    controller_.reset();
    if (sidecar_) sidecar_->on_loop([&] { held_.clear(); });
    sidecar_.reset();
  }

  void lead() {
    Options options;
    options.metrics_address = options.health_address = "";
    options.lease.name = "bsp-operator";  // what its own Secret is called after
    auto controller = Controller::start(options, config());
    ASSERT_TRUE(controller) << controller.error().message;
    controller_ = std::move(*controller);
  }
  std::string pod_ip() { return std::format("127.{}.17.1", network_.number()); }
  std::string sidecar_address() { return std::format("{}:{}", pod_ip(), names::kSidecarPort); }
  json job() { return client_->get({kBspJob, "default", "lbm"}).value_or(json::object()); }
  json status() { return job().value("status", json::object()); }
  json secret() {
    const auto all = client_->list(kSecret, "default", {{"migbsp.io/job", "lbm"}});
    return all && all->size() == 1 ? all->at(0) : json::object();
  }
  net::Credentials shown() {
    const json data = secret().value("data", json::object());
    const auto text = [&](const std::string& key) { return base64_decode(data.value(key, "")).value_or(""); };
    return {text("ca.pem"), text(kPodName + std::string(".cert.pem")), text(kPodName + std::string(".key.pem"))};
  }

  // A job of one rank that runs, as its former operator left it: its pod, whose sidecar answers at an address of this
  // machine, and the Secret with its certificates.
  void run_job() {
    lead();
    const json rank = {{"name", "app"}, {"image", "localhost/x"}, {"command", {"solver"}}};
    ASSERT_TRUE(client_->create({{"apiVersion", "migbsp.io/v1alpha1"},
                                 {"kind", "BSPJob"},
                                 {"metadata", {{"name", "lbm"}, {"namespace", "default"}}},
                                 {"spec",
                                  {{"ranks", 1},
                                   {"sets", {{"label", "pool"}, {"names", {"all"}}}},
                                   {"template", {{"spec", {{"containers", {rank}}}}}}}}}));
    ASSERT_TRUE(eventually([&] { return client_->get({kPod, "default", kPodName}).has_value(); }));
    controller_.reset();
    uid_ = job()["metadata"]["uid"];
    seed_ = base64_decode(client_->get(authority_).value()["data"]["seed"].get<std::string>()).value();
  }
  void age(const Left& left) {
    const Time now = SystemClock{}.now();
    const Time from = now + left.from, to = now + left.to;
    const net::PemPair ca =
        net::derive_ca(left.signed_by.empty() ? seed_ : left.signed_by, "bspjob-" + uid_, from, to).value();
    const net::PemPair own =
        net::issue_certificate(
            ca, {.identity = kPodName, .dns_names = {}, .addresses = {}, .not_before = from, .not_after = to})
            .value();
    json aged = secret();
    aged["data"] = {{"ca.pem", base64_encode(ca.certificate)},
                    {kPodName + std::string(".cert.pem"), base64_encode(own.certificate)},
                    {kPodName + std::string(".key.pem"), base64_encode(own.key)}};
    ASSERT_TRUE(client_->update(aged));
    if (left.stored.empty()) return;
    json authority = client_->get(authority_).value();
    authority["data"] = {{"seed", left.stored}};
    ASSERT_TRUE(client_->update(authority));
  }
  // The sidecar has these certificates, and its pod is up.
  void bring_up() {
    sidecar_tls_ = net::TlsContext::create(shown()).value();
    sidecar_ = std::make_unique<net::World>(
        [this](net::Request request, net::Reply reply) {
          if (request.peer == names::kOperatorIdentity) ++heard_;
          wire::RankStatus s;
          s.version = 1;
          s.pod = kPodName;
          s.phase = wire::RankPhase::kRunning;
          s.init_connected = s.mpi_initialized = true;
          // As long as nothing changes a watch waits.
          if (request.verb == wire::kWatch && request.fields.value("version", 0u) == s.version)
            held_.push_back(std::move(reply));
          else
            reply.ok(json(s));
        },
        sidecar_tls_, sidecar_address());
    json pod = client_->get({kPod, "default", kPodName}).value();
    pod["spec"]["nodeName"] = "n";
    pod = client_->update(pod).value();
    const json running = {{"running", json::object()}};
    pod["status"] = {{"phase", "Running"},
                     {"podIP", pod_ip()},
                     {"containerStatuses", {{{"name", "app"}, {"state", running}}}},
                     {"initContainerStatuses", {{{"name", "sidecar"}, {"state", running}}}}};
    ASSERT_TRUE(client_->update_status(pod));
    auto runs = crds::bsp_job_from_json(job()).value();
    runs.status.phase = crds::JobPhase::kRunning;
    runs.status.epoch = wire::EpochPlan{
        .epoch = 0,
        .pmix_namespace = "lbm-e0",
        .sets = {"all"},
        .members = {
            {.rank = 0, .pod = kPodName, .pod_uid = pod["metadata"]["uid"], .address = sidecar_address(), .set = 0}}};
    runs.status.epochs_used = 1;
    json next;
    to_json(next, runs);
    ASSERT_TRUE(client_->update_status(next));
  }
  // What kubelet and sidecar do with a Secret that has changed.
  bool show_again(const net::Credentials& before) {
    return eventually([&] {
      const net::Credentials now = shown();
      return now != before && !now.ca.empty() && sidecar_tls_.renew(now).has_value();
    });
  }

  const kube::Key authority_{kSecret, "default", "bsp-operator-authority"};
  const ReservedNetwork network_;
  std::unique_ptr<kube::ApiClient> client_;
  std::unique_ptr<Controller> controller_;
  std::unique_ptr<net::World> sidecar_;
  net::TlsContext sidecar_tls_;
  std::atomic<int> heard_ = 0;
  std::vector<net::Reply> held_;
  std::string uid_, seed_;
};

TEST_P(CredentialsTest, ARunningJobStaysManagedAndCanBeDeleted) {
  ASSERT_NO_FATAL_FAILURE(run_job());
  ASSERT_NO_FATAL_FAILURE(age(GetParam()));
  const net::Credentials before = shown();
  ASSERT_NO_FATAL_FAILURE(bring_up());
  ASSERT_NO_FATAL_FAILURE(lead());
  const auto refused = [&] {
    for (const json& condition : status().value("conditions", json::array()))
      if (condition["type"] == "CertificatesRefused") return condition["status"].get<std::string>();
    return std::string();
  };
  EXPECT_TRUE(eventually([&] { return refused() == "True"; }))
      << "a superstep that isn't known has a reason: " << status();
  ASSERT_TRUE(show_again(before)) << "the new leader renews them";
  EXPECT_TRUE(eventually([&] { return heard_ > 0; })) << "and is heard";
  EXPECT_TRUE(eventually([&] { return refused().empty(); })) << "a condition that is false isn't stored: " << status();
  EXPECT_EQ(status()["phase"], "Running");
  EXPECT_EQ(status().value("attempt", 0), 0) << "nothing was restarted";
  EXPECT_TRUE(client_->get({kPod, "default", kPodName}));
  ASSERT_TRUE(client_->remove({kBspJob, "default", "lbm"}, ""));
  EXPECT_TRUE(eventually([&] { return job().empty(); })) << job();
}

INSTANTIATE_TEST_SUITE_P(
    Left, CredentialsTest,
    testing::Values(
        Left{.name = "ExpiredYesterday", .from = -366 * 24h, .to = -24h},
        Left{.name = "NotYetValid", .from = 3h, .to = 365 * 24h},
        Left{.name = "OfAnotherSeed", .from = -1h, .to = 365 * 24h, .signed_by = std::string(net::kSeedBytes, 'o')},
        Left{.name = "SeedCorrupt", .from = -1h, .to = 365 * 24h, .stored = "bm90IGEgc2VlZA=="}),
    [](const auto& tested) { return tested.param.name; });

TEST_F(CredentialsTest, HalfAYearOldOnesAreGoodForANewLeader) {
  ASSERT_NO_FATAL_FAILURE(run_job());
  ASSERT_NO_FATAL_FAILURE(age({.name = "", .from = -200 * 24h, .to = 165 * 24h}));
  ASSERT_NO_FATAL_FAILURE(bring_up());
  ASSERT_NO_FATAL_FAILURE(lead());
  EXPECT_TRUE(eventually([&] { return heard_ > 0; }))
      << "at once, without a renewal by the job's age, which the test's is not";
}

TEST_F(CredentialsTest, AJobGoesWhateverHasBecomeOfSecrets) {
  ASSERT_NO_FATAL_FAILURE(run_job());
  ASSERT_NO_FATAL_FAILURE(bring_up());
  ASSERT_TRUE(client_->remove(authority_, ""));
  for (const char* verb : {"GET", "POST", "PUT"})
    server_.inject({.match = std::string(verb) + " /api/v1/namespaces/default/secrets",
                    .times = 100'000,
                    .status = 403,
                    .body = R"({"kind": "Status", "message": "secrets are forbidden", "reason": "Forbidden"})"});
  ASSERT_TRUE(client_->remove({kBspJob, "default", "lbm"}, ""));
  ASSERT_NO_FATAL_FAILURE(lead());
  EXPECT_TRUE(eventually([&] { return job().empty(); })) << job();
}

TEST_F(CredentialsTest, NoSecretOfAJobsNamespaceIsRead) {
  ASSERT_NO_FATAL_FAILURE(run_job());
  ASSERT_NO_FATAL_FAILURE(bring_up());
  ASSERT_NO_FATAL_FAILURE(lead());
  ASSERT_TRUE(eventually([&] { return heard_ > 0; }));
  const std::string name = "lbm-" + uid_.substr(0, 8);
  EXPECT_EQ(server_.requests("GET /api/v1/namespaces/default/secrets/" + name), 0);
}

}  // namespace
}  // namespace bsp::controller
