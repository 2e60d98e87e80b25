// One GET over plain HTTP, as a probe asks, and a free port.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <format>
#include <random>
#include <string>

#include "base/core/fd.h"

namespace bsp::controller {

inline sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Below the ports that the kernel gives to those who name none: a test that stops a server and starts it again finds its port
// still free. Another one at each call.
inline int free_port() {
  constexpr int kFirst = 20000, kLast = 32767;
  static int next = kFirst + static_cast<int>(std::random_device()() % (kLast - kFirst));
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (int tried = kFirst; tried <= kLast; ++tried) {
    const int port = next;
    next = port < kLast ? port + 1 : kFirst;
    const sockaddr_in address = loopback(port);
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return port;
  }
  return 0;
}

// Head and body as they come over a connected socket.
inline std::string get_on(int socket, const std::string& path) {
  const timeval limit{30, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  const std::string request = std::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
  if (::send(socket, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) return "";
  std::string answer;
  char buffer[4096];
  for (ssize_t n = 0; (n = TEMP_FAILURE_RETRY(::recv(socket, buffer, sizeof buffer, 0))) > 0;)
    answer.append(buffer, static_cast<std::size_t>(n));
  return answer;
}

// … and "" if the port is closed.
inline std::string http_get(int port, const std::string& path) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return "";
  return get_on(socket.get(), path);
}

}  // namespace bsp::controller
