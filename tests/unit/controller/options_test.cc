// The command line of `controller` and `submit`.
#include "operator/controller/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace bsp::controller {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

TEST(Options, WithoutAnyItLooksAfterAllNamespaces) {
  const auto o = parse_options(Words{});
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->name_space, "");
  EXPECT_FALSE(o->leader_elect);
  EXPECT_TRUE(o->pods.scheduled);
  EXPECT_TRUE(o->pods.user_namespace);
  EXPECT_EQ(o->metrics_address, "0.0.0.0:8080");
}

TEST(Options, EachIsTakenInBothForms) {
  const auto o = parse_options(Words{"--namespace",
                                     "science",
                                     "--leader-elect",
                                     "--metrics-address=:9000",
                                     "--health-address",
                                     "0",
                                     "--workers=2",
                                     "--runtime-image",
                                     "registry.example/bsp-runtime:1",
                                     "--runtime-pull-policy=Always",
                                     "--user-namespaces=false",
                                     "--lease-name",
                                     "mine",
                                     "--lease-namespace=ops",
                                     "--record-directory",
                                     "/records",
                                     "--runtime-delivery=Copy",
                                     "--max-moves",
                                     "8",
                                     "--max-moves-per-set=3",
                                     "--target-timeout",
                                     "300"});
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->name_space, "science");
  EXPECT_TRUE(o->leader_elect);
  EXPECT_EQ(o->metrics_address, "0.0.0.0:9000");
  EXPECT_EQ(o->health_address, "");
  EXPECT_EQ(o->workers, 2u);
  EXPECT_EQ(o->pods.runtime_image, "registry.example/bsp-runtime:1");
  EXPECT_EQ(o->pods.pull_policy, "Always");
  EXPECT_FALSE(o->pods.user_namespace);
  EXPECT_EQ(o->lease.name, "mine");
  EXPECT_EQ(o->lease.name_space, "ops");
  EXPECT_EQ(o->record_directory, "/records");
  EXPECT_EQ(o->pods.delivery, reconcile::RuntimeDelivery::kCopy);
  EXPECT_EQ(o->caps.in_cluster, 8u);
  EXPECT_EQ(o->caps.into_set, 3u);
  EXPECT_EQ(o->target_timeout_seconds, 300u);
  EXPECT_EQ(parse_options(Words{"--namespace=all"})->name_space, "");
}

TEST(Options, WhatIsWrongIsNamedWithTheRemedy) {
  for (const auto& [words, what] :
       {std::pair{Words{"--leader-elct"}, "did you mean --leader-elect?"},
        {Words{"--kubeconfig"}, "--kubeconfig needs a value"},
        {Words{"--workers", "0"}, "--workers: \"0\" is a number from 1 to 64"},
        {Words{"--workers", "2x"}, "--workers"},
        {Words{"--metrics-address", "8080"}, "HOST:PORT"},
        {Words{"--metrics-address", "a:99999"}, "HOST:PORT"},
        {Words{"--metrics-address", "[::]:80"}, "HOST:PORT"},
        {Words{"--metrics-address", ":1", "--health-address", "0.0.0.0:1"}, "different ports"},
        {Words{"--runtime-pull-policy", "Sometimes"}, "Always, IfNotPresent or Never"},
        {Words{"--runtime-delivery", "Magic"}, "ImageVolume or Copy"},
        {Words{"--target-timeout=0"}, "from 1 to 86400"},
        {Words{"--user-namespaces=maybe"}, "true or false"},
        {Words{"job.yaml"}, "what is job.yaml for?"}}) {
    const auto o = parse_options(words);
    ASSERT_FALSE(o) << words[0];
    EXPECT_EQ(o.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(o.error().message, HasSubstr(what));
  }
}

// The chart gives no option that this program does not know.
TEST(Options, OfTheChartAreKnown) {
  std::ifstream chart(BSP_SOURCE_DIR "/charts/bsp-operator/templates/deployment.yaml");
  std::string line;
  int options = 0;
  while (std::getline(chart, line)) {
    const std::size_t at = line.find("- --");
    if (at == std::string::npos) continue;
    ++options;
    const std::string name = line.substr(at + 2, line.find_first_of("=", at) - at - 2);
    const auto o = parse_options(Words{name + "=?"});
    EXPECT_TRUE(o || o.error().message.find("unknown option") == std::string::npos) << name;
  }
  EXPECT_GE(options, 10);
}

TEST(SubmitOptions, NeedAFileAndNoDeletionWithoutWaiting) {
  const auto o = parse_submit_options(Words{"-f", "job.yaml", "--wait", "--delete", "--timeout=30"});
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->file, "job.yaml");
  EXPECT_EQ(o->timeout_seconds, 30u);
  EXPECT_TRUE(o->wait && o->remove);
  EXPECT_THAT(parse_submit_options(Words{}).error().message, HasSubstr("-f is missing"));
  EXPECT_THAT(parse_submit_options(Words{"-f", "x", "--delete"}).error().message,
              HasSubstr("--delete goes with --wait"));
}

}  // namespace
}  // namespace bsp::controller
