// The pages over real sockets.
#include "operator/controller/endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/net/address.h"
#include "http_get.h"
#include "https_post.h"
#include "operator/controller/options.h"
#include "tests/unit/kube/world.h"

namespace bsp::controller {
namespace {

using kube_test::eventually;

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Another program may take the port in between.
std::unique_ptr<Endpoints> open_served(int& port, const Served& served, const EndpointLimits& limits = {}) {
  for (int tries = 0; tries < 20; ++tries) {
    port = free_port();
    if (auto open = Endpoints::open(std::format("127.0.0.1:{}", port), served, limits)) return std::move(*open);
  }
  return nullptr;
}
std::unique_ptr<Endpoints> open_somewhere(int& port, const std::map<std::string, std::function<Page()>>& pages,
                                          const EndpointLimits& limits = {}) {
  return open_served(port, {.pages = pages}, limits);
}

TEST(Endpoints, AnswerWhatThePagesSay) {
  int port = 0, calls = 0;
  auto open =
      open_somewhere(port, {{"/healthz", [] { return Page{200, "ok\n"}; }},
                            {"/readyz", [&] { return ++calls == 1 ? Page{503, "not yet\n"} : Page{200, "yes\n"}; }}});
  ASSERT_TRUE(open);
  EXPECT_THAT(http_get(port, "/healthz"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("text/plain"), EndsWith("ok\n")));
  EXPECT_THAT(http_get(port, "/readyz"), AllOf(StartsWith("HTTP/1.1 503"), EndsWith("not yet\n")));
  EXPECT_THAT(http_get(port, "/readyz?verbose"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(http_get(port, "/other"), StartsWith("HTTP/1.1 404"));
  open.reset();
  EXPECT_EQ(http_get(port, "/healthz"), "") << "the port is closed";
}

// As the kubelet asks in a cluster of either family.
TEST(Endpoints, OfAPortAloneAnswerBothFamilies) {
  const auto over_ipv6 = [](int port) {
    const auto address = net::parse_address(std::format("[::1]:{}", port)).value();
    const Fd socket(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0
               ? get_on(socket.get(), "/healthz")
               : std::format("connect: {}", std::strerror(errno));
  };
  if (!net::listen_on(net::parse_address("[::1]:0").value())) GTEST_SKIP() << "this machine has no IPv6";
  for (int tries = 0; tries < 20; ++tries) {
    const int port = free_port();
    const auto options = parse_options(std::vector{std::format("--health-address=:{}", port)});
    ASSERT_TRUE(options);
    const auto open =
        Endpoints::open(options->health_address, {.pages = {{"/healthz", [] { return Page{200, "ok\n"}; }}}});
    if (!open) continue;  // another program has taken the port
    EXPECT_THAT(http_get(port, "/healthz"), EndsWith("ok\n"));
    EXPECT_THAT(over_ipv6(port), EndsWith("ok\n"));
    return;
  }
  FAIL() << "no free port";
}

TEST(Endpoints, NamesTheAddressOfAPortInUse) {
  int port = 0;
  const auto first = open_somewhere(port, {});
  ASSERT_TRUE(first);
  const std::string address = std::format("127.0.0.1:{}", port);
  const auto second = Endpoints::open(address, {});
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("listening on " + address));
}

TEST(Endpoints, ManyMayAskAtOnceAndGoAwayBeforeTheAnswer) {
  int port = 0;
  auto open = open_somewhere(port, {{"/metrics", [] { return Page{200, std::string(300'000, 'x')}; }}});
  ASSERT_TRUE(open);
  std::vector<std::thread> askers;
  std::atomic<int> whole = 0;
  for (int i = 0; i < 8; ++i)
    askers.emplace_back([&, i] {
      if (i % 2) {
        const Fd socket(::socket(AF_INET, SOCK_STREAM, 0));
        const sockaddr_in address = loopback(port);
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
        const std::string request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
      } else {
        whole += http_get(port, "/metrics").size() > 300'000;
      }
    });
  for (std::thread& asker : askers) asker.join();
  EXPECT_EQ(whole, 4);
  EXPECT_THAT(http_get(port, "/metrics"), StartsWith("HTTP/1.1 200"));
}

// A client of its own address on this machine: 127.0.0.2, …
Fd connect_from(int host, int port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in from = loopback(0);
  from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + static_cast<std::uint32_t>(host - 1));
  const sockaddr_in to = loopback(port);
  const timeval limit{60, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0 ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return {};
  return socket;
}
// What comes until the server closes; "-" if it breaks, or says nothing for a minute.
std::string rest_of(const Fd& socket) {
  std::string text;
  char buffer[4096];
  ssize_t n = 0;
  while ((n = TEMP_FAILURE_RETRY(::recv(socket.get(), buffer, sizeof buffer, 0))) > 0)
    text.append(buffer, static_cast<std::size_t>(n));
  return n == 0 || (n < 0 && errno == ECONNRESET) ? text : "-";
}
void say(const Fd& socket, const std::string& text) { ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL); }

constexpr const char* kAsk = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(Endpoints, OneClientsThousandIdleConnectionsKeepNoOtherClientOut) {
  int port = 0;
  auto open = open_somewhere(port, {{"/healthz", [] { return Page{200, "ok\n"}; }}},
                             {.connections = 8, .time = std::chrono::hours(1)});
  ASSERT_TRUE(open);
  const Fd probe = connect_from(2, port);  // the oldest of all
  ASSERT_TRUE(probe);
  std::vector<Fd> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.push_back(connect_from(3, port));
    ASSERT_TRUE(idle.back()) << i;
    if (i % 2 == 0) say(idle.back(), "GET /hea");
  }
  say(probe, kAsk);
  EXPECT_THAT(rest_of(probe), EndsWith("ok\n"));
  EXPECT_THAT(http_get(port, "/healthz"), EndsWith("ok\n"));
  EXPECT_EQ(rest_of(idle.front()), "") << "it was closed for a newer one";
}

TEST(Endpoints, AConnectionEndsInTimeHoweverItIsUsed) {
  int port = 0;
  auto open = open_somewhere(port,
                             {{"/healthz", [] { return Page{200, "ok\n"}; }},
                              {"/large", [] { return Page{200, std::string(64 << 20, 'x')}; }}},
                             {.time = std::chrono::milliseconds(300)});
  ASSERT_TRUE(open);
  const Fd silent = connect_from(2, port), half = connect_from(2, port);
  say(half, "GET /healthz HTTP/1.1\r\nHost:");
  EXPECT_EQ(rest_of(silent), "");
  EXPECT_EQ(rest_of(half), "");
  const Fd unread = connect_from(2, port);
  say(unread, "GET /large HTTP/1.1\r\n\r\n");
  std::this_thread::sleep_for(std::chrono::seconds(2));  // takes nothing of the answer, until it is too late
  EXPECT_LT(rest_of(unread).size(), std::size_t{64} << 20);
  EXPECT_TRUE(eventually([&] { return http_get(port, "/healthz").ends_with("ok\n"); }))
      << "in time, unless this is held up";
}

TEST(Endpoints, WhatIsNoRequestIsAnsweredAndNotKept) {
  int port = 0;
  auto open = open_somewhere(port, {{"/healthz", [] { return Page{200, "ok\n"}; }}});
  ASSERT_TRUE(open);
  const auto ask = [&](const std::string& text) {
    const Fd socket = connect_from(2, port);
    say(socket, text);
    return rest_of(socket);
  };
  EXPECT_THAT(ask("GET /" + std::string(20'000, 'x')), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(ask("POST /healthz HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask("HEAD /healthz HTTP/1.1\r\n\r\n"), AllOf(StartsWith("HTTP/1.1 200"), EndsWith("\r\n\r\n")));
  for (const char* text : {"\r\n\r\n", "GET\r\n\r\n", "GET /healthz\r\n\r\n", "GET /healthz SMTP\r\n\r\n"})
    EXPECT_THAT(ask(text), StartsWith("HTTP/1.1 400")) << text;
  EXPECT_THAT(ask(kAsk), EndsWith("ok\n"));
}

TEST(Endpoints, APageThatFailsIsAnsweredWith500AndTheOthersStay) {
  int port = 0;
  auto open = open_somewhere(port, {{"/healthz", [] { return Page{200, "ok\n"}; }},
                                    {"/thrown", []() -> Page { throw std::runtime_error("no number"); }},
                                    {"/broken", [] {
                                       check(false, "every job has a phase");
                                       return Page{200, "never\n"};
                                     }}});
  ASSERT_TRUE(open);
  EXPECT_THAT(http_get(port, "/thrown"),
              AllOf(StartsWith("HTTP/1.1 500 Internal Server Error"), HasSubstr("no number")));
  EXPECT_THAT(http_get(port, "/broken"), AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("every job has a phase")));
  EXPECT_THAT(http_get(port, "/healthz"), EndsWith("ok\n"));
}

TEST(Endpoints, APageThatIsFreshIsNotMadeAgain) {
  int port = 0;
  std::atomic<int> made = 0;
  auto open = open_somewhere(port, {{"/metrics", [&] { return Page{200, std::format("{}\n", ++made)}; }}},
                             {.fresh = std::chrono::hours(1)});
  ASSERT_TRUE(open);
  for (int i = 0; i < 20; ++i) EXPECT_THAT(http_get(port, "/metrics"), EndsWith("\n1\n"));
}

// Over TLS, and every POST is answered with what it says.
std::unique_ptr<Endpoints> open_echo(int& port, const EndpointLimits& limits = {.body = 1 << 20}) {
  const net::PemPair& server = kube_test::Pki::get().server;
  const auto tls = net::TlsContext::create({kube_test::Pki::get().ca.certificate, server.certificate, server.key});
  const auto echo = [](const std::string& path, const std::string& body) {
    if (path == "/thrown") throw std::runtime_error("no number");
    return Page{200, path + " " + body, "application/json"};
  };
  return open_served(port, {.post = echo, .tls = *tls}, limits);
}
const std::string& trusted() { return kube_test::Pki::get().ca.certificate; }

TEST(Endpoints, TakePostsOverTls) {
  int port = 0;
  const auto open = open_echo(port);
  ASSERT_TRUE(open);
  EXPECT_THAT(https_post(port, trusted(), "/x", "hello"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Type: application/json"), EndsWith("/x hello")));
  EXPECT_THAT(https_post(port, trusted(), "/x", ""), EndsWith("/x "));
  const std::string large(900'000, 'y');
  EXPECT_THAT(https_post(port, trusted(), "/x", large), EndsWith(large)) << "more than a record or a socket's buffer";
  EXPECT_THAT(https_say(port, trusted(), {"POST /x HTT", "P/1.1\r\ncontent-LENGTH:  6 \r\n", "\r", "\nabc", "def"}),
              EndsWith("/x abcdef"));
  EXPECT_EQ(https_post(port, kube_test::Pki::get().other_ca.certificate, "/x", "hello"), "") << "not who it should be";
  EXPECT_THAT(https_post(port, trusted(), "/thrown", "hello"),
              AllOf(StartsWith("HTTP/1.1 500"), EndsWith("no number\n")));
}

TEST(Endpoints, RefuseWhatIsNoPost) {
  int port = 0;
  const auto open = open_echo(port, {.body = 1000});
  ASSERT_TRUE(open);
  const auto ask = [&](const std::string& head) { return https_say(port, trusted(), {head + "\r\n\r\n"}); };
  EXPECT_THAT(ask("GET /x HTTP/1.1"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask("POST /x HTTP/1.1\r\nContent-Length: 1001"),
              AllOf(StartsWith("HTTP/1.1 413"), EndsWith("1000 bytes\n")));
  EXPECT_THAT(ask("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked"), StartsWith("HTTP/1.1 411"));
  for (const char* length : {"", "-1", "1x", "0x10", "99999999999999999999999", "5\r\nContent-Length: 6"})
    EXPECT_THAT(ask(std::format("POST /x HTTP/1.1\r\nContent-Length: {}", length)), StartsWith("HTTP/1.1 400"))
        << length;
  EXPECT_THAT(ask("POST /x HTTP/1.1\r\nContent-Length"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask("POST /" + std::string(20'000, 'x')), StartsWith("HTTP/1.1 431"));
  EXPECT_EQ(http_get(port, "/x"), "") << "no TLS";
  EXPECT_THAT(https_post(port, trusted(), "/x", "still"), EndsWith("still"));
}

TEST(Endpoints, AClientThatStopsInTheMiddleOfTlsIsGivenUp) {
  int port = 0;
  const auto open = open_echo(port, {.time = std::chrono::milliseconds(300)});
  ASSERT_TRUE(open);
  const Fd silent = connect_from(2, port), half = connect_from(2, port);
  say(half, "\x16\x03\x01\x02");
  EXPECT_EQ(rest_of(silent), "");
  EXPECT_EQ(rest_of(half), "");
  EXPECT_EQ(https_say(port, trusted(), {"POST /x HTTP/1.1\r\nContent-Le"}), "");
}

// The Lease is renewed by calls like this one: were they brought by the thread that makes pages, whoever may ask for a
// page could end the leadership.
using EndpointsBesideTheApi = kube_test::World;
TEST_F(EndpointsBesideTheApi, APageThatTakesLongHoldsUpNoCallToTheApiServer) {
  auto client = open({.api = {.call = std::chrono::seconds(20), .attempt = std::chrono::seconds(20)}});
  ASSERT_TRUE(client->create(config_map("a")));
  std::mutex mutex;
  std::condition_variable changed;
  bool asked = false, finish = false;
  int port = 0;
  auto open = open_somewhere(port, {{"/metrics", [&] {
                                       std::unique_lock lock(mutex);
                                       asked = true;
                                       changed.notify_all();
                                       changed.wait(lock, [&] { return finish; });
                                       return Page{200, "late\n"};
                                     }}});
  ASSERT_TRUE(open);
  std::thread asker([&] { EXPECT_THAT(http_get(port, "/metrics"), EndsWith("late\n")); });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return asked; });
  }
  const auto got = client->get(key(kube_test::kConfigMap, "a"));
  EXPECT_TRUE(got) << got.error().message;
  {
    const std::lock_guard lock(mutex);
    finish = true;
  }
  changed.notify_all();
  asker.join();
}

}  // namespace
}  // namespace bsp::controller
