// The runtime image belongs to an attempt: a process moves only to where libbspmpi.so is the same, whatever the operator
// is upgraded to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/reconcile/expectations.h"
#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {
namespace {

using crds::JobPhase;
using migrate::Phase;

constexpr const char* kOld = "reg:5000/bsp-runtime:1.0";
constexpr const char* kNew = "reg:5000/bsp-runtime:1.1";
constexpr const char* kOldDigest = "reg:5000/bsp-runtime@sha256:aaaa";

std::vector<std::string> images_of(const World& w) {
  std::vector<std::string> images;
  for (const auto& [name, pod] : w.pods) images.push_back(pod.object.at("spec").at("initContainers").at(0).at("image"));
  return images;
}

class RuntimeImage : public testing::Test {
 protected:
  RuntimeImage() {
    w.runtime_image = kOld;
    w.image_ids = {{kOld, kOldDigest}};
    w.runtimes = {{kOld, "aaaa"}, {kOldDigest, "aaaa"}, {kNew, "bbbb"}};
  }
  // The chart's value changes with the operator.
  void upgrade() {
    w.runtime_image = kNew;
    w.restart_operator();
  }
  std::string image_of(const std::string& pod) {
    return w.find(pod)->object.at("spec").at("initContainers").at(0).at("image");
  }
  World w{{.ranks = 2, .slow = 2, .fast = 2}};
};

TEST_F(RuntimeImage, OfATargetIsThatOfItsAttemptAfterAnUpgrade) {
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  EXPECT_EQ(w.job.status.runtime_image, kOldDigest);
  upgrade();
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.find("job-r0-g1") != nullptr; })) << w.trace;
  EXPECT_EQ(image_of("job-r0-g1"), kOldDigest);
  ASSERT_TRUE(w.run_until([&] { return w.migration("m").status.phase == Phase::kSucceeded; })) << w.trace;
}

TEST_F(RuntimeImage, OfTheNextAttemptIsTheOperatorsPresentOne) {
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  upgrade();
  w.end_program(0, 1, 0);
  ASSERT_TRUE(w.run_until([&] { return w.job.status.attempt == 1 && w.job.status.phase == JobPhase::kRunning; }));
  EXPECT_THAT(images_of(w), testing::Each(kNew));
  EXPECT_EQ(w.job.status.runtime_image, kNew) << "its node says no digest";
}

// Where no digest is known, an image pushed under the same name is another runtime.
TEST_F(RuntimeImage, ThatDiffersIsRefusedByNameBeforeAnyRankStops) {
  w.image_ids.clear();
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.runtimes[kOld] = "cccc";
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return crds::is_finished(w.migration("m").status.phase); })) << w.trace;
  EXPECT_EQ(w.migration("m").status.phase, Phase::kRolledBack);
  EXPECT_EQ(w.migration("m").status.reason, "RuntimeDiffers");
  EXPECT_THAT(w.migration("m").status.message, testing::HasSubstr("libbspmpi.so aaaa, and the pod has cccc"));
  EXPECT_EQ(w.job.status.epoch->epoch, 1u);
  EXPECT_EQ(w.job.status.phase, JobPhase::kRunning);
}

// By an operator of the version before, which stored none.
TEST_F(RuntimeImage, OfAJobFromBeforeIsWhatItsPodsHave) {
  w.image_ids.clear();
  ASSERT_TRUE(w.run_until(JobPhase::kRunning));
  w.job.status.runtime_image.clear();
  upgrade();
  w.migrate_by_hand("m", 0, "fast");
  ASSERT_TRUE(w.run_until([&] { return w.find("job-r0-g1") != nullptr; })) << w.trace;
  EXPECT_EQ(image_of("job-r0-g1"), kOld);
}

TEST_F(RuntimeImage, IsOneEvenIfTheOperatorIsUpgradedInMidStart) {
  w.slow_start = 5;
  w.finds_no_node = [](const PodRequest& r) { return r.rank == 1; };
  ASSERT_TRUE(w.run_until([&] { return w.find("job-r0-g0") != nullptr; }));
  w.lose_pod("job-r1-g0");
  upgrade();
  w.finds_no_node = {};
  ASSERT_TRUE(w.run_until(JobPhase::kRunning)) << w.trace;
  EXPECT_THAT(images_of(w), testing::Each(testing::AnyOf(kOld, kOldDigest)));
}

TEST(ImageByDigest, KeepsTheRepositoryUnderWhichItWasPulled) {
  const auto digest = [](const char* reference, const char* id) { return image_by_digest(reference, id); };
  EXPECT_EQ(digest(kOld, kOldDigest), kOldDigest);
  EXPECT_EQ(digest(kOld, "docker-pullable://reg:5000/bsp-runtime@sha256:aaaa"), kOldDigest);
  EXPECT_EQ(digest("bsp:1", "docker.io/library/bsp@sha256:aa"), "bsp@sha256:aa");
  EXPECT_EQ(digest("me/bsp:1", "docker.io/me/bsp@sha256:aa"), "me/bsp@sha256:aa");
  EXPECT_EQ(digest("localhost/bsp", "localhost/bsp@sha256:aa"), "localhost/bsp@sha256:aa");
  EXPECT_EQ(digest(kOldDigest, kOldDigest), kOldDigest) << "the chart names a digest already";
  EXPECT_EQ(digest(kOld, "mirror/bsp-runtime@sha256:aaaa"), kOld) << "others need not have it there";
  EXPECT_EQ(digest(kOld, "sha256:0123"), kOld) << "loaded onto the node";
  EXPECT_EQ(digest(kOld, ""), kOld);
  EXPECT_EQ(digest("localhost/bsp-runtime:dev", "podman://0123abcd"), "0123abcd");
}

}  // namespace
}  // namespace bsp::reconcile::sim
