// Faulty connections, a busy server, invalid TLS, rotating credentials.
#include <cmath>
#include <fstream>
#include <set>

#include "world.h"

namespace bsp::kube_test {
namespace {

using kube::Http;
using FaultsTest = World;

TEST_F(FaultsTest, RetriesReadsWhereverTheAnswerBreaks) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a", std::string(3000, 'v'))));
  for (const std::size_t after : {0, 9, 60, 120, 1000, 3000})
    for (const auto what : {Fault::kCut, Fault::kEnd}) {
      server_.inject({.match = "GET", .what = what, .times = 2, .after = after});
      const auto got = client->get(key(kConfigMap, "a"));
      ASSERT_TRUE(got) << after << ": " << got.error().message;
      EXPECT_EQ((*got)["data"]["x"].get<std::string>().size(), 3000u);
    }
}

TEST_F(FaultsTest, InvalidJsonIsAnError) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  for (const char* body : {"{\"kind\":", "[]", "17", "", "\xff\xfe", "{\"metadata\":\"text\",\"items\":{}}"}) {
    server_.inject({.match = "GET", .status = 200, .body = body});
    (void)client->get(key(kConfigMap, "a"));
    server_.inject({.match = "GET", .status = 200, .body = body});
    (void)client->list(kConfigMap, "default");
  }
  server_.inject({.match = "GET", .status = 200, .body = "{\"kind\":"});
  EXPECT_THAT(client->get(key(kConfigMap, "a")).error().message, HasSubstr("not a JSON object"));
  EXPECT_TRUE(client->get(key(kConfigMap, "a")));
}

TEST_F(FaultsTest, HonoursRetryAfter) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  server_.inject({.match = "GET", .status = 429, .headers = "Retry-After: 1\r\n", .body = "{}"});
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(client->get(key(kConfigMap, "a")));
  EXPECT_GE(std::chrono::steady_clock::now() - began, seconds(1));
  for (const int status : {500, 502, 503, 504}) {
    server_.inject({.match = "PUT", .times = 3, .status = status, .body = "{}"});
    EXPECT_TRUE(client->update(config_map("a", std::to_string(status)))) << status;
  }
}

