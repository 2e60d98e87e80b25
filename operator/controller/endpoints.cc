#include "operator/controller/endpoints.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <format>
#include <thread>
#include <utility>

#include "base/core/guard.h"
#include "base/core/log.h"
#include "base/net/address.h"
#include "base/net/loop.h"
#include "operator/controller/client_stream.h"
#include "operator/controller/http_head.h"

namespace bsp::controller {

using std::chrono::steady_clock;

namespace {

constexpr auto kAcceptAgain = std::chrono::milliseconds(100);  // after the process ran out of descriptors

// Without the port, which differs between a client's connections.
std::string client_of(const net::Address& address) {
  const std::string text = net::to_string(address);
  return text.substr(0, text.rfind(':'));
}

}  // namespace

class Endpoints::Server {
 public:
  Server(Served served, const EndpointLimits& limits, Fd listener)
      : served_(std::move(served)), limits_(limits), listener_(std::move(listener)) {
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
  using State = ClientStream::State;
  struct Connection {
    Connection(ClientStream of_client, std::string name) : stream(std::move(of_client)), client(std::move(name)) {}
    ClientStream stream;
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
    log_warning("failed to accept a connection", {{"error", fail_errno("accept").error().message}});
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
    // Among equals the one that has been there for longest.
    const auto most = std::ranges::max_element(
        by_client, {}, [](const auto& entry) { return std::pair(entry.second.first, ~entry.second.second); });
    drop(most->second.second);
  }

  void take(Fd socket, std::string client) {
    auto connection = std::make_unique<Connection>(ClientStream(std::move(socket), served_.tls), std::move(client));
    const std::uint64_t number = connection->number = next_++;
    connection->deadline = loop_.after(limits_.time, [this, number] { drop(number); });
    loop_.watch(connection->stream.fd(), EPOLLIN, [this, number](auto) { serve(number); });
    connections_.emplace(number, std::move(connection));
  }

  void drop(std::uint64_t number) {
    const auto it = connections_.find(number);
    if (it == connections_.end()) return;
    loop_.cancel(it->second->deadline);
    loop_.unwatch(it->second->stream.fd());
    connections_.erase(it);
  }

  void serve(std::uint64_t number) {
    const auto it = connections_.find(number);
    if (it == connections_.end()) return;
    Connection& connection = *it->second;
    for (State state = State::kGoesOn; state == State::kGoesOn;) {
      state = connection.out.empty() ? read(connection) : write(connection);
      if (state == State::kEnded) return drop(number);
      // One that has its answer is not listened to for longer than others wait.
      const bool once = connection.answered && connection.out.empty();
      if (state != State::kGoesOn || once)
        loop_.change(connection.stream.fd(), state == State::kWritable ? EPOLLOUT : EPOLLIN);
      if (once) return;
    }
  }

  State read(Connection& connection) {
    const State state = connection.stream.read(connection.in);
    if (state == State::kEnded) return state;
    if (connection.answered) {
      connection.in.clear();
      return state;
    }
    if (!is_whole(connection.in)) {
      if (connection.in.size() <= limits_.request) return state;
      connection.out =
          response({431, std::format("request too large; the limit is {} bytes\n", limits_.request)}, true);
    } else if (const auto head = parse_head(connection.in, limits_.body); !head) {
      connection.out = response(head.error(), true);
    } else if (served_.post) {
      if (connection.in.size() < head->size + head->body) return state;
      connection.out = answer_post(*head, connection.in);
    } else {
      connection.out = answer(*head);
    }
    connection.in.clear();
    return State::kGoesOn;
  }

  State write(Connection& connection) {
    const State state = connection.stream.write(connection.out);
    if (state == State::kEnded || !connection.out.empty()) return state;
    connection.answered = true;
    return connection.stream.end_write() ? State::kGoesOn : State::kEnded;
  }

  std::string answer(const HttpHead& head) {
    if (head.method != "GET" && head.method != "HEAD") return response({405, "only GET and HEAD\n"}, true);
    return response(page_at(head.path), head.method == "GET");
  }

  std::string answer_post(const HttpHead& head, const std::string& request) {
    if (head.method != "POST") return response({405, "only POST\n"}, true);
    const auto page = guarded([&] { return served_.post(head.path, request.substr(head.size, head.body)); });
    return response(page ? *page : Page{500, page.error().message + "\n"}, true);
  }

  Page page_at(const std::string& path) {
    const auto page = served_.pages.find(path);
    if (page == served_.pages.end()) return {404, "no such page\n"};
    const auto now = steady_clock::now();
    const auto made = made_.find(path);
    if (made != made_.end() && now < made->second.at + limits_.fresh) return made->second.page;
    const auto page_made = guarded(page->second);
    if (!page_made) return {500, page_made.error().message + "\n"};
    const Page& fresh = *page_made;
    if (limits_.fresh.count() > 0) made_.insert_or_assign(path, Made{fresh, now});
    return fresh;
  }

  const Served served_;
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

Result<std::unique_ptr<Endpoints>> Endpoints::open(const std::string& address, Served served,
                                                   const EndpointLimits& limits) {
  BSP_TRY(const net::Address at, net::parse_address(address));
  BSP_TRY(Fd listener, net::listen_on(at));
  return std::unique_ptr<Endpoints>(
      new Endpoints(std::make_unique<Server>(std::move(served), limits, std::move(listener))));
}

}  // namespace bsp::controller
