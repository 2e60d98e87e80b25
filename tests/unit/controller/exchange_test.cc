// Three operators, each with a namespace of its own, that want the same slot: whole controllers over an API server,
// which announce their moves to each other over real links. The test plays scheduler and sidecars as far as it takes to
// begin a move.
#include <unistd.h>

#include <filesystem>
#include <format>
#include <fstream>

#include "base/net/address.h"
#include "base/net/pki.h"
#include "operator/controller/controller.h"
#include "operator/kinds.h"
#include "tests/unit/controller/http_get.h"
#include "tests/unit/controller/install_crds.h"
#include "tests/unit/kube/world.h"

namespace bsp::controller {
namespace {

using exchange::Mechanism;
using kube_test::eventually;
using nlohmann::json;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

const std::vector<std::string> kSpaces{"a", "b", "c"};

class ExchangeTest : public kube_test::World, public testing::WithParamInterface<Mechanism> {
 protected:
  void SetUp() override {
    if (is_real()) GTEST_SKIP() << "needs a server to which nodes can be added";
    client_ = open();
    ASSERT_NO_FATAL_FAILURE(install_crds(*client_));
    char path[] = "/tmp/bsp-exchange-test-XXXXXX";
    root_ = ::mkdtemp(path);
    const Time now = SystemClock{}.now();
    const net::PemPair ca = net::create_ca("deciders", now - 1h, now + 2h).value();
    for (const std::string& space : kSpaces) {
      members_[space] = std::format("127.0.0.1:{}", free_port());
      const auto own = net::issue_certificate(
          ca, {.identity = space, .dns_names = {}, .addresses = {}, .not_before = now - 1h, .not_after = now + 1h});
      std::filesystem::create_directory(root_ + "/" + space);
      for (const auto& [name, text] :
           {std::pair{"ca.pem", ca.certificate}, {"cert.pem", own->certificate}, {"key.pem", own->key}})
        std::ofstream(root_ + "/" + space + "/" + name) << text;
    }
    add_node("slow-1", "slow", "8");
    add_node("fast-1", "fast", "700m");  // one rank's
  }
  void TearDown() override {
    controllers_.clear();
    if (!root_.empty()) std::filesystem::remove_all(root_);
  }

  void add_node(const std::string& name, const std::string& set, const char* cpu) {
    json node = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}, {"labels", {{"pool", set}}}}}};
    node["spec"] = json::object();
    ASSERT_TRUE(client_->create(node));
    node["status"] = {{"allocatable", {{"cpu", cpu}, {"memory", "4Gi"}, {"pods", "110"}}},
                      {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
    ASSERT_TRUE(client_->update_status(node));
  }

  Options options(const std::string& space) const {
    Options o;
    o.name_space = space;
    o.metrics_address = o.health_address = "";
    o.exchange = {.mechanism = GetParam(),
                  .members = members_,
                  .listen = members_.at(space),
                  .tls_directory = root_ + "/" + space,
                  .lost_after = 1s};
    return o;
  }
  void start(const std::string& space) {
    auto controller = Controller::start(options(space), config());
    ASSERT_TRUE(controller) << controller.error().message;
    controllers_[space] = std::move(*controller);
  }

  // A job of one rank that runs on slow-1, as far as its operator knows.
  void run_job(const std::string& space) {
    const json rank = {{"name", "app"},
                       {"image", "localhost/x"},
                       {"command", {"solver"}},
                       {"resources", {{"requests", {{"cpu", "500m"}}}}}};
    ASSERT_TRUE(client_->create({{"apiVersion", "migbsp.io/v1alpha1"},
                                 {"kind", "BSPJob"},
                                 {"metadata", {{"name", "lbm"}, {"namespace", space}}},
                                 {"spec",
                                  {{"ranks", 1},
                                   {"sets", {{"label", "pool"}, {"names", {"slow", "fast"}}}},
                                   {"template", {{"spec", {{"containers", {rank}}}}}}}}}));
    bind(space, "lbm-r0-g0", "slow-1");
    ASSERT_TRUE(eventually([&] {
      auto job = crds::bsp_job_from_json(*client_->get({kBspJob, space, "lbm"}));
      if (!job || job->status.ranks.empty()) return false;
      const json pod = client_->get({kPod, space, "lbm-r0-g0"}).value();
      job->status.phase = crds::JobPhase::kRunning;
      job->status.epoch = wire::EpochPlan{
          .epoch = 0,
          .pmix_namespace = "lbm-e0",
          .sets = {"slow", "fast"},
          .members = {
              {.rank = 0, .pod = "lbm-r0-g0", .pod_uid = pod["metadata"]["uid"], .address = "127.0.0.1:1", .set = 0}}};
      job->status.epochs_used = 1;
      json next;
      to_json(next, *job);
      return client_->update_status(next).has_value();
    }));
  }
  // As the scheduler does.
  void bind(const std::string& space, const std::string& pod, const std::string& node) {
    ASSERT_TRUE(eventually([&] {
      auto object = client_->get({kPod, space, pod});
      if (!object) return false;
      (*object)["spec"]["nodeName"] = node;
      return client_->update(*object).has_value();
    })) << pod;
  }
  void want_to_move(const std::string& space, const std::string& name) {
    ASSERT_TRUE(client_->create({{"apiVersion", "migbsp.io/v1alpha1"},
                                 {"kind", "RankMigration"},
                                 {"metadata", {{"name", name}, {"namespace", space}}},
                                 {"spec", {{"job", "lbm"}, {"rank", 0}, {"targetSet", "fast"}}}}));
  }
  bool moves(const std::string& space) {
    const auto job = client_->get({kBspJob, space, "lbm"});
    return job && job->at("status").value("phase", "") == "Migrating";
  }
  std::string refusal(const std::string& space, const std::string& name) {
    const auto migration = client_->get({kRankMigration, space, name});
    return migration ? migration->value("status", json::object()).value("reason", "") : "";
  }
  bool is_answered(const std::string& space, const std::string& name) {
    return eventually([&] { return moves(space) || refusal(space, name) == "NoCapacity"; });
  }
  std::string target_node(const std::string& space) {
    const auto job = crds::bsp_job_from_json(*client_->get({kBspJob, space, "lbm"}));
    return job->status.wave_state.at("moves").at(0).value("targetNode", "");
  }

  std::unique_ptr<kube::ApiClient> client_;
  std::string root_;
  std::map<std::string, std::string> members_;
  std::map<std::string, std::unique_ptr<Controller>> controllers_;
};

