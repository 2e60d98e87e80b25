// Calls that hang, as behind an admission webhook that does not answer: their job waits, and no other does.
#include "base/json/fields.h"
#include "fake_ranks.h"
#include "install_crds.h"
#include "operator/controller/controller.h"
#include "operator/kinds.h"
#include "tests/unit/kube/world.h"

namespace bsp::controller {
namespace {

using kube_test::eventually;
using kube_test::Fault;
using nlohmann::json;

constexpr const char* kPolicies = "PUT /apis/networking.k8s.io/v1/namespaces/b/networkpolicies";

Options with_short_targets() {
  Options options;
  options.health_address = "";
  options.target_timeout_seconds = 86'400;  // the wave stays where it is
  return options;
}

class SlowWebhookTest : public kube_test::World {
 protected:
  void SetUp() override {
    if (is_real()) GTEST_SKIP() << "needs a server to which nodes can be added";
    client_ = open();
    ASSERT_NO_FATAL_FAILURE(install_crds(*client_));
    for (const char* name : {"slow-1", "fast-1"}) {
      json node = {{"apiVersion", "v1"},
                   {"kind", "Node"},
                   {"metadata", {{"name", name}, {"labels", {{"pool", std::string(name).substr(0, 4)}}}}}};
      ASSERT_TRUE(client_->create(node));
      node["status"] = {{"allocatable", {{"cpu", "1000"}, {"memory", "1000Gi"}, {"pods", "1000"}}},
                        {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}};
      ASSERT_TRUE(client_->update_status(node));
    }
  }
  void TearDown() override {
    server_.clear_faults();
    server_.release();
  }

  void create_job(const std::string& name_space, const std::string& name) {
    const json container = {{"name", "app"},
                            {"image", "localhost/x"},
                            {"command", {"solver"}},
                            {"resources", {{"requests", {{"cpu", "500m"}}}}}};
    ASSERT_TRUE(client_->create({{"apiVersion", "migbsp.io/v1alpha1"},
                                 {"kind", "BSPJob"},
                                 {"metadata", {{"name", name}, {"namespace", name_space}}},
                                 {"spec",
                                  {{"ranks", 2},
                                   {"ranksPerPod", 1},
                                   {"sets", {{"label", "pool"}, {"names", {"slow", "fast"}}}},
                                   {"rescheduling", {{"mode", "Off"}}},
                                   {"template", {{"spec", {{"containers", json::array({container})}}}}}}}}));
  }
  std::string phase(const std::string& name_space, const std::string& name) {
    const auto job = client_->get({kBspJob, name_space, name});
    return job ? text_at(part_at(*job, "status"), "phase") : "";
  }
  static std::string node_of(const std::string& set, std::uint32_t /*rank*/) { return set + "-1"; }
  void run_job(FakeRanks& ranks, const std::string& name_space) {
    create_job(name_space, "moving");
    ASSERT_TRUE(eventually([&] {
      ranks.bring_up(node_of);
      return phase(name_space, "moving") == "Running";
    }));
  }
  void ask_for_move(const std::string& name_space) {
    ASSERT_TRUE(client_->create({{"apiVersion", "migbsp.io/v1alpha1"},
                                 {"kind", "RankMigration"},
                                 {"metadata", {{"name", "m"}, {"namespace", name_space}}},
                                 {"spec", {{"job", "moving"}, {"rank", 0}, {"targetSet", "fast"}}}}));
  }
  // A job whose pods are up and whose rank 0 is to move; its target is asked to receive for as long as the test likes.
  void begin_wave(FakeRanks& ranks, const std::string& name_space) {
    ASSERT_NO_FATAL_FAILURE(run_job(ranks, name_space));
    ASSERT_NO_FATAL_FAILURE(ask_for_move(name_space));
    ASSERT_TRUE(eventually([&] {
      ranks.bring_up(node_of);
      return ranks.asked(wire::kReceive) > 0;
    })) << phase(name_space, "moving");
  }
  // A hundred jobs of namespace a, of which every call of this kind hangs.
  void hang(const std::string& call, int until_so_many) {
    server_.inject({.match = call, .what = Fault::kStall, .times = 1'000'000, .after = 0});
    for (int i = 0; i < 100; ++i) create_job("a", "job-" + std::to_string(i));
    ASSERT_TRUE(server_.wait_for_requests(call, until_so_many));
  }

  bool wave_goes_on(FakeRanks& ranks) {
    const std::uint64_t before = ranks.asked(wire::kReceive);
    return eventually([&] { return ranks.asked(wire::kReceive) >= before + 20; }, std::chrono::seconds(20));
  }
  bool move_begins(FakeRanks& ranks) {
    const auto target_is_asked = [&] {
      ranks.bring_up(node_of);
      return ranks.asked(wire::kReceive) >= 20;
    };
    return eventually(target_is_asked, std::chrono::seconds(20));
  }
  // `leader_` takes over from one that did `first`, and no write of the job's NetworkPolicy is answered any more.
  void change_leader(const std::function<void()>& first) {
    Options options = with_short_targets();
    options.isolate_jobs = {{"app", "bsp-operator"}};
    {
      const auto before = Controller::start(options, config());
      ASSERT_TRUE(before);
      ASSERT_NO_FATAL_FAILURE(first());
    }
    server_.inject({.match = kPolicies, .what = Fault::kStall, .times = 1'000'000, .after = 0});
    auto started = Controller::start(options, config());
    ASSERT_TRUE(started);
    leader_ = std::move(*started);
  }

