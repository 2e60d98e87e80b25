// The link between well-behaved ends: whole messages, in order, late answers, taken-over connections.
#include <vector>

#include "tests/unit/net/link_world.h"

namespace bsp::net {
namespace {

TEST(Link, CarriesFieldsAndBodiesOfAnySize) {
  World world(echo);
  Link link = world.link("pod-a");
  for (std::size_t size : {0u, 1u, 16384u, 100'000u, 5'000'000u}) {
    std::string body(size, 'x');
    auto answer = link.call("say", {{"n", 7}}, 10s, body);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->header["peer"], "pod-a");
    EXPECT_EQ(answer->header["verb"], "say");
    EXPECT_EQ(answer->header["n"], 7);
    EXPECT_EQ(answer->body, body);
  }
}

TEST(Link, LazilyParsedCredentialsWork) {
  World world(echo);
  const TlsContext late = TlsContext::create_late(world.ca.credentials("pod-b"));
  for (int connection = 0; connection < 2; ++connection) {
    Link link(late, {world.address(), "server"});
    const auto answer = link.call("say", {}, 10s);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->header["peer"], "pod-b");
  }
  // Every connection reports what is wrong with them.
  Credentials bad = world.ca.credentials("pod-b");
  bad.key = world.ca.credentials("pod-c").key;
  const TlsContext useless = TlsContext::create_late(bad);
  EXPECT_FALSE(TlsContext::create(bad));
  for (int connection = 0; connection < 2; ++connection) {
    const auto answer = Link(useless, {world.address(), "server"}).call("say", {}, 10s);
    ASSERT_FALSE(answer);
    EXPECT_THAT(answer.error().message, testing::HasSubstr("the private key can't be used"));
  }
}

TEST(Link, ErrorsKeepTheirCodeAndNameThePeer) {
  World world([](Request, Reply reply) { reply.error({ErrorCode::kConflict, "too late", true}); });
  auto answer = world.link().call("arm", {}, 5s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kConflict);
  EXPECT_TRUE(answer.error().retryable);
  EXPECT_NE(answer.error().message.find("arm: too late"), std::string::npos) << answer.error().message;
}

TEST(Link, LateAnswerDelaysNoOtherConnection) {
  std::promise<Reply> held;
  World world([&](Request request, Reply reply) {
    if (request.verb == "watch")
      held.set_value(std::move(reply));
    else
      reply.ok();
  });
  auto watching = std::async([&] { return world.link().call("watch", {}, 20s); });
  Reply reply = held.get_future().get();
  EXPECT_TRUE(world.link().call("status", {}, 5s));
  reply.ok({{"version", 2}});  // from this thread, not the loop's
  auto answer = watching.get();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->header["version"], 2);
}

TEST(Link, UnansweredRequestGetsAnError) {
  World world([](Request, Reply) {});
  auto answer = world.link().call("lost", {}, 5s);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kFailed);
}

TEST(Link, TimesOutAndServesTheNextCall) {
  std::vector<Reply> kept;
  World world([&](Request request, Reply reply) {
    if (request.verb == "never")
      kept.push_back(std::move(reply));
    else
      reply.ok();
  });
  Link link = world.link();
  auto answer = link.call("never", {}, 50ms);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kTimeout);
  EXPECT_TRUE(link.call("status", {}, 5s));
  world.on_loop([&] { kept.clear(); });
}

TEST(Link, ReplacesADeadConnection) {
  auto world = std::make_unique<World>(echo);
  Ca ca = world->ca;
  Link link(ca.context("client"), {world->address(), "server"});
  ASSERT_TRUE(link.call("one", {}, 5s));
  // The same server after a restart: it doesn't know the connection.
  std::string address = world->address();
  world->on_loop([] {});
  world.reset();
  Loop loop;
  auto server = LinkServer::listen(loop, ca.context("server"), address, echo);
  ASSERT_TRUE(server) << server.error().message;
  std::thread thread([&] { loop.run(); });
  auto answer = link.call("two", {}, 5s);
  EXPECT_TRUE(answer) << answer.error().message;
  loop.stop();
  thread.join();
}

TEST(Link, ConnectionBecomesAStream) {
  std::promise<std::size_t> received;
  World world([&](Request, Reply reply) {
    reply.take_over([&](Result<TlsStream> stream) {
      std::thread([&received, stream = std::make_shared<TlsStream>(std::move(stream.value()))] {
        std::vector<std::byte> buffer(1 << 18);
        std::size_t total = 0;
        while (auto n = stream->read_some(buffer, 10s)) {
          if (*n == 0) break;
          total += *n;
        }
        ASSERT_TRUE(stream->write_all(std::as_bytes(std::span("done", 4)), 10s));
        received.set_value(total);
      }).detach();
    });
  });
  Link link = world.link();
  ASSERT_TRUE(link.call("checkpoint", {}, 5s));
  auto stream = link.take_over();
  ASSERT_TRUE(stream) << stream.error().message;
  std::vector<std::byte> piece(1 << 20);
  for (int i = 0; i < 32; ++i) ASSERT_TRUE(stream->write_all(piece, 10s));
  ASSERT_TRUE(stream->end_write(10s));
  std::byte answer[4];
  for (std::size_t got = 0; got < sizeof answer;) {
    const auto more = stream->read_some(std::span(answer).subspan(got), 10s);
    ASSERT_TRUE(more && *more > 0);
    got += *more;
  }
  EXPECT_EQ(received.get_future().get(), 32u << 20);
}

TEST(LinkPeer, AnswersComeInOrderWithoutWaiting) {
  World world(echo);
  std::promise<std::vector<int>> all;
  std::vector<int> seen;
  std::unique_ptr<LinkPeer> peer;
  world.on_loop([&] {
    peer = std::make_unique<LinkPeer>(world.loop(), world.ca.context("b"), Peer{world.address(), "server"});
    for (int i = 0; i < 20; ++i)
      peer->call("say", {{"n", i}}, std::string(10'000, 'y'), 10s, [&](Result<Answer> answer) {
        seen.push_back(answer && answer->body.size() == 10'000 ? answer->header["n"].get<int>() : -1);
        if (seen.size() == 20) all.set_value(seen);
      });
  });
  std::vector<int> expected;
  for (int i = 0; i < 20; ++i) expected.push_back(i);
  EXPECT_EQ(all.get_future().get(), expected);
  world.on_loop([&] { peer.reset(); });
}

TEST(LinkPeer, EveryCallFailsIfThePeerIsWrong) {
  World world(echo);
  std::promise<ErrorCode> code;
  std::unique_ptr<LinkPeer> peer;
  world.on_loop([&] {
    peer = std::make_unique<LinkPeer>(world.loop(), world.ca.context("b"), Peer{world.address(), "other"});
    peer->call("say", {}, {}, 10s,
               [&](Result<Answer> answer) { code.set_value(answer ? ErrorCode::kInvalid : answer.error().code); });
  });
  EXPECT_EQ(code.get_future().get(), ErrorCode::kRefused);
  world.on_loop([&] { peer.reset(); });
}

}  // namespace
}  // namespace bsp::net