// A kube-apiserver's whole answer for a version that it serves no more. An object that seems to be gone would be taken for deleted.
TEST_F(FaultsTest, AVersionThatWasDroppedIsNoMissingObject) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  server_.inject({.match = "configmaps/a", .times = 3, .status = 404, .body = "404 page not found\n"});
  const auto got = client->get(key(kConfigMap, "a"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(got.error().message, HasSubstr("the API server doesn't serve ConfigMap at the moment"));
  const auto patched = client->patch(key(kConfigMap, "a"), {{"data", {{"x", "2"}}}}, "");
  ASSERT_FALSE(patched);
  EXPECT_EQ(patched.error().code, ErrorCode::kUnavailable);
  const auto removed = client->remove(key(kConfigMap, "a"), "");
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(client->get(key(kConfigMap, "a")));
}

Fault etcd_is_away(int times) {
  return {.match = "configmaps/a",
          .times = times,
          .status = 503,
          .body = R"({"kind":"Status","code":503,"message":"etcd is away"})"};
}

TEST_F(FaultsTest, RetriesEndAtTheDeadlineWithTheLastError) {
  ASSERT_TRUE(open()->create(config_map("a")));
  ApiClientOptions options = quick();
  options.api.call = seconds(3);
  auto client = open(options);
  server_.inject(etcd_is_away(1'000'000));
  const auto got = client->get(key(kConfigMap, "a"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(got.error().retryable);
  EXPECT_THAT(got.error().message, HasSubstr("etcd is away"));
  EXPECT_THAT(got.error().message, HasSubstr("ConfigMap default/a"));
  EXPECT_GE(server_.requests("GET /api/v1/namespaces/default/configmaps/a"), 2);
  // An hour exceeds the call's deadline, so it doesn't wait.
  server_.clear_faults();
  server_.inject({.match = "configmaps/a", .status = 429, .headers = "Retry-After: 3600\r\n", .body = "{}"});
  EXPECT_EQ(client->get(key(kConfigMap, "a")).error().code, ErrorCode::kUnavailable);
}

TEST_F(FaultsTest, AnAttemptCutShortByTheDeadlineHidesNoAnswer) {
  ASSERT_TRUE(open()->create(config_map("a")));
  ApiClientOptions options = quick();
  options.api.call = seconds(2);
  auto client = open(options);
  server_.inject(etcd_is_away(1));
  server_.inject({.match = "configmaps/a", .what = Fault::kStall, .times = 1'000'000});
  EXPECT_THAT(client->get(key(kConfigMap, "a")).error().message, HasSubstr("etcd is away"));
}

TEST_F(FaultsTest, SilentServerCostsOneAttempt) {
  ASSERT_TRUE(open()->create(config_map("a")));
  ApiClientOptions options = quick();
  options.api.attempt = seconds(1);
  auto client = open(options);
  for (const std::size_t after : {0, 30, 200}) {
    server_.inject({.match = "GET", .what = Fault::kStall, .after = after});
    EXPECT_TRUE(client->get(key(kConfigMap, "a"))) << after;
  }
  server_.inject({.match = "GET", .what = Fault::kStall, .times = 1000000, .after = 0});
  options.api.call = milliseconds(500);
  const auto got = open(options)->get(key(kConfigMap, "a"));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kTimeout);
}

// The server carried the write out, but the answer was lost.
TEST_F(FaultsTest, RepeatsAWriteWhoseAnswerIsLost) {
  auto client = open();
  server_.inject({.match = "POST", .what = Fault::kCut, .after = 0});
  const auto made = client->create(config_map("a"));
  ASSERT_FALSE(made) << "it can't be distinguished from another client's object";
  EXPECT_EQ(made.error().code, ErrorCode::kConflict);
  Object object = client->get(key(kConfigMap, "a")).value();
  object["data"]["x"] = "2";
  server_.inject({.match = "PUT", .what = Fault::kCut, .after = 0});
  const auto updated = client->update(object);
  ASSERT_FALSE(updated) << "our own first attempt has changed the version";
  EXPECT_EQ(updated.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(updated.error().retryable);
  EXPECT_EQ(client->get(key(kConfigMap, "a")).value()["data"]["x"], "2");
  server_.inject({.match = "DELETE", .what = Fault::kCut, .after = 0});
  EXPECT_TRUE(client->remove(key(kConfigMap, "a"), "")) << "it is deleted in either case";
  // With a name that the server generates, a second attempt would create a second object.
  Object nameless = config_map("");
  nameless["metadata"].erase("name");
  nameless["metadata"]["generateName"] = "n-";
  server_.inject({.match = "POST", .what = Fault::kCut, .after = 0});
  EXPECT_EQ(client->create(nameless).error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(client->list(kConfigMap, "default").value().size(), 1u);
}

TEST_F(FaultsTest, ReconnectsToARestartedServer) {
  auto second = std::make_unique<TlsServer>(Pki::get().server, Pki::get().ca.certificate, handler());
  const int port = second->port();
  kube::Config there = config();
  there.server = "https://localhost:" + std::to_string(port);
  auto client = std::move(ApiClient::create(there, quick())).value();
  ASSERT_TRUE(client->create(config_map("a")));
  second.reset();
  std::thread late(
      [&] { second = std::make_unique<TlsServer>(Pki::get().server, Pki::get().ca.certificate, handler(), port); });
  EXPECT_TRUE(client->get(key(kConfigMap, "a"))) << "waits for it to come back";
  late.join();
}

// --- TLS ----------------------------------------------------------------------------------------------------

TEST_F(FaultsTest, TrustsOnlyTheClustersCa) {
  const ApiClientOptions options = quick();
  kube::Config c = config();
  c.ca.text = Pki::get().other_ca.certificate;
  auto got = ApiClient::create(c, options).value()->get(key(kConfigMap, "a"));
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("certificate was rejected"));
  c.ca.text.clear();  // the system doesn't trust its CA either
  got = ApiClient::create(c, options).value()->get(key(kConfigMap, "a"));
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("certificate was rejected"));
  EXPECT_EQ(server_.requests(""), 0) << "the token was never sent";
  c.insecure_skip_tls_verify = true;
  EXPECT_EQ(ApiClient::create(c, options).value()->get(key(kConfigMap, "a")).error().code, ErrorCode::kNotFound);
}

TEST_F(FaultsTest, CertificateMustMatchTheHost) {
  const ApiClientOptions options = quick();
  kube::Config c = config();
  c.tls_server_name = "other.example";
  auto got = ApiClient::create(c, options).value()->get(key(kConfigMap, "a"));
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("ostname mismatch"));
  c.tls_server_name = "kubernetes.default.svc";
  EXPECT_EQ(ApiClient::create(c, options).value()->get(key(kConfigMap, "a")).error().code, ErrorCode::kNotFound);
  c.tls_server_name.clear();
  c.server = "https://localhost:" + std::to_string(server_.port());
  EXPECT_EQ(ApiClient::create(c, options).value()->get(key(kConfigMap, "a")).error().code, ErrorCode::kNotFound);
  const net::PemPair for_another =
      net::issue_certificate(Pki::get().ca, {.identity = "another",
                                             .dns_names = {},
                                             .addresses = {"127.0.0.2"},
                                             .not_before = SystemClock{}.now() - seconds(60),
                                             .not_after = SystemClock{}.now() + seconds(600)})
          .value();
  TlsServer wrong(for_another, Pki::get().ca.certificate, [](const Request&, Reply&) {});
  c.server = "https://127.0.0.1:" + std::to_string(wrong.port());
  got = ApiClient::create(c, options).value()->get(key(kConfigMap, "a"));
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("IP address mismatch"));
}

