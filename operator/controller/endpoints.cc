#include "operator/controller/endpoints.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <format>
#include <optional>
#include <thread>
#include <utility>

#include "base/core/guard.h"
#include "base/core/log.h"
#include "base/net/address.h"
#include "base/net/loop.h"

namespace bsp::controller {

using std::chrono::steady_clock;

namespace {

constexpr auto kAcceptAgain = std::chrono::milliseconds(100);  // after the process ran out of descriptors

// Without the port, which differs between a client's connections.
std::string client_of(const net::Address& address) {
  const std::string text = net::to_string(address);
  return text.substr(0, text.rfind(':'));
}

const char* reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    default:
      return "Service Unavailable";
  }
}

std::string response(const Page& page, bool with_body) {
  std::string text = std::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n"
      "Connection: close\r\n\r\n",
      page.status, reason_of(page.status), page.text.size());
  if (with_body) text += page.text;
  return text;
}

}  // namespace

class Endpoints::Server {
 public:
  Server(std::map<std::string, std::function<Page()>> pages, const EndpointLimits& limits, Fd listener)
      : pages_(std::move(pages)), limits_(limits), listener_(std::move(listener)) {
    loop_.watch(listener_.get(), EPOLLIN, [this](auto) { accept_all(); });
    thread_ = std::thread([this] {
      const ChecksThrow here;  // a page that fails mustn't end the process
      loop_.run();
    });
  }
  ~Server() {
    loop_.stop();
    thread_.join();
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  struct Connection {
    Fd socket;
    std::string client;
    std::uint64_t number = 0;  // lower is older
    std::string in, out;
    bool answered = false;  // waits for the client to close, because closing with unread bytes would destroy the answer
    net::Loop::TimerId deadline = 0;
  };
  struct Made {
    Page page;
    steady_clock::time_point at;
  };

  void accept_all() {
    for (;;) {
      net::Address from;
      from.size = sizeof from.storage;
      Fd socket(::accept4(listener_.get(), reinterpret_cast<sockaddr*>(&from.storage), &from.size,
                          SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK) out_of_descriptors();
        return;
      }
      if (connections_.size() >= limits_.connections) drop_one();
      take(std::move(socket), client_of(from));
    }
  }

  // The listener stays readable, so don't poll it for a while.
  void out_of_descriptors() {
    log_warning("failed to accept a connection of a probe or scrape",
                {{"error", fail_errno("accept").error().message}});
    if (!connections_.empty()) drop_one();
    loop_.change(listener_.get(), 0);
    loop_.after(kAcceptAgain, [this] { loop_.change(listener_.get(), EPOLLIN); });
  }

  void drop_one() {
    std::map<std::string, std::pair<std::size_t, std::uint64_t>> by_client;  // connections; the number of the oldest
    for (const auto& [number, connection] : connections_) {
      auto& [count, oldest] = by_client[connection->client];
      if (count++ == 0) oldest = number;  // in ascending order
    }
    const auto most = std::ranges::max_element(by_client, {}, [](const auto& entry) { return entry.second.first; });
    drop(most->second.second);
  }

  void take(Fd socket, std::string client) {
    auto connection = std::make_unique<Connection>();
    connection->socket = std::move(socket);
    connection->client = std::move(client);
    const std::uint64_t number = connection->number = next_++;
    connection->deadline = loop_.after(limits_.time, [this, number] { drop(number); });
    loop_.watch(connection->socket.get(), EPOLLIN, [this, number](auto) { serve(number); });
    connections_.emplace(number, std::move(connection));
  }

  void drop(std::uint64_t number) {
    const auto it = connections_.find(number);
    if (it == connections_.end()) return;
    loop_.cancel(it->second->deadline);
    loop_.unwatch(it->second->socket.get());
    connections_.erase(it);
  }

  void serve(std::uint64_t number) {
    const auto it = connections_.find(number);
    if (it == connections_.end()) return;
    Connection& connection = *it->second;
    if (!(connection.out.empty() ? read(connection) : write(connection))) drop(number);
  }

  // False if the connection has ended.
  bool read(Connection& connection) {
    char buffer[4096];
    const ssize_t n = ::recv(connection.socket.get(), buffer, sizeof buffer, 0);
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    if (n == 0) return false;
    if (connection.answered) return true;
    connection.in.append(buffer, static_cast<std::size_t>(n));
    const bool whole = connection.in.contains("\r\n\r\n");
    if (!whole && connection.in.size() <= limits_.request) return true;
    connection.out =
        whole ? answer(connection.in)
              : response({431, std::format("request too large; the limit is {} bytes\n", limits_.request)}, true);
    connection.in.clear();
    return write(connection);
  }

  bool write(Connection& connection) {
    while (!connection.out.empty()) {
      const ssize_t n = ::send(connection.socket.get(), connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        loop_.change(connection.socket.get(), EPOLLOUT);
        return true;
      }
      if (n < 0) return false;
      connection.out.erase(0, static_cast<std::size_t>(n));
    }
    connection.answered = true;
    loop_.change(connection.socket.get(), EPOLLIN);
    return ::shutdown(connection.socket.get(), SHUT_WR) == 0;
  }

  std::string answer(std::string_view request) {
    const std::string_view line = request.substr(0, request.find("\r\n"));
    const std::size_t method_end = line.find(' '), path_end = line.find(' ', method_end + 1);
    if (method_end == std::string_view::npos || path_end == std::string_view::npos ||
        !line.substr(path_end + 1).starts_with("HTTP/1."))
      return response({400, "not an HTTP/1 request\n"}, true);
    const std::string_view method = line.substr(0, method_end);
    if (method != "GET" && method != "HEAD") return response({405, "only GET and HEAD\n"}, true);
    std::string_view path = line.substr(method_end + 1, path_end - method_end - 1);
    path = path.substr(0, path.find('?'));
    return response(page_at(std::string(path)), method == "GET");
  }

  Page page_at(const std::string& path) {
    const auto page = pages_.find(path);
    if (page == pages_.end()) return {404, "no such page\n"};
    const auto now = steady_clock::now();
    const auto made = made_.find(path);
    if (made != made_.end() && now < made->second.at + limits_.fresh) return made->second.page;
    const auto page_made = guarded(page->second);
    if (!page_made) return {500, page_made.error().message + "\n"};
    const Page& fresh = *page_made;
    if (limits_.fresh.count() > 0) made_.insert_or_assign(path, Made{fresh, now});
    return fresh;
  }

  const std::map<std::string, std::function<Page()>> pages_;
  const EndpointLimits limits_;
  const Fd listener_;
  std::map<std::string, Made> made_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;  // by number
  std::uint64_t next_ = 1;
  net::Loop loop_;
  std::thread thread_;
};

Endpoints::Endpoints(std::unique_ptr<Server> server) : server_(std::move(server)) {}
Endpoints::~Endpoints() = default;

Result<std::unique_ptr<Endpoints>> Endpoints::open(const std::string& address,
                                                   std::map<std::string, std::function<Page()>> pages,
                                                   const EndpointLimits& limits) {
  BSP_TRY(const net::Address at, net::parse_address(address));
  BSP_TRY(Fd listener, net::listen_on(at));
  return std::unique_ptr<Endpoints>(
      new Endpoints(std::make_unique<Server>(std::move(pages), limits, std::move(listener))));
}

}  // namespace bsp::controller
