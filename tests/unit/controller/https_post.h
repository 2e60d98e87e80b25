// One request over TLS, as the API server sends a webhook's.
#pragma once

#include <format>
#include <string>

#include "base/net/address.h"
#include "base/net/tls_stream.h"
#include "base/net/wait.h"
#include "tests/unit/kube/world.h"

namespace bsp::controller {

// Sends the pieces one after the other. The answer as it comes; "" if the server shows no certificate of `ca`, or hangs up.
inline std::string https_say(int port, const std::string& ca, std::initializer_list<std::string> pieces) {
  const auto limit = std::chrono::seconds(60);
  const auto deadline = std::chrono::steady_clock::now() + limit;
  // A client of ours always has a certificate; this server doesn't ask for it.
  const net::PemPair& own = kube_test::Pki::get().client;
  const auto context = net::TlsContext::create({ca, own.certificate, own.key});
  auto socket = net::start_connect(net::parse_address(std::format("127.0.0.1:{}", port)).value());
  if (!context || !socket || !net::wait_for(socket->get(), net::TlsSocket::Wait::kWritable, deadline)) return "";
  net::TlsSocket tls(*context, std::move(*socket), net::TlsRole::kClient);
  for (;;) {
    const auto progress = tls.handshake();
    if (!progress || progress->end) return "";
    if (progress->wait == net::TlsSocket::Wait::kDone) break;
    if (!net::wait_for(tls.fd(), progress->wait, deadline)) return "";
  }
  net::TlsStream stream(std::move(tls), "webhook");
  for (const std::string& piece : pieces)
    if (!stream.write_all(std::as_bytes(std::span(piece)), limit)) return "";
  std::string answer;
  std::byte buffer[4096];
  for (;;) {
    const auto got = stream.read_some(buffer, limit);
    if (!got || *got == 0) return answer;
    answer.append(reinterpret_cast<const char*>(buffer), *got);
  }
}

inline std::string https_post(int port, const std::string& ca, const std::string& path, const std::string& body) {
  return https_say(port, ca,
                   {std::format("POST {}?timeout=5s HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\n"
                                "Content-Length: {}\r\n\r\n",
                                path, body.size()),
                    body});
}

}  // namespace bsp::controller
