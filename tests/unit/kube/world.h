// An API server on a port of this machine and a client of it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "api_server.h"
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

// Certificates cost time to make; all tests of a program share them.
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
                                                     .not_after = to}).value();
      made.client = net::issue_certificate(made.ca, {.identity = "tester", .dns_names = {}, .addresses = {},
                                                     .not_before = from, .not_after = to}).value();
      return made;
    }();
    return pki;
  }
};

// Fast where a product waits for a server to recover.
inline ApiClientOptions quick() {
  ApiClientOptions options;
  options.api = {.call = seconds(20), .attempt = seconds(10), .first_pause = milliseconds(5), .last_pause = milliseconds(50)};
  return options;
}

inline bool eventually(const std::function<bool()>& holds, seconds limit = seconds(30)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

class World : public ::testing::Test {
 protected:
  World() : server_(Pki::get().server, Pki::get().ca.certificate, [this](const Request& q, Reply& a) { api_.handle(q, a); }) {}

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
    const Object schema = {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}};
    return {{"apiVersion", "apiextensions.k8s.io/v1"},
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
    ASSERT_TRUE(client.create(widget_definition()));
    ASSERT_TRUE(eventually([&] { return client.list(kWidget, "default").has_value(); }));
  }
  static Key key(const Kind& kind, const std::string& name) { return {kind, "default", name}; }

  ApiServer api_;
  TlsServer server_;
};

}  // namespace bsp::kube_test