  std::unique_ptr<kube::ApiClient> client_;
  std::unique_ptr<Controller> leader_;
};

TEST_F(SlowWebhookTest, JobsInAWaveAndJobsOfOthersGoOnWhileEveryPodOfOneNamespaceHangs) {
  const auto controller = Controller::start(with_short_targets(), config());
  ASSERT_TRUE(controller);
  FakeRanks ranks(*client_, {.name_space = "b"});
  ASSERT_NO_FATAL_FAILURE(begin_wave(ranks, "b"));
  ASSERT_NO_FATAL_FAILURE(hang("POST /api/v1/namespaces/a/pods", 4));
  EXPECT_TRUE(wave_goes_on(ranks));
  create_job("c", "ordinary");
  EXPECT_TRUE(eventually([&] { return client_->list(kPod, "c").value().size() == 2; }, std::chrono::seconds(20)));
}

TEST_F(SlowWebhookTest, TheSameWhereEveryStatusOfOneNamespaceHangs) {
  const auto controller = Controller::start(with_short_targets(), config());
  ASSERT_TRUE(controller);
  FakeRanks ranks(*client_, {.name_space = "b"});
  ASSERT_NO_FATAL_FAILURE(begin_wave(ranks, "b"));
  ASSERT_NO_FATAL_FAILURE(hang("PUT /apis/migbsp.io/v1alpha1/namespaces/a/bspjobs/", 4));
  EXPECT_TRUE(wave_goes_on(ranks));
  create_job("c", "ordinary");
  EXPECT_TRUE(eventually([&] { return client_->list(kPod, "c").value().size() == 2; }, std::chrono::seconds(20)));
  EXPECT_EQ(phase("a", "job-0"), "") << "its calls hang";
}

// More moving jobs than there are workers: what hangs is the creation of each one's target.
TEST_F(SlowWebhookTest, AWaveGoesOnWhileTheTargetsOfManyNamespacesHang) {
  Options options = with_short_targets();
  options.workers = 1;  // of a namespace
  const auto controller = Controller::start(options, config());
  ASSERT_TRUE(controller);
  std::vector<std::unique_ptr<FakeRanks>> stuck;
  for (unsigned i = 0; i < 2 * reconcile::Shell::kNamespaces + 1; ++i) {
    const std::string name_space = std::format("s{}", i);
    stuck.push_back(std::make_unique<FakeRanks>(*client_, FakeRanksOptions{.name_space = name_space}));
    ASSERT_NO_FATAL_FAILURE(run_job(*stuck.back(), name_space));
    const std::string creation = std::format("POST /api/v1/namespaces/{}/pods", name_space);
    server_.inject({.match = creation, .what = Fault::kStall, .times = 1'000'000, .after = 0});
  }
  FakeRanks ranks(*client_, {.name_space = "z"});
  ASSERT_NO_FATAL_FAILURE(run_job(ranks, "z"));
  for (unsigned i = 0; i < stuck.size(); ++i) {
    const std::string name_space = std::format("s{}", i);
    ASSERT_NO_FATAL_FAILURE(ask_for_move(name_space));
    EXPECT_TRUE(eventually([&] { return phase(name_space, "moving") == "Migrating"; }, std::chrono::seconds(20)))
        << name_space;
  }
  ASSERT_NO_FATAL_FAILURE(ask_for_move("z"));
  EXPECT_TRUE(move_begins(ranks));
  for (const auto& one : stuck)
    EXPECT_EQ(one->asked(wire::kArmGate), 0u) << "no rank stops for a target that is not there";
}

// A new leader writes every job's NetworkPolicy again, also in a wave.
TEST_F(SlowWebhookTest, AWaveGoesOnUnderANewLeaderWhileItsNetworkPolicyHangs) {
  FakeRanks ranks(*client_, {.name_space = "b"});
  ASSERT_NO_FATAL_FAILURE(change_leader([&] { begin_wave(ranks, "b"); }));
  EXPECT_TRUE(wave_goes_on(ranks));
}

TEST_F(SlowWebhookTest, AMoveBeginsUnderANewLeaderWhileTheJobsNetworkPolicyHangs) {
  FakeRanks ranks(*client_, {.name_space = "b"});
  ASSERT_NO_FATAL_FAILURE(change_leader([&] { run_job(ranks, "b"); }));
  EXPECT_TRUE(server_.wait_for_requests(kPolicies, 1));
  ASSERT_NO_FATAL_FAILURE(ask_for_move("b"));
  EXPECT_TRUE(move_begins(ranks));
}

TEST_F(SlowWebhookTest, AJobStartsAndMovesWhileItsEventsHang) {
  const auto controller = Controller::start(with_short_targets(), config());
  ASSERT_TRUE(controller);
  FakeRanks ranks(*client_, {.name_space = "b"});
  const std::string events = "POST /apis/events.k8s.io/v1/namespaces/b/events";
  server_.inject({.match = events, .what = Fault::kStall, .times = 1'000'000, .after = 0});
  ASSERT_NO_FATAL_FAILURE(run_job(ranks, "b"));
  ASSERT_NO_FATAL_FAILURE(ask_for_move("b"));
  EXPECT_TRUE(move_begins(ranks));
  EXPECT_TRUE(server_.wait_for_requests(events, 1)) << "they hang";
}

}  // namespace
}  // namespace bsp::controller
