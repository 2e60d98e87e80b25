// The command line of `controller` and `submit`.
#include "operator/controller/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

namespace bsp::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Words = std::vector<std::string>;

TEST(Options, DefaultToAllNamespaces) {
  const auto o = parse_options(Words{});
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->name_space, "");
  EXPECT_FALSE(o->leader_elect);
  EXPECT_TRUE(o->pods.scheduled);
  EXPECT_TRUE(o->pods.user_namespace);
  EXPECT_EQ(o->metrics_address, "") << "metrics are off by default";
  EXPECT_EQ(o->health_address, "[::]:8081") << "the kubelet may reach it at an address of either family";
  EXPECT_EQ(o->exchange.listen, "[::]:7700");
  EXPECT_FALSE(o->exchange.mechanism);
  EXPECT_TRUE(parse_options(Words{"--exchange=Reservations"}));
}

TEST(Options, EachIsTakenInBothForms) {
  const auto o = parse_options(Words{"--namespace",
                                     "science",
                                     "--leader-elect",
                                     "--metrics-address=:9000",
                                     "--health-address",
                                     "0",
                                     "--evictions-address=:9443",
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
                                     "--sidecar-resources={\"requests\":{\"cpu\":\"5m\"}}",
                                     "--max-moves",
                                     "8",
                                     "--max-moves-per-set=3",
                                     "--instance-prices=m7i.4xlarge=0.81,c7g.large=0.07",
                                     "--kueue",
                                     "--start-timeout=1800",
                                     "--target-timeout",
                                     "300",
                                     "--exchange",
                                     "Snapshot",
                                     "--exchange-members=science=10.0.0.7:7700,maths=bsp-maths.ops:7701",
                                     "--exchange-listen=:7701",
                                     "--exchange-tls",
                                     "/tls"});
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->name_space, "science");
  EXPECT_TRUE(o->leader_elect);
  EXPECT_EQ(o->metrics_address, "[::]:9000");
  EXPECT_EQ(o->health_address, "");
  EXPECT_EQ(o->evictions_address, "[::]:9443");
  EXPECT_EQ(o->workers, 2u);
  EXPECT_EQ(o->pods.runtime_image, "registry.example/bsp-runtime:1");
  EXPECT_EQ(o->pods.pull_policy, "Always");
  EXPECT_FALSE(o->pods.user_namespace);
  EXPECT_EQ(o->lease.name, "mine");
  EXPECT_EQ(o->lease.name_space, "ops");
  EXPECT_EQ(o->record_directory, "/records");
  EXPECT_EQ(o->pods.delivery, reconcile::RuntimeDelivery::kCopy);
  EXPECT_EQ(o->sidecar_resources, (nlohmann::json{{"requests", {{"cpu", "5m"}}}}));
  EXPECT_EQ(o->caps.in_cluster, 8u);
  EXPECT_EQ(o->caps.into_set, 3u);
  EXPECT_THAT(o->instance_prices, ElementsAre(Pair("c7g.large", 0.07), Pair("m7i.4xlarge", 0.81)));
  EXPECT_TRUE(o->kueue);
  EXPECT_EQ(o->start_timeout_seconds, 1800u);
  EXPECT_EQ(o->target_timeout_seconds, 300u);
  EXPECT_EQ(o->exchange.mechanism, exchange::Mechanism::kSnapshot);
  EXPECT_THAT(o->exchange.members, ElementsAre(Pair("maths", "bsp-maths.ops:7701"), Pair("science", "10.0.0.7:7700")));
  EXPECT_EQ(o->exchange.listen, "[::]:7701");
  EXPECT_EQ(o->exchange.tls_directory, "/tls");
  EXPECT_EQ(parse_options(Words{"--namespace=all"})->name_space, "");
}

