// A link server on a loop in its own thread, and certificates that it accepts or rejects.
#pragma once

#include <gtest/gtest.h>

#include "base/net/link.h"
#include "base/net/pki.h"
#include "tests/unit/net/loop_thread.h"

namespace bsp::net {

using namespace std::chrono_literals;

class Ca {
 public:
  Ca() : pair_(create_ca("a-job", now() - 48h, now() + 48h).value()) {}

  // A certificate valid from `from` to `to`, relative to now.
  TlsContext context(const std::string& identity, Duration from = -1h, Duration to = 1h) const {
    return TlsContext::create(credentials(identity, from, to)).value();
  }
  Credentials credentials(const std::string& identity, Duration from = -1h, Duration to = 1h) const {
    auto pair = issue_certificate(pair_, {.identity = identity,
                                          .dns_names = {},
                                          .addresses = {"127.0.0.1"},
                                          .not_before = now() + from,
                                          .not_after = now() + to})
                    .value();
    return {pair_.certificate, pair.certificate, pair.key};
  }
  // Presents a certificate from `other` but trusts this CA.
  TlsContext stranger(const Ca& other, const std::string& identity) const {
    auto pair =
        issue_certificate(
            other.pair_,
            {.identity = identity, .dns_names = {}, .addresses = {}, .not_before = now() - 1h, .not_after = now() + 1h})
            .value();
    return TlsContext::create({pair_.certificate, pair.certificate, pair.key}).value();
  }
  const PemPair& pair() const { return pair_; }
  static Time now() { return SystemClock{}.now(); }

 private:
  PemPair pair_;
};

class World {
 public:
  explicit World(LinkServer::Handler handler) : World(std::move(handler), std::nullopt) {}
  World(LinkServer::Handler handler, std::optional<TlsContext> context, const std::string& address = "127.0.0.1:0") {
    on_loop([&] {
      server_ = LinkServer::listen(loop(), context.value_or(ca.context("server")), address, std::move(handler)).value();
    });
  }
  ~World() {
    on_loop([this] { server_.reset(); });
  }

  std::string address() const { return std::format("127.0.0.1:{}", server_->port()); }
  Link link(const std::string& as = "client") const { return Link(ca.context(as), {address(), "server"}); }

  void on_loop(const std::function<void()>& work) { thread_.run(work); }
  Loop& loop() { return thread_.loop; }

  Ca ca;

 private:
  std::unique_ptr<LinkServer> server_;
  LoopThread thread_;
};

// Echoes the request and its peer.
inline void echo(Request request, Reply reply) {
  reply.ok({{"peer", request.peer}, {"verb", request.verb}, {"n", request.fields.value("n", 0)}},
           std::move(request.body));
}

}  // namespace bsp::net
