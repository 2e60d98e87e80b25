// PodGroups of Kubernetes's own scheduler, where an API server serves the versions of 1.36, of 1.37, or none of them.
#include "operator/reconcile/kernel/start/gang.h"
#include "operator/reconcile/shell/job/pod_group_keeper.h"
#include "tests/unit/kube/world.h"

namespace bsp::controller {
namespace {

using kube::Object;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Versions = std::vector<std::string>;

class PodGroupVersions : public kube_test::World {
 protected:
  void SetUp() override {
    if (is_real()) GTEST_SKIP() << "a real one serves its own";
    client_ = open();
  }
  void serve(const Versions& versions) {
    Object served = Object::array();
    const Object any = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
    for (const std::string& version : versions)
      served.push_back({{"name", version},
                        {"served", true},
                        {"storage", version == versions.front()},
                        {"schema", {{"openAPIV3Schema", {{"type", "object"}, {"properties", {{"spec", any}}}}}}}});
    ASSERT_TRUE(client_->create(
        {{"apiVersion", "apiextensions.k8s.io/v1"},
         {"kind", "CustomResourceDefinition"},
         {"metadata", {{"name", "podgroups.scheduling.k8s.io"}}},
         {"spec",
          {{"group", "scheduling.k8s.io"},
           {"scope", "Namespaced"},
           {"names",
            {{"plural", "podgroups"}, {"singular", "podgroup"}, {"kind", "PodGroup"}, {"listKind", "PodGroupList"}}},
           {"versions", served}}}}));
  }
  void stop_serving() {
    ASSERT_TRUE(client_->remove(
        {{"apiextensions.k8s.io/v1", "CustomResourceDefinition"}, "", "podgroups.scheduling.k8s.io"}, ""));
  }
  static Object group() {
    crds::BspJob job;
    job.metadata.name = "job";
    job.metadata.name_space = "default";
    job.metadata.uid = "12345678-9abc";
    job.spec.ranks = 4;
    job.spec.scheduling.gang = crds::Gang::kPodGroup;
    return reconcile::make_pod_group(job, "job-12345678", 4);
  }
  std::unique_ptr<kube::ApiClient> client_;
};

TEST_F(PodGroupVersions, TheNewestThatIsServedIsWritten) {
  for (const auto& [served, written] : {std::pair(Versions{"v1alpha2"}, "scheduling.k8s.io/v1alpha2"),
                                        std::pair(Versions{"v1alpha3", "v1beta1"}, "scheduling.k8s.io/v1beta1"),
                                        std::pair(Versions{"v1alpha3"}, "scheduling.k8s.io/v1alpha3")}) {
    SCOPED_TRACE(written);
    serve(served);
    const auto client = open();
    const auto made = reconcile::create_pod_group(*client, group());
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_EQ((*made)["apiVersion"], written);
    EXPECT_EQ((*made)["spec"]["schedulingPolicy"]["gang"]["minCount"], 4);
    const auto again = reconcile::create_pod_group(*client, group());
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code, ErrorCode::kConflict) << "it exists, and no other version is tried";
    stop_serving();
  }
}

// The client has found one version, and the API server is replaced, by a newer and by an older one.
TEST_F(PodGroupVersions, AnotherApiServerIsNoticed) {
  for (const auto& [served, written] : {std::pair(Versions{"v1alpha2"}, "scheduling.k8s.io/v1alpha2"),
                                        std::pair(Versions{"v1beta1", "v1alpha3"}, "scheduling.k8s.io/v1beta1"),
                                        std::pair(Versions{"v1alpha2"}, "scheduling.k8s.io/v1alpha2")}) {
    SCOPED_TRACE(written);
    serve(served);
    EXPECT_TRUE(kube_test::eventually([&] {
      const auto made = reconcile::create_pod_group(*client_, group());
      return made && (*made)["apiVersion"] == written;
    }));
    stop_serving();
  }
}

TEST_F(PodGroupVersions, AVersionThatWasDroppedIsPassedOver) {
  serve({"v1beta1", "v1alpha3"});
  ASSERT_TRUE(reconcile::create_pod_group(*client_, group()));
  server_.inject({.match = "/v1beta1/namespaces", .status = 404, .body = "404 page not found\n"});
  const auto made = reconcile::create_pod_group(*client_, group());
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["apiVersion"], "scheduling.k8s.io/v1alpha3");
}

// An API server that starts answers so for every version that it doesn't know yet.
TEST_F(PodGroupVersions, NoAnswerIsNoReasonForAnOlderOne) {
  serve({"v1alpha2", "v1beta1"});
  auto options = kube_test::quick();
  options.api.call = std::chrono::seconds(3);
  for (const char* request : {"GET /apis/scheduling.k8s.io/v1beta1", "POST /apis/scheduling.k8s.io/v1beta1"}) {
    SCOPED_TRACE(request);
    const auto client = open(options);
    server_.inject({.match = request,
                    .times = 1'000'000,
                    .status = 503,
                    .body = R"({"kind":"Status","code":503,"message":"it starts, please retry"})"});
    const auto made = reconcile::create_pod_group(*client, group());
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message, AnyOf(HasSubstr("it starts, please retry"), HasSubstr("timed out")))
        << "the deadline may cut an attempt short";
    EXPECT_FALSE(reconcile::is_unserved(made.error()));
    EXPECT_EQ(server_.requests("v1alpha2"), 0);
    server_.clear_faults();
  }
  const auto made = reconcile::create_pod_group(*client_, group());
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ((*made)["apiVersion"], "scheduling.k8s.io/v1beta1");
}

TEST_F(PodGroupVersions, WithoutAnyTheNewestIsNamed) {
  const auto made = reconcile::create_pod_group(*client_, group());
  ASSERT_FALSE(made);
  EXPECT_TRUE(reconcile::is_unserved(made.error()));
  EXPECT_THAT(made.error().message, HasSubstr("doesn't serve PodGroup of scheduling.k8s.io/v1beta1"));
}

}  // namespace
}  // namespace bsp::controller
