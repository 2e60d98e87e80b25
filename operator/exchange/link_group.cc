#include "operator/exchange/link_group.h"

#include <deque>
#include <format>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/core/log.h"
#include "base/net/link.h"
#include "operator/exchange/once.h"

namespace bsp::exchange {
namespace {

constexpr std::chrono::milliseconds kRetry{100};
constexpr std::size_t kMessagesInARequest = 64;

using Granted = std::promise<Result<View>>;

}  // namespace

// All members below, but for `loop`, `deciding` and what is const, belong to the loop's thread.
struct LinkGroup::State {
  struct Peer {
    std::unique_ptr<net::LinkPeer> link;
    std::deque<Message> outbox;  // not confirmed; the first has the number `first`
    std::uint64_t first = 1;
    bool asking = false;                                    // a request is under way, or a retry is planned
    bool probe = false;                                     // ask even without messages
    net::SteadyTime silent_since = net::SteadyTime::max();  // max: the last request was answered
    std::uint64_t instance = 0;                             // 0: not known yet
    Once taken;                                             // of its messages
  };

  State(net::TlsContext tls, Options o) : context(std::move(tls)), options(std::move(o)) {}

  void run(const std::function<void(Protocol&, Output&)>& what);
  void pump(Member to);
  void answered(Member to, std::size_t count, Result<net::Answer> answer);
  void retry(Member to, const Error& error);
  void lost(Member peer, std::string_view why);
  void serve(net::Request request, net::Reply reply);
  Result<nlohmann::json> take(const net::Request& request);
  Result<void> same_instance(Member peer, std::uint64_t instance);
  void tick();
  void close();
  // Runs in the loop's thread and waits for its end.
  void on_loop(const std::function<void()>& work) {
    std::promise<void> done;
    loop.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }
  [[nodiscard]] std::string label(Member m) const {
    return std::format("{} of group {}", options.identities[m], options.name);
  }

  const net::TlsContext context;
  const Options options;
  const std::uint64_t instance = std::random_device{}() + 1ull;
  net::Loop loop;
  std::unique_ptr<net::LinkServer> server;
  std::thread thread;
  std::mutex deciding;  // one decide() at a time