TEST(Options, WhatIsWrongIsNamedWithTheRemedy) {
  for (const auto& [words, what] :
       {std::pair{Words{"--leader-elct"}, "did you mean --leader-elect?"},
        {Words{"--kubeconfig"}, "--kubeconfig needs a value"},
        {Words{"--workers", "0"}, "--workers \"0\": must be a number from 1 to 64"},
        {Words{"--workers", "2x"}, "--workers"},
        {Words{"--metrics-address", "8080"}, "IP:PORT"},
        {Words{"--metrics-address", "10.0.0.7:99999"}, "IP:PORT"},
        {Words{"--metrics-address", "10.0.0.7:0"}, "IP:PORT"},
        {Words{"--metrics-address", "pod:80"}, "IP:PORT"},
        {Words{"--metrics-address", "fd00::7:80"}, "[IP]:PORT for IPv6"},
        {Words{"--metrics-address", "[fd00::7]"}, "[IP]:PORT for IPv6"},
        {Words{"--metrics-address", ":1", "--health-address", "0.0.0.0:1"}, "different ports"},
        {Words{"--evictions-address", ":1", "--health-address", "0.0.0.0:1"}, "different ports"},
        {Words{"--metrics-address", "[::]:1", "--health-address", "127.0.0.1:1"}, "different ports"},
        {Words{"--evictions-address", "9443"}, "IP:PORT"},
        {Words{"--instance-prices", "a=free"}, "\"a=free\" must be NAME=PRICE"},
        {Words{"--instance-prices", "a=0"}, "a price above 0"},
        {Words{"--instance-prices", "a=1,a=2"}, "each name once"},
        {Words{"--instance-prices", "a=inf"}, "a price above 0"},
        {Words{"--runtime-pull-policy", "Sometimes"}, "Always, IfNotPresent or Never"},
        {Words{"--runtime-delivery", "Magic"}, "ImageVolume or Copy"},
        {Words{"--sidecar-resources=5m"}, "must be an object such as"},
        {Words{"--sidecar-resources={\"request\":{}}"}, "did you mean requests?"},
        {Words{"--start-timeout=0"}, "from 1 to 86400"},
        {Words{"--target-timeout=0"}, "from 1 to 86400"},
        {Words{"--user-namespaces=maybe"}, "true or false"},
        {Words{"job.yaml"}, "unexpected argument \"job.yaml\""}}) {
    const auto o = parse_options(words);
    ASSERT_FALSE(o) << words[0];
    EXPECT_EQ(o.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(o.error().message, HasSubstr(what));
  }
}

TEST(Options, AddressesMayBeOfEitherFamily) {
  for (const char* address : {"10.0.0.7:80", "0.0.0.0:80", "[::]:80", "[fd00::7]:80"}) {
    const auto o = parse_options(Words{"--metrics-address", address});
    ASSERT_TRUE(o) << o.error().message;
    EXPECT_EQ(o->metrics_address, address);
  }
  EXPECT_TRUE(parse_options(Words{"--metrics-address=10.0.0.7:80", "--health-address=10.0.0.8:80"}));
}

TEST(Options, OfAnExchangeBelongTogether) {
  const Words good{"--namespace=a", "--exchange=Increments", "--exchange-members=a=10.0.0.1:1,b=10.0.0.2:1",
                   "--exchange-tls=/tls"};
  ASSERT_TRUE(parse_options(good));
  const auto with = [&](std::size_t at, const char* word) {
    Words words = good;
    if (word)
      words[at] = word;
    else
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
    const auto o = parse_options(words);
    return o ? std::string("accepted") : o.error().message;
  };
  EXPECT_THAT(with(0, nullptr), HasSubstr("add --namespace"));
  EXPECT_THAT(with(0, "--namespace=c"), HasSubstr("--exchange-members lacks c, which is this operator's --namespace"));
  EXPECT_THAT(with(1, nullptr), HasSubstr("go with --exchange Naive, Increments or Snapshot"));
  EXPECT_THAT(with(1, "--exchange=Gossip"), HasSubstr("must be Reservations, Naive, Increments or Snapshot"));
  EXPECT_THAT(with(2, nullptr), HasSubstr("--exchange Increments needs --exchange-members"));
  EXPECT_THAT(with(2, "--exchange-members=a=10.0.0.1:1"), HasSubstr("names this operator only"));
  EXPECT_THAT(with(2, "--exchange-members=a=x:1,a=y:1"),
              HasSubstr("\"a=y:1\" must be NAMESPACE=HOST:PORT with each namespace once"));
  for (const char* bad : {"a", "a=x", "=x:1", "a=:1", "a=x:", "a=x:1,,b=y:1", "a=fd00::7:1"})
    EXPECT_THAT(with(2, (std::string("--exchange-members=") + bad).c_str()), HasSubstr("NAMESPACE=HOST:PORT")) << bad;
  EXPECT_EQ(with(2, "--exchange-members=a=[fd00::1]:1,b=10.0.0.2:1"), "accepted");
  EXPECT_THAT(with(3, nullptr), HasSubstr("--exchange Increments needs --exchange-tls DIR with ca.pem"));
  EXPECT_THAT(with(3, "--exchange-listen=0"), HasSubstr("needs --exchange-tls"));
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
    EXPECT_EQ(line.find("0.0.0.0"), std::string::npos) << name << " must listen in clusters of either family";
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