INSTANTIATE_TEST_SUITE_P(Each, ExchangeTest,
                         testing::Values(Mechanism::kNaive, Mechanism::kIncrements, Mechanism::kSnapshot),
                         [](const auto& mechanism) { return std::string(exchange::to_string(mechanism.param)); });

TEST_P(ExchangeTest, OperatorsThatWantTheSameSlotAndOneThatDies) {
  for (const std::string& space : kSpaces) start(space);
  for (const std::string& space : kSpaces) run_job(space);
  std::string winner = "a";
  if (GetParam() == Mechanism::kSnapshot) {
    for (const std::string& space : kSpaces) want_to_move(space, "m");
    int movers = 0;
    for (const std::string& space : kSpaces) {
      ASSERT_TRUE(is_answered(space, "m")) << space;
      if (moves(space)) ++movers, winner = space;
    }
    EXPECT_EQ(movers, 1);
  } else {
    want_to_move(winner, "m");
    ASSERT_TRUE(is_answered(winner, "m"));
    EXPECT_TRUE(moves(winner));
  }
  EXPECT_EQ(target_node(winner), "fast-1");
  EXPECT_FALSE(client_->get({kConfigMap, "default", "bsp-operator-reservations"})) << "no object holds reservations";
  std::vector<std::string> others;
  for (const std::string& space : kSpaces)
    if (space != winner) others.push_back(space);
  if (GetParam() == Mechanism::kIncrements) {  // one after the other: all have heard of it
    want_to_move(others[0], "m");
    ASSERT_TRUE(is_answered(others[0], "m"));
    EXPECT_FALSE(moves(others[0]));
  }

  // It dies in the middle of its move. The others wait for it, then go on, and take no slot that it has.
  bind(winner, "lbm-r0-g1", "fast-1");
  controllers_.erase(winner);
  add_node("fast-2", "fast", "700m");
  if (GetParam() != Mechanism::kNaive) {
    ASSERT_TRUE(eventually([&, number = 1]() mutable {
      const std::string name = std::format("n{}", number++);  // the node may not have been seen yet
      want_to_move(others[0], name);
      return is_answered(others[0], name) && moves(others[0]);
    }));
    EXPECT_EQ(target_node(others[0]), "fast-2");
    bind(others[0], "lbm-r0-g1", "fast-2");
  }
  // It is back: it sees what it holds, and all hear of it.
  start(winner);
  if (GetParam() == Mechanism::kNaive) return;
  want_to_move(others[1], "last");
  ASSERT_TRUE(is_answered(others[1], "last"));
  EXPECT_FALSE(moves(others[1]));
  EXPECT_TRUE(moves(winner)) << "its wave goes on";
}

TEST_P(ExchangeTest, ALeaderThatCannotListenGivesTheLeaseUpAndTriesAgain) {
  Options o = options("a");
  o.leader_elect = true;
  o.lease = {.name_space = "default", .name = "lease", .identity = "first", .rest = 1s};
  Result<Fd> taken = net::listen_on(net::parse_address(o.exchange.listen).value());
  ASSERT_TRUE(taken);
  const auto controller = std::move(Controller::start(o, config())).value();
  const auto holder = [&] {
    const auto lease = client_->get({{"coordination.k8s.io/v1", "Lease"}, "default", "lease"});
    return lease ? (*lease)["spec"]["holderIdentity"].get<std::string>() : "no Lease yet";
  };
  ASSERT_TRUE(eventually([&] { return holder().empty(); })) << "another replica may lead";
  EXPECT_TRUE(eventually([&] { return controller->readiness().status == 503; }));
  EXPECT_THAT(controller->readiness().text, HasSubstr("can't lead: --exchange-listen " + o.exchange.listen));
  EXPECT_THAT(controller->metrics().text, HasSubstr("bsp_operator_leader 0"));
  taken->reset();
  EXPECT_TRUE(eventually([&] { return controller->readiness().text == "leader\n"; })) << controller->readiness().text;
  EXPECT_EQ(holder(), "first");
}

TEST_P(ExchangeTest, ADirectoryWithoutCertificatesIsNamed) {
  Options o = options("a");
  o.exchange.tls_directory = "/nowhere";
  const auto controller = Controller::start(o, config());
  ASSERT_FALSE(controller);
  EXPECT_THAT(controller.error().message, HasSubstr("--exchange-tls /nowhere"));
  o = options("a");
  o.exchange.listen = "192.0.2.1:7700";
  const auto elsewhere = Controller::start(o, config());
  ASSERT_FALSE(elsewhere);
  EXPECT_THAT(elsewhere.error().message, HasSubstr("--exchange-listen 192.0.2.1:7700"));
}

}  // namespace
}  // namespace bsp::controller