TEST_F(FaultsTest, RejectsAnExpiredCertificate) {
  const ApiClientOptions options = quick();
  const Time now = SystemClock{}.now();
  const net::PemPair old = net::issue_certificate(Pki::get().ca, {.identity = "old",
                                                                  .dns_names = {},
                                                                  .addresses = {"127.0.0.1"},
                                                                  .not_before = now - std::chrono::minutes(50),
                                                                  .not_after = now - std::chrono::minutes(40)})
                               .value();
  TlsServer server(old, Pki::get().ca.certificate, [](const Request&, Reply&) {});
  kube::Config c = config();
  c.server = "https://127.0.0.1:" + std::to_string(server.port());
  const auto got = ApiClient::create(c, options).value()->get(key(kConfigMap, "a"));
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("expired"));
}

TEST_F(FaultsTest, PresentsTheClientCertificate) {
  if (is_real()) GTEST_SKIP() << "only the in-memory server supports this";
  kube::Config c = config();
  c.token = {};
  EXPECT_EQ(ApiClient::create(c, quick()).value()->get(key(kConfigMap, "a")).error().code, ErrorCode::kRefused);
  c.client_certificate.text = Pki::get().client.certificate;
  c.client_key.text = Pki::get().client.key;
  EXPECT_EQ(ApiClient::create(c, quick()).value()->get(key(kConfigMap, "a")).error().code, ErrorCode::kNotFound);
  c.client_key.text = Pki::get().server.key;
  EXPECT_THAT(ApiClient::create(c, quick()).error().message, HasSubstr("doesn't match"));
  c.client_key.text = "nothing";
  EXPECT_THAT(ApiClient::create(c, quick()).error().message, HasSubstr("unencrypted private key"));
}

TEST_F(FaultsTest, RereadsAReplacedToken) {
  if (is_real()) GTEST_SKIP() << "only the in-memory server supports this";
  char path[] = "/tmp/bsp-kube-token-XXXXXX";
  const int fd = ::mkstemp(path);
  const Fd closes(fd);
  std::ofstream(path) << "first\n";
  kube::Config c = config();
  c.token = {"", path};
  api_.allow_tokens({"Bearer first"});
  auto client = std::move(ApiClient::create(c, quick())).value();
  ASSERT_TRUE(client->create(config_map("a")));
  api_.allow_tokens({"Bearer second"});
  std::ofstream(path) << "second\n";
  EXPECT_TRUE(client->get(key(kConfigMap, "a"))) << "the 401 makes it reread the file";
  EXPECT_EQ(api_.token(), "Bearer second");
  api_.allow_tokens({"Bearer third"});
  EXPECT_THAT(client->get(key(kConfigMap, "a")).error().message, HasSubstr("rejected our credentials"));
  ::unlink(path);
}

TEST_F(FaultsTest, RedirectsAreNotFollowed) {
  auto client = open();
  ASSERT_TRUE(client->create(config_map("a")));
  TlsServer elsewhere(Pki::get().server, Pki::get().ca.certificate,
                      [](const Request&, Reply& a) { a.whole(200, "{}"); });
  server_.inject({.match = "GET",
                  .status = 302,
                  .headers = "Location: https://127.0.0.1:" + std::to_string(elsewhere.port()) + "/\r\n"});
  EXPECT_FALSE(client->get(key(kConfigMap, "a")));
  EXPECT_EQ(elsewhere.connections(), 0);
}

TEST_F(FaultsTest, ThreadsShareAClientOverAFaultyConnection) {
  auto client = open();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(client->create(config_map("m" + std::to_string(i))));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        if (i % 5 == t % 5)
          server_.inject({.match = "GET",
                          .what = i % 2 ? Fault::kCut : Fault::kEnd,
                          .after = static_cast<std::size_t>(i * 31 % 400)});
        if (i % 10 == t) server_.cut_all();
        const auto got = client->get(key(kConfigMap, "m" + std::to_string(t)));
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_EQ((*got)["metadata"]["name"], "m" + std::to_string(t)) << "each thread gets its own answer";
      }
    });
  for (auto& thread : threads) thread.join();
}

TEST(Backoff, GrowsToItsLimitWithJitter) {
  for (unsigned n = 0; n < 70; ++n) {
    const double middle = std::min(100.0 * std::pow(2.0, n), 5000.0);
    for (int i = 0; i < 20; ++i) {
      const auto pause = kube::backoff(n, milliseconds(100), milliseconds(5000));
      EXPECT_GE(pause.count(), static_cast<std::int64_t>(middle * 0.5) - 1);
      EXPECT_LE(pause.count(), static_cast<std::int64_t>(middle * 1.5) + 1);
    }
  }
  std::set<std::int64_t> seen;
  for (int i = 0; i < 50; ++i) seen.insert(kube::backoff(3, milliseconds(100), milliseconds(5000)).count());
  EXPECT_GT(seen.size(), 5u);
}

}  // namespace
}  // namespace bsp::kube_test
