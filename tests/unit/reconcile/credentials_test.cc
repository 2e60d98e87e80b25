// Certificates of a job as operators and sidecars with other clocks see them, over real links, and the Secret they come from.
#include "operator/reconcile/shell/credentials.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/core/base64.h"
#include "crds/names.h"
#include "operator/kube/fields.h"
#include "operator/local/store.h"
#include "operator/reconcile/kernel/network_policy.h"
#include "operator/reconcile/shell/authority.h"
#include "tests/unit/net/link_world.h"

namespace bsp::reconcile {
namespace {

using namespace std::chrono_literals;
using kube::Object;

TEST(Credentials, AreRenewedWithThreeQuartersOfTheirTimeLeft) {
  const Time made = SystemClock{}.now();
  EXPECT_FALSE(must_renew(made, made));
  EXPECT_FALSE(must_renew(made, made + 90 * 24h));
  EXPECT_TRUE(must_renew(made, made + 92 * 24h));
  EXPECT_TRUE(must_renew(made, made + 400 * 24h));
  EXPECT_FALSE(must_renew(made, made - 5min)) << "clocks differ by that much";
  EXPECT_TRUE(must_renew(made, made - 2h)) << "not valid yet by a clock that was set back";
  const Validity valid = validity_from(made);
  EXPECT_LT(valid.from, made - 5min);
  EXPECT_GT(valid.to, made + kRenewAfter + 200 * 24h);
}

// The offset of the operator's clock from the sidecar's, which is this machine's.
class Skewed : public testing::TestWithParam<std::chrono::minutes> {};

TEST_P(Skewed, OperatorAndSidecarAuthenticateEachOther) {
  const Validity valid = validity_from(SystemClock{}.now() + GetParam());
  const net::PemPair ca = net::derive_ca(net::new_seed().value(), "bspjob-uid", valid.from, valid.to).value();
  const auto context = [&](const std::string& identity) {
    const net::PemPair own =
        net::issue_certificate(
            ca,
            {.identity = identity, .dns_names = {}, .addresses = {}, .not_before = valid.from, .not_after = valid.to})
            .value();
    return net::TlsContext::create({ca.certificate, own.certificate, own.key}).value();
  };
  net::World world(net::echo, context("job-r0-g0"));
  net::Link link(context(std::string(names::kOperatorIdentity)), {world.address(), "job-r0-g0"});
  const auto answer = link.call("status", {}, 10s);
  EXPECT_TRUE(answer) << answer.error().message;
}

INSTANTIATE_TEST_SUITE_P(Clocks, Skewed, testing::Values(-30min, -5min, 0min, 5min, 30min));

class AuthorityTest : public testing::Test {
 protected:
  AuthorityTest() {
    char path[] = "/tmp/bsp-authority-XXXXXX";
    root_ = ::mkdtemp(path);
    store_ = local::Store::open({.root = root_}).value();
  }
  ~AuthorityTest() override {
    store_.reset();
    std::filesystem::remove_all(root_);
  }
  Authority authority(std::chrono::milliseconds interval = 0ms) const {
    return Authority(*store_, "default", "authority", interval);
  }
  Object stored() { return store_->get(at_).value_or(Object::object()); }
  std::string stored_seed() {
    return base64_decode(stored().value("data", Object::object()).value("seed", "")).value_or("");
  }
  void write(Object data) {
    Object secret = {
        {"apiVersion", "v1"}, {"kind", "Secret"}, {"metadata", {{"name", "authority"}, {"namespace", "default"}}}};
    if (!data.is_null()) secret["data"] = std::move(data);
    if (!store_->create(secret)) {
      ASSERT_TRUE(store_->update(secret));
    }
  }

  const kube::Key at_{kSecret, "default", "authority"};
  std::string root_;
  std::unique_ptr<local::Store> store_;
};

TEST_F(AuthorityTest, IsCreatedOnceAndKeptByTheNextLeader) {
  Authority first = authority(), second = authority();
  const std::string seed = first.seed().value();
  EXPECT_EQ(seed.size(), net::kSeedBytes);
  EXPECT_EQ(second.seed().value(), seed);
  first.keep();
  EXPECT_EQ(stored_seed(), seed);
}

TEST_F(AuthorityTest, KnowsItsCluster) {
  Authority one = authority();
  EXPECT_THAT(one.cluster().error().message, testing::HasSubstr("namespace kube-system"));
  const auto system =
      store_->create({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "kube-system"}}}});
  ASSERT_TRUE(system) << system.error().message;
  EXPECT_EQ(one.cluster().value(), kube::metadata_text(*system, "uid"));
  ASSERT_NE(one.cluster().value(), "");
}

TEST_F(AuthorityTest, FillsTheEmptySecretOfTheChart) {
  write(nullptr);
  Authority one = authority();
  const std::string seed = one.seed().value();
  EXPECT_EQ(stored_seed(), seed);
}

TEST_F(AuthorityTest, IsReplacedIfItCannotBeRead) {
  for (const Object& data : {Object{{"seed", "no base64"}}, Object{{"seed", base64_encode("short")}},
                             Object{{"seed", ""}}, Object{{"other", "eA=="}}, Object{{"seed", 7}}, Object("text")}) {
    write(data);
    Authority one = authority();
    const auto seed = one.seed();
    ASSERT_TRUE(seed) << data;
    EXPECT_EQ(stored_seed(), *seed) << data;
  }
}

TEST_F(AuthorityTest, IsRestoredByTheLeaderThatHoldsIt) {
  Authority leader = authority();
  const std::string seed = leader.seed().value();
  ASSERT_TRUE(store_->remove(at_, ""));
  leader.keep();
  EXPECT_EQ(stored_seed(), seed);
  for (const Object& data :
       {Object{{"seed", base64_encode(std::string(net::kSeedBytes, 'x'))}}, Object{{"seed", "?"}}}) {
    write(data);
    leader.keep();
    EXPECT_EQ(stored_seed(), seed) << data;
  }
  Authority patient = authority(1h);
  ASSERT_TRUE(patient.seed());
  ASSERT_TRUE(store_->remove(at_, ""));
  patient.keep();
  EXPECT_TRUE(stored().empty()) << "not read in every reconcile";
}

TEST(NetworkPolicy, AdmitsOnlyTheJobsPodsAndTheOperator) {
  crds::BspJob job;
  job.metadata.name = "lbm";
  job.metadata.name_space = "science";
  job.metadata.uid = "3f2a9c01-7d5e";
  const Object policy = make_network_policy(job, {"bsp-system", {{"app.kubernetes.io/name", "bsp-operator"}}});
  EXPECT_EQ(policy["metadata"]["name"], "lbm-3f2a9c01");
  EXPECT_EQ(policy["metadata"]["ownerReferences"][0]["uid"], "3f2a9c01-7d5e");
  EXPECT_EQ(policy["spec"], Object::parse(R"({
    "podSelector": {"matchLabels": {"migbsp.io/job": "lbm"}},
    "policyTypes": ["Ingress"],
    "ingress": [
      {"from": [{"podSelector": {"matchLabels": {"migbsp.io/job": "lbm"}}}], "ports": [{"protocol": "TCP"}]},
      {"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "bsp-system"}},
                 "podSelector": {"matchLabels": {"app.kubernetes.io/name": "bsp-operator"}}}],
       "ports": [{"protocol": "TCP", "port": 7600}]}]})"))
      << policy["spec"].dump(1);
}

}  // namespace
}  // namespace bsp::reconcile
