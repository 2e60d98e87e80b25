// The pages over real sockets.
#include "operator/controller/endpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "http_get.h"

namespace bsp::controller {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Another program may take the port in between.
std::unique_ptr<Endpoints> open_somewhere(int& port, const std::map<std::string, std::function<Page()>>& pages) {
  for (int tries = 0; tries < 20; ++tries) {
    port = free_port();
    if (auto open = Endpoints::open(std::format("127.0.0.1:{}", port), pages)) return std::move(*open);
  }
  return nullptr;
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
  EXPECT_EQ(http_get(port, "/healthz"), "") << "nobody listens any more";
}

TEST(Endpoints, APortThatIsTakenIsToldByItsAddress) {
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

}  // namespace
}  // namespace bsp::controller