  std::unique_ptr<Protocol> protocol;  // null: not joined
  std::vector<Peer> peers;
  bool wanted = false;              // want_decision() has no answer yet
  std::shared_ptr<Granted> waiter;  // who shall have the view
  bool open = false;                // a Decision exists
  bool closed = false;
};

// An event for the machine, and what follows from it.
void LinkGroup::State::run(const std::function<void(Protocol&, Output&)>& what) {
  if (!protocol || closed) return;
  Output out;
  what(*protocol, out);
  for (const Send& send : out.sends)
    for (const Member to : send.to) peers[to].outbox.push_back(send.message);
  for (const Member late : out.late) peers[late].probe = true;
  for (Member m = 0; m < peers.size(); ++m) pump(m);
  if (!out.ready) return;
  wanted = false;
  if (const auto granted = std::exchange(waiter, nullptr)) {
    open = true;
    granted->set_value(protocol->view());
    return;
  }
  run([](Protocol& p, Output& o) { p.decided({}, o); });  // whoever wanted it has gone
}

void LinkGroup::State::pump(Member to) {
  Peer& peer = peers[to];
  if (closed || !peer.link || peer.asking || (peer.outbox.empty() && !peer.probe)) return;
  peer.asking = true;
  peer.probe = false;
  wire::ExchangeBatch batch{
      .group = options.name, .from = options.self, .instance = instance, .number = peer.first, .messages = {}};
  const std::size_t count = std::min(peer.outbox.size(), kMessagesInARequest);
  batch.messages.assign(peer.outbox.begin(), peer.outbox.begin() + static_cast<std::ptrdiff_t>(count));
  peer.link->call(wire::kExchange, nlohmann::json(batch), {}, options.answer_within,
                  [this, to, count](Result<net::Answer> answer) { answered(to, count, std::move(answer)); });
}

void LinkGroup::State::answered(Member to, std::size_t count, Result<net::Answer> answer) {
  if (closed || protocol->view().lost(to)) return;
  if (!answer) return retry(to, answer.error());
  const auto other = answer->header.find("instance");
  if (other == answer->header.end() || !other->is_number_unsigned())
    return retry(to, {ErrorCode::kInvalid, "its answer lacks the instance"});
  if (!same_instance(to, other->get<std::uint64_t>())) return;
  Peer& peer = peers[to];
  peer.asking = false;
  peer.silent_since = net::SteadyTime::max();
  peer.first += count;
  peer.outbox.erase(peer.outbox.begin(), peer.outbox.begin() + static_cast<std::ptrdiff_t>(count));
  pump(to);
}

// The same request again, a little later: the peer takes in what it has already had only once.
void LinkGroup::State::retry(Member to, const Error& error) {
  Peer& peer = peers[to];
  const net::SteadyTime now = std::chrono::steady_clock::now();
  if (peer.silent_since == net::SteadyTime::max()) peer.silent_since = now;
  if (now - peer.silent_since >= options.lost_after) return lost(to, error.message);
  loop.after(kRetry, [this, to] {
    if (closed || protocol->view().lost(to)) return;
    peers[to].asking = false;
    peers[to].probe = true;
    pump(to);
  });
}

void LinkGroup::State::lost(Member peer, std::string_view why) {
  if (!protocol || protocol->view().lost(peer)) return;
  log_warning(std::format("{} is lost: {}", label(peer), why));
  peers[peer].outbox.clear();
  run([peer](Protocol& p, Output& out) { p.lost(peer, out); });
}

// A member that began anew knows nothing of what it was told: to this group it is another one.
Result<void> LinkGroup::State::same_instance(Member peer, std::uint64_t other) {
  std::uint64_t& known = peers[peer].instance;
  if (known == 0) known = other;
  if (known != other) lost(peer, "it has been started anew");
  if (protocol->view().lost(peer))
    return fail(ErrorCode::kRefused,
                std::format("{} is lost to it; all members have to form a group of another name", label(peer)));
  return {};
}

void LinkGroup::State::serve(net::Request request, net::Reply reply) { reply.result(take(request)); }

Result<nlohmann::json> LinkGroup::State::take(const net::Request& request) {
  if (request.verb != wire::kExchange)
    return fail(ErrorCode::kInvalid, std::format("\"{}\" is no verb of load exchange", request.verb));
  if (!protocol) return fail(ErrorCode::kUnavailable, "this member has not joined its group yet", true);
  BSP_TRY(const wire::ExchangeBatch batch,
          wire::exchange_batch_from_json(
              request.fields, {.members = static_cast<std::uint32_t>(peers.size()), .resources = options.resources}));
  if (batch.group != options.name)
    return fail(ErrorCode::kRefused, std::format("this is a member of group {}, not {}", options.name, batch.group));
  if (batch.from == options.self || request.peer != options.identities[batch.from])
    return fail(ErrorCode::kRefused,
                std::format("\"{}\" is not member {} of group {}", request.peer, batch.from, options.name));
  BSP_CHECK_OK(same_instance(batch.from, batch.instance));
  for (std::size_t i = 0; i < batch.messages.size(); ++i)
    if (peers[batch.from].taken.take(batch.number + i))
      run([&](Protocol& p, Output& out) { p.received(batch.from, batch.messages[i], out); });
  return nlohmann::json{{"instance", instance}};
}

void LinkGroup::State::tick() {
  if (closed) return;
  run([](Protocol& p, Output& out) { p.timer(out); });
  loop.after(options.tick, [this] { tick(); });
}

void LinkGroup::State::close() {
  closed = true;
  server.reset();
  for (Peer& peer : peers) peer.link.reset();
  if (const auto left = std::exchange(waiter, nullptr))
    left->set_value(fail(ErrorCode::kUnavailable, "the group was left"));
}

Result<std::unique_ptr<LinkGroup>> LinkGroup::listen(net::TlsContext context, Options options,
                                                     const std::string& address) {
  if (options.identities.size() < 2 || options.self >= options.identities.size())
    return fail(ErrorCode::kInvalid,
                std::format("group {}: {} members, of which this is number {}; it needs two at least, counted from 0",
                            options.name, options.identities.size(), options.self));
  if (options.resources == 0)
    return fail(ErrorCode::kInvalid, std::format("group {}: no resources to share", options.name));
  auto state = std::make_shared<State>(std::move(context), std::move(options));
  BSP_TRY(state->server, net::LinkServer::listen(state->loop, state->context, address,
                                                 [s = state.get()](net::Request request, net::Reply reply) {
                                                   s->serve(std::move(request), std::move(reply));
                                                 }));
  state->thread = std::thread([s = state.get()] { s->loop.run(); });
  return std::unique_ptr<LinkGroup>(new LinkGroup(std::move(state)));
}

LinkGroup::~LinkGroup() {
  state_->on_loop([this] { state_->close(); });
  state_->loop.stop();
  state_->thread.join();
}

std::uint16_t LinkGroup::port() const { return state_->server->port(); }

Result<void> LinkGroup::join(std::vector<std::string> addresses, std::vector<double> own) {
  const Options& options = state_->options;
  if (addresses.size() != options.identities.size())
    return fail(ErrorCode::kInvalid, std::format("group {}: {} addresses for {} members", options.name,
                                                 addresses.size(), options.identities.size()));
  if (own.size() != options.resources)
    return fail(ErrorCode::kInvalid,
                std::format("group {}: {} loads for {} resources", options.name, own.size(), options.resources));
  Result<void> result;
  state_->on_loop([&] {
    State& s = *state_;
    if (s.protocol) {
      result = fail(ErrorCode::kConflict, std::format("group {} was joined before", options.name));
      return;
    }
    s.peers = std::vector<State::Peer>(addresses.size());
    for (Member m = 0; m < addresses.size(); ++m)
      if (m != options.self)
        s.peers[m].link =
            std::make_unique<net::LinkPeer>(s.loop, s.context, net::Peer{addresses[m], options.identities[m]});
    s.protocol = make_protocol(options.mechanism, {.self = options.self,
                                                   .members = static_cast<std::uint32_t>(addresses.size()),
                                                   .resources = options.resources,
                                                   .threshold = options.threshold,
                                                   .majority = options.majority,
                                                   .initial = {}});
    s.run([&](Protocol& p, Output& out) { p.start(own, out); });
    s.tick();
  });
  return result;
}

Result<LinkGroup::Decision> LinkGroup::decide(std::chrono::nanoseconds timeout) {
  const std::lock_guard lock(state_->deciding);
  auto granted = std::make_shared<Granted>();
  auto future = granted->get_future();
  state_->loop.post([s = state_.get(), granted] {
    if (!s->protocol || s->closed)
      return granted->set_value(fail(ErrorCode::kUnavailable, "the group has not been joined"));
    if (s->open) return granted->set_value(fail(ErrorCode::kConflict, "the decision before is not ended"));
    s->waiter = granted;
    if (std::exchange(s->wanted, true)) return;  // from an earlier call that gave up
    s->run([](Protocol& p, Output& out) { p.want_decision(out); });
  });
  if (future.wait_for(timeout) == std::future_status::timeout)
    state_->on_loop([&] {
      if (state_->waiter == granted) state_->waiter.reset();
    });
  // The loop may have been faster than the withdrawal.
  if (future.wait_for(std::chrono::seconds(0)) == std::future_status::timeout)
    return fail(ErrorCode::kTimeout, std::format("group {}: no view of all members in time", state_->options.name),
                true);
  BSP_TRY(View view, future.get());
  return Decision(state_, std::move(view));
}

void LinkGroup::Decision::assign(std::vector<Assignment> assignments) {
  const auto state = std::exchange(state_, nullptr);
  check(state != nullptr, "a decision is made once");
  state->loop.post([s = state.get(), list = std::move(assignments)] {
    s->open = false;
    s->run([&](Protocol& p, Output& out) { p.decided(list, out); });
  });
}

LinkGroup::Decision::~Decision() {
  if (state_) assign({});
}

void LinkGroup::load_changed(std::uint32_t resource, double by, bool assigned) {
  check(resource < state_->options.resources, "a resource of the group");
  state_->loop.post([s = state_.get(), resource, by, assigned] {
    s->run([&](Protocol& p, Output& out) { p.load_changed(resource, by, assigned, out); });
  });
}

void LinkGroup::no_more_decisions() {
  state_->loop.post([s = state_.get()] { s->run([](Protocol& p, Output& out) { p.no_more_decisions(out); }); });
}

void LinkGroup::lose(Member peer) {
  state_->loop.post([s = state_.get(), peer] { s->lost(peer, "so it was said"); });
}

View LinkGroup::view() const {
  View view(static_cast<std::uint32_t>(state_->options.identities.size()), state_->options.resources);
  state_->on_loop([&] {
    if (state_->protocol) view = state_->protocol->view();
  });
  return view;
}

}  // namespace bsp::exchange
