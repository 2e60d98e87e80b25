// An API server on a local port and its client: the in-memory one, or (BSP_KUBE_TEST_KUBECONFIG) a real one behind the
// same faults. The real one must run without controllers, which would create their own objects beside the tests'.
// apiserver.sh starts such a server.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "api_server.h"
#include "forward.h"
#include "operator/kube/api_client.h"

namespace bsp::kube_test {

using kube::ApiClient;
using kube::ApiClientOptions;
using kube::EventType;
using kube::Key;
using kube::Kind;
using kube::Object;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

inline const Kind kConfigMap{"v1", "ConfigMap"};
inline const Kind kTestPod{"v1", "Pod"};
inline const Kind kTestNode{"v1", "Node"};
inline const Kind kWidget{"kubetest.example/v1", "Widget"};

// All tests of a program share the certificates, because creating them takes time.
struct Pki {
  net::PemPair ca, server, client, other_ca;
  static const Pki& get() {
    static const Pki pki = [] {
      const Time now = SystemClock{}.now();
      const auto from = now - std::chrono::hours(1), to = now + std::chrono::hours(1);
      Pki made;
      made.ca = net::create_ca("test", from, to).value();
      made.other_ca = net::create_ca("other", from, to).value();
      made.server = net::issue_certificate(made.ca, {.identity = "apiserver.test",
                                                     .dns_names = {"localhost", "kubernetes.default.svc"},
                                                     .addresses = {"127.0.0.1"},
                                                     .not_before = from,
                                                     .not_after = to - std::chrono::minutes(1)})
                        .value();
      made.client = net::issue_certificate(made.ca, {.identity = "tester",
                                                     .dns_names = {},
                                                     .addresses = {},
                                                     .not_before = from,
                                                     .not_after = to - std::chrono::minutes(1)})
                        .value();
      return made;
    }();
    return pki;
  }
};

// Short pauses where the product waits for a server to recover, and timeouts long enough for a busy machine.
inline ApiClientOptions quick() {
  ApiClientOptions options;
  options.first_list = seconds(60);
  options.api = {
      .call = seconds(60), .attempt = seconds(20), .first_pause = milliseconds(5), .last_pause = milliseconds(50)};
  return options;
}

inline bool eventually(const std::function<bool()>& holds, seconds limit = seconds(60)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

class World : public ::testing::Test {
 protected:
  World()
      : forward_(std::getenv("BSP_KUBE_TEST_KUBECONFIG")
                     ? std::make_unique<Forward>(std::getenv("BSP_KUBE_TEST_KUBECONFIG"))
                     : nullptr),
        server_(Pki::get().server, Pki::get().ca.certificate, handler()) {}

  TlsServer::Handler handler() {
    return [this](const Request& request, Reply& reply) {
      if (forward_)
        forward_->handle(request, reply);
      else
        api_.handle(request, reply);
    };
  }
  [[nodiscard]] bool is_real() const { return forward_ != nullptr; }
  int live_watches() { return forward_ ? forward_->live_watches() : api_.live_watches(); }
  // Compacts the versions that watches want to resume from.
  void compact() {
    if (forward_)
      forward_->make_next_watch_old();
    else
      api_.compact();
  }

  kube::Config config() {
    kube::Config c;
    c.server = "https://127.0.0.1:" + std::to_string(server_.port());
    c.ca.text = Pki::get().ca.certificate;
    c.token.text = "secret";
    c.source = "the test";
    return c;
  }
  std::unique_ptr<ApiClient> open(ApiClientOptions options = quick()) {
    return std::move(ApiClient::create(config(), std::move(options))).value();
  }
  static Object config_map(const std::string& name, const std::string& value = "1") {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", {{"name", name}, {"namespace", "default"}}},
            {"data", {{"x", value}}}};
  }
  static Object widget(const std::string& name) {
    return {{"apiVersion", "kubetest.example/v1"},
            {"kind", "Widget"},
            {"metadata", {{"name", name}, {"namespace", "default"}}},
            {"spec", {{"rank", 1}}}};
  }
  static Object widget_definition() {
    const Object any = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
    Object spec = any;
    spec["properties"]["invalid"] = {{"type", "boolean"}, {"enum", {false}}};
    const Object schema = {{"type", "object"}, {"properties", {{"spec", spec}, {"status", any}}}};
    return {
        {"apiVersion", "apiextensions.k8s.io/v1"},
        {"kind", "CustomResourceDefinition"},
        {"metadata", {{"name", "widgets.kubetest.example"}}},
        {"spec",
         {{"group", "kubetest.example"},
          {"scope", "Namespaced"},
          {"names", {{"plural", "widgets"}, {"singular", "widget"}, {"kind", "Widget"}, {"listKind", "WidgetList"}}},
          {"versions",
           {{{"name", "v1"},
             {"served", true},
             {"storage", true},
             {"subresources", {{"status", Object::object()}}},
             {"schema", {{"openAPIV3Schema", schema}}}}}}}}};
  }
  // Waits until the client knows the kind.
  static void install_widgets(ApiClient& client) {
    const auto made = client.create(widget_definition());
    ASSERT_TRUE(made || made.error().code == ErrorCode::kConflict) << made.error().message;
    ASSERT_TRUE(eventually([&] { return client.list(kWidget, "default").has_value(); }));
  }
  static Key key(const Kind& kind, const std::string& name) { return {kind, "default", name}; }

  ApiServer api_;
  std::unique_ptr<Forward> forward_;
  TlsServer server_;
};

}  // namespace bsp::kube_test
