// LinkServer and Reply.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <deque>
#include <unordered_map>

#include "base/core/log.h"
#include "base/net/address.h"
#include "base/net/link.h"
#include "base/net/tls_connection.h"

namespace bsp::net {

namespace {
constexpr std::size_t kMaxHandshakes = 1024;
}

// --- Reply -----------------------------------------------------------------------------------------

Reply::Reply(Loop& loop, std::weak_ptr<TlsConnection> connection) : loop_(&loop), connection_(std::move(connection)) {}

Reply::Reply(Reply&& other) noexcept
    : loop_(std::exchange(other.loop_, nullptr)), connection_(std::move(other.connection_)) {}

Reply& Reply::operator=(Reply&& other) noexcept {
  if (this != &other) {
    if (loop_) error({ErrorCode::kFailed, "the request was dropped"});
    loop_ = std::exchange(other.loop_, nullptr);
    connection_ = std::move(other.connection_);
  }
  return *this;
}

Reply::~Reply() {
  if (loop_) error({ErrorCode::kFailed, "the request was not answered"});
}

void Reply::send(nlohmann::json header, std::string body) {
  check(loop_ != nullptr, "a request is answered once");
  Loop* loop = std::exchange(loop_, nullptr);
  loop->post([weak = connection_, header = std::move(header), body = std::move(body)]() mutable {
    auto connection = weak.lock();
    if (!connection) return;
    std::string head = encode_frame_head(header, body.size());
    connection->send(std::move(head), std::move(body));
    connection->hold(false);
  });
}

void Reply::ok(nlohmann::json fields, std::string body) {
  if (!fields.is_object()) fields = nlohmann::json::object();
  fields["ok"] = true;
  send(std::move(fields), std::move(body));
}

void Reply::error(const Error& error) { send(error_header(error), {}); }

void Reply::result(Result<nlohmann::json> result) {
  if (result)
    ok(std::move(*result));
  else
    error(result.error());
}

void Reply::take_over(TakenOver then) {
  check(loop_ != nullptr, "a request is answered once");
  Loop* loop = std::exchange(loop_, nullptr);
  loop->post([weak = connection_, then = std::move(then)]() mutable {
    auto connection = weak.lock();
    if (!connection) return then(fail(ErrorCode::kUnavailable, "the peer closed the connection", true));
    connection->send(encode_frame_head({{"ok", true}}, 0), {});
    connection->release(std::move(then));
  });
}

// --- LinkServer --------------------------------------------------------------------------------------

struct LinkServer::State : std::enable_shared_from_this<LinkServer::State> {
  State(Loop& loop_in, TlsContext context_in, Handler handler_in, LimitsOf limits_in)
      : loop(loop_in),
        context(std::move(context_in)),
        handler(std::move(handler_in)),
        limits_of(std::move(limits_in)) {}

  void accept_all() {
    while (true) {
      Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno != EAGAIN) {
          // Out of descriptors or memory: retry later; the backlog keeps the connection until then.
          log_warning("failed to accept connection, will retry", {{"errno", errno}});
          loop.unwatch(listener.get());
          loop.after(std::chrono::milliseconds(100), [weak = weak_from_this()] {
            if (auto self = weak.lock()) self->watch_listener();
          });
        }
        return;
      }
      set_socket_options(socket.get());
      add(TlsSocket(context, std::move(socket), TlsRole::kServer));
    }
  }

  void watch_listener() {
    loop.watch(listener.get(), EPOLLIN, [this](Loop::Events) { accept_all(); });
  }

  void add(TlsSocket socket) {
    std::uint64_t id = next_id++;
    auto connection = std::make_shared<TlsConnection>(
        loop, std::move(socket), TlsRole::kServer,
        TlsConnection::Events{.ready = {},
                              .limits = [this, id] { return limits_of(connections.at(id)->identity()); },
                              .frame = [this, id](Frame frame) { handle(id, std::move(frame)); },
                              .closed =
                                  [this, id](const Error& error) {
                                    log_debug("connection closed", {{"reason", error.message}});
                                    connections.erase(id);
                                  }});
    connections.emplace(id, connection);
    handshaking.push_back(id);
    // Anyone who reaches the port can start a handshake, so unfinished ones must not pile up. A genuine handshake is
    // quick, so drop the oldest: it is the least likely to be genuine.
    if (handshaking.size() > kMaxHandshakes) {
      const auto oldest = connections.find(handshaking.front());
      handshaking.pop_front();
      if (oldest != connections.end() && oldest->second->identity().empty()) {
        const auto dropped = oldest->second;
        connections.erase(oldest);
        dropped->close();
      }
    }
    connection->start();
  }

  void handle(std::uint64_t id, Frame frame) {
    std::shared_ptr<TlsConnection> connection = connections.at(id);
    auto verb = frame.header.find("verb");
    Reply reply(loop, connection);
    connection->hold(true);
    if (verb == frame.header.end() || !verb->is_string())
      return reply.error({ErrorCode::kInvalid, "the request has no \"verb\""});
    Request request{connection->identity(), verb->get<std::string>(), std::move(frame.header), std::move(frame.body)};
    handler(std::move(request), std::move(reply));
  }

  Loop& loop;
  TlsContext context;
  Handler handler;
  LimitsOf limits_of;
  Fd listener;
  std::unordered_map<std::uint64_t, std::shared_ptr<TlsConnection>> connections;
  std::deque<std::uint64_t> handshaking;  // accepted last; oldest first
  std::uint64_t next_id = 1;
};

Result<std::unique_ptr<LinkServer>> LinkServer::listen(Loop& loop, TlsContext context, const std::string& address,
                                                       Handler handler, LimitsOf limits_of) {
  BSP_TRY(Address parsed, parse_address(address));
  BSP_TRY(Fd listener, listen_on(parsed));
  auto state = std::make_shared<State>(loop, std::move(context), std::move(handler), std::move(limits_of));
  state->listener = std::move(listener);
  state->watch_listener();
  return std::unique_ptr<LinkServer>(new LinkServer(std::move(state)));
}

LinkServer::~LinkServer() {
  state_->loop.unwatch(state_->listener.get());
  auto connections = std::exchange(state_->connections, {});
  for (auto& [id, connection] : connections) connection->close();
}

std::uint16_t LinkServer::port() const { return local_port(state_->listener.get()); }

}  // namespace bsp::net
