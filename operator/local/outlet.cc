#include "operator/local/outlet.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <format>
#include <vector>

#include "base/core/log.h"
#include "base/json/fields.h"
#include "crds/bspjob.h"
#include "crds/names.h"
#include "operator/local/command.h"
#include "operator/local/network.h"

namespace bsp::local {
namespace {

// Where the pod finds a server that is known by its name: a loopback address that nobody else uses.
constexpr const char* kOfNames = "127.64.6.1";

struct Server {
  std::string host, port, listen = {};  // listen: the address in the pod's namespace
  bool add = false;                     // which isn't a loopback address, so the namespace doesn't have it yet
  bool named = false;
};

Result<Server> server_of(const std::string& endpoint) {
  BSP_TRY(const crds::EndpointParts parts, crds::endpoint_parts(endpoint));
  Server server{.host = parts.host, .port = parts.port.empty() ? (parts.tls ? "443" : "80") : parts.port};
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, parts.host.c_str(), &v4) == 1) {
    server.listen = parts.host;
    server.add = (ntohl(v4.s_addr) >> 24) != 127;
  } else if (::inet_pton(AF_INET6, parts.host.c_str(), &v6) == 1) {
    server.listen = parts.host;
    server.add = !IN6_IS_ADDR_LOOPBACK(&v6);
  } else {
    server.named = parts.host != "localhost";
    server.listen = server.named ? kOfNames : "127.0.0.1";
  }
  return server;
}

struct Addresses {
  addrinfo* first = nullptr;
  ~Addresses() {
    if (first) ::freeaddrinfo(first);
  }
};

Result<void> look_up(const std::string& host, const std::string& port, int flags, Addresses& found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  if (const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found.first); error != 0)
    return fail(ErrorCode::kNotFound, std::format("{}: {}", host, ::gai_strerror(error)));
  return {};
}

Result<Fd> listen_at(const Server& server) {
  Addresses at;
  BSP_CHECK_OK(look_up(server.listen, server.port, AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE, at));
  Fd listener(::socket(at.first->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!listener || ::bind(listener.get(), at.first->ai_addr, at.first->ai_addrlen) != 0 ||
      ::listen(listener.get(), 64) != 0)
    return fail_errno(std::format("listening at {} port {} in the pod's network", server.listen, server.port));
  return listener;
}

Result<Fd> connect_to(const std::string& host, const std::string& port) {
  Addresses at;
  BSP_CHECK_OK(look_up(host, port, AI_NUMERICSERV, at));
  int error = ECONNREFUSED;
  for (const addrinfo* a = at.first; a; a = a->ai_next) {
    Fd socket(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket && ::connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0) return socket;
    error = errno;
  }
  return fail_errno(host, error);
}

// Until one end closes; then the other one's input ends, too.
void carry(const Fd& from, const Fd& to) {
  std::vector<char> buffer(64 << 10);
  for (;;) {
    const ssize_t n = ::recv(from.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    for (ssize_t sent = 0; sent < n;) {
      const ssize_t m = ::send(to.get(), buffer.data() + sent, static_cast<std::size_t>(n - sent), MSG_NOSIGNAL);
      if (m < 0 && errno == EINTR) continue;
      if (m < 0) {
        ::shutdown(from.get(), SHUT_RD);
        ::shutdown(to.get(), SHUT_WR);
        return;
      }
      sent += m;
    }
  }
  ::shutdown(to.get(), SHUT_WR);
}

void serve(Fd inside, const std::string& host, const std::string& port) {
  const auto outside = connect_to(host, port);
  if (!outside) {
    log_warning("a pod can't reach its storage", {{"reason", outside.error().message}});
    return;
  }
  std::thread back([&] { carry(*outside, inside); });
  carry(inside, *outside);
  back.join();
}

}  // namespace

std::string Outlet::host_alias(const std::string& endpoint) {
  const auto server = server_of(endpoint);
  return server && server->named ? std::format("{}:{}", server->host, server->listen) : "";
}

Result<std::unique_ptr<Outlet>> Outlet::open(const std::string& namespace_path, const std::string& endpoint) {
  BSP_TRY(const Server server, server_of(endpoint));
  Fd listener;
  BSP_CHECK_OK(run_inside(namespace_path, [&]() -> Result<void> {
    // It may be there already, of an earlier process.
    if (server.add)
      if (auto added = run_command({"ip", "addr", "replace", server.listen, "dev", "lo"}); !added)
        return std::unexpected(added.error());
    auto opened = listen_at(server);
    if (!opened) return std::unexpected(opened.error());
    listener = std::move(*opened);
    return {};
  }));
  Fd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake) return fail_errno("eventfd");
  return std::unique_ptr<Outlet>(new Outlet(std::move(listener), std::move(wake), server.host, server.port));
}

std::unique_ptr<Outlet> Outlet::of_container(const std::string& name, const nlohmann::json& pod,
                                             const std::string& network_path) {
  for (const nlohmann::json& container : part_at(part_at(pod, "spec"), "initContainers")) {
    if (text_at(container, "name") != name) continue;
    for (const nlohmann::json& variable : part_at(container, "env")) {
      if (text_at(variable, "name") != names::kEnvStorageEndpoint) continue;
      auto opened = open(network_path, text_at(variable, "value"));
      if (opened) return std::move(*opened);
      log_warning("a pod can't reach its storage", {{"reason", opened.error().message}});
    }
  }
  return nullptr;
}

Outlet::Outlet(Fd listener, Fd wake, std::string host, std::string port)
    : listener_(std::move(listener)), wake_(std::move(wake)), host_(std::move(host)), port_(std::move(port)) {
  thread_ = std::thread([this] { run(); });
}

Outlet::~Outlet() {
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
}

// A connection ends with its client, at the latest with the pod.
void Outlet::run() {
  for (;;) {
    std::array<pollfd, 2> entries{{{listener_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) return;
    if (entries[1].revents != 0) return;
    if (entries[0].revents == 0) continue;
    Fd inside(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!inside) continue;
    std::thread([inside = std::move(inside), host = host_, port = port_]() mutable {
      serve(std::move(inside), host, port);
    }).detach();
  }
}

}  // namespace bsp::local
