#include "operator/exchange/link_group.h"

#include <algorithm>
#include <deque>
#include <format>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "base/core/guard.h"
#include "base/core/log.h"
#include "base/net/address.h"
#include "base/net/link.h"
#include "base/net/resolve.h"
#include "operator/exchange/once.h"

namespace bsp::exchange {
namespace {

constexpr std::chrono::milliseconds kRetry{100};
constexpr std::chrono::seconds kResolveAgain{5};
constexpr std::size_t kMaxMessagesPerRequest = 64;

using ViewPromise = std::promise<Result<View>>;
// Waits until all members have confirmed the messages sent to them so far.
struct Confirmation {
  std::vector<std::uint64_t> up_to;  // by member: the number of the next message
  std::promise<Result<void>> done;
};

}  // namespace

// Only the loop's thread may use the members below, except `loop`, `deciding` and the const ones.
struct LinkGroup::State {
  struct Peer {
    std::string address;
    std::unique_ptr<net::LinkPeer> link;  // null: its host name hasn't been resolved yet
    std::future<Result<std::string>> resolving;
    std::deque<Message> outbox;  // unconfirmed messages; the first has the number `first`
    std::uint64_t first = 1;
    bool asking = false;                                    // a request is pending, or a retry is scheduled
    bool probe = false;                                     // send a request even without messages
    net::SteadyTime silent_since = net::SteadyTime::max();  // max: it answered the last request
    std::uint64_t instance = 0;                             // 0: not known yet in this generation
    Once taken;                                             // its messages
  };

  State(net::TlsContext tls, Options o) : context(std::move(tls)), options(std::move(o)), names(options.resources) {}

  void begin(std::uint64_t to, std::vector<double> own, std::vector<double> carried);
  bool move_to(std::uint64_t to);
  void run(const std::function<void(Protocol&, Output&)>& what);
  void pump(Member to);
  void answered(Member to, std::size_t count, Result<net::Answer> answer);
  void retry(Member to, const Error& error);
  void silent(Member peer, const Error& error);
  void lost(Member peer, std::string_view why);
  void confirm();
  void serve(net::Request request, net::Reply reply);
  Result<nlohmann::json> take(const net::Request& request);
  std::uint32_t number_of(const std::string& name);
  Message renumbered(Message message, std::span<const std::uint32_t> numbers) const;
  bool has_restarted(Member peer, std::uint64_t instance);
  void resolve(Member peer);
  void resolved(Member peer);
  void tick();
  void decided(const std::vector<Assignment>& assignments);
  void close();
  // Runs `work` in the loop's thread and waits for it.
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

  std::vector<std::string> names;  // of the resources, by this member's numbers
  std::uint64_t generation = 1;
  std::uint64_t next = 0;              // the generation to move to after the decision; 0: none
  std::unique_ptr<Protocol> protocol;  // null: not joined
  std::vector<Peer> peers;
  bool wanted = false;                         // want_decision() has no result yet
  std::shared_ptr<ViewPromise> waiter;         // receives the view
  std::shared_ptr<Confirmation> confirmation;  // of the last decision, if its maker waits
  bool open = false;                           // a Decision exists
  bool closed = false;
};

// Starts a new machine for a generation, and drops all messages of the previous one.
void LinkGroup::State::begin(std::uint64_t to, std::vector<double> own, std::vector<double> carried) {
  generation = to;
  next = 0;
  protocol = make_protocol(options.mechanism, {.self = options.self,
                                               .members = static_cast<std::uint32_t>(peers.size()),
                                               .resources = static_cast<std::uint32_t>(names.size()),
                                               .threshold = options.threshold,
                                               .majority = options.majority,
                                               .initial = {},
                                               .carried = std::move(carried)});
  const net::SteadyTime now = std::chrono::steady_clock::now();
  for (Peer& peer : peers) {
    peer.outbox.clear();
    peer.first = 1;
    peer.asking = false;
    peer.probe = true;  // so that every member learns of the generation, even without a message
    // Don't wait the full time again for a member that was silent before, but give it a little, as it may have just
    // returned.
    if (peer.silent_since != net::SteadyTime::max())
      peer.silent_since = std::max(peer.silent_since, now - options.lost_after + options.lost_after / 10);
    peer.instance = 0;
    peer.taken = {};
  }
  if (const auto waiting = std::exchange(confirmation, nullptr))
    waiting->done.set_value(fail(ErrorCode::kUnavailable, "the group has moved to a new generation", true));
  run([&](Protocol& p, Output& out) { p.start(own, out); });
  if (wanted) run([](Protocol& p, Output& out) { p.want_decision(out); });
}

// False if a decision is being made; then it moves after that.
bool LinkGroup::State::move_to(std::uint64_t to) {
  if (to <= generation) return true;
  if (open) {
    next = std::max(next, to);
    return false;
  }
  const std::span<const double> own = protocol->own(), all = protocol->view().loads();
  log_info(std::format("group {}: new generation", options.name), {{"generation", to}});
  begin(to, {own.begin(), own.end()}, {all.begin(), all.end()});
  return true;
}

// Passes an event to the machine and acts on its output.
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
  run([](Protocol& p, Output& o) { p.decided({}, o); });  // the caller has timed out
}

void LinkGroup::State::pump(Member to) {
  Peer& peer = peers[to];
  if (closed || !peer.link || peer.asking || (peer.outbox.empty() && !peer.probe)) return;
  peer.asking = true;
  peer.probe = false;
  wire::ExchangeBatch batch{.group = options.name,
                            .generation = generation,
                            .from = options.self,
                            .instance = instance,
                            .resources = {},
                            .number = peer.first,
                            .messages = {}};
  const std::size_t count = std::min(peer.outbox.size(), kMaxMessagesPerRequest);
  batch.messages.assign(peer.outbox.begin(), peer.outbox.begin() + static_cast<std::ptrdiff_t>(count));
  if (count != 0) batch.resources = names;
  peer.link->call(wire::kExchange, nlohmann::json(batch), {}, options.answer_within,
                  [this, to, count, asked_in = generation](Result<net::Answer> answer) {
                    if (!closed && asked_in == generation) answered(to, count, std::move(answer));
                  });
}

void LinkGroup::State::answered(Member to, std::size_t count, Result<net::Answer> answer) {
  if (!answer) return retry(to, answer.error());
  const auto number = [&](const char* name) -> std::uint64_t {
    const auto it = answer->header.find(name);
    return it != answer->header.end() && it->is_number_unsigned() ? it->get<std::uint64_t>() : 0;
  };
  const std::uint64_t its_generation = number("generation"), its_instance = number("instance");
  if (its_generation == 0 || its_instance == 0)
    return retry(to, {ErrorCode::kInvalid, "its answer has no instance or generation"});
  if (its_generation > generation) {
    if (!move_to(its_generation)) retry(to, {ErrorCode::kUnavailable, "it is in a later generation"});
    return;
  }
  if (has_restarted(to, its_instance)) {
    if (!move_to(generation + 1)) retry(to, {ErrorCode::kUnavailable, "it has returned"});
    return;
  }
  Peer& peer = peers[to];
  peer.asking = false;
  peer.silent_since = net::SteadyTime::max();
  peer.first += count;
  peer.outbox.erase(peer.outbox.begin(), peer.outbox.begin() + static_cast<std::ptrdiff_t>(count));
  confirm();
  pump(to);
}

// Repeats the request a little later. The peer drops messages that it has already received.
void LinkGroup::State::retry(Member to, const Error& error) {
  silent(to, error);
  if (protocol->view().lost(to)) {
    peers[to].asking = false;  // the next tick sends a request
    return;
  }
  loop.after(kRetry, [this, to, asked_in = generation] {
    if (closed || asked_in != generation) return;
    peers[to].asking = false;
    peers[to].probe = true;
    pump(to);
  });
}

void LinkGroup::State::silent(Member peer, const Error& error) {
  const net::SteadyTime now = std::chrono::steady_clock::now();
  net::SteadyTime& since = peers[peer].silent_since;
  if (since == net::SteadyTime::max()) since = now;
  if (now - since >= options.lost_after) lost(peer, error.message);
}

void LinkGroup::State::lost(Member peer, std::string_view why) {
  if (!protocol || protocol->view().lost(peer)) return;
  log_warning(std::format("{} is lost: {}", label(peer), why));
  peers[peer].outbox.clear();
  run([peer](Protocol& p, Output& out) { p.lost(peer, out); });
  confirm();
}

void LinkGroup::State::confirm() {
  if (!confirmation) return;
  for (Member m = 0; m < peers.size(); ++m)
    if (m != options.self && !protocol->view().lost(m) && peers[m].first < confirmation->up_to[m]) return;
  std::exchange(confirmation, nullptr)->done.set_value({});
}

// Whether the member was lost and is back, or has restarted and knows none of our earlier messages.
bool LinkGroup::State::has_restarted(Member peer, std::uint64_t other) {
  std::uint64_t& known = peers[peer].instance;
  if (known == 0) known = other;
  return known != other || protocol->view().lost(peer);
}

void LinkGroup::State::serve(net::Request request, net::Reply reply) { reply.result(take(request)); }

Result<nlohmann::json> LinkGroup::State::take(const net::Request& request) {
  if (request.verb != wire::kExchange)
    return fail(ErrorCode::kInvalid, std::format("unknown verb \"{}\"", request.verb));
  if (!protocol) return fail(ErrorCode::kUnavailable, "this member has not joined its group yet", true);
  BSP_TRY(wire::ExchangeBatch batch,
          wire::exchange_batch_from_json(request.fields, static_cast<std::uint32_t>(peers.size())));
  if (batch.group != options.name)
    return fail(ErrorCode::kRefused, std::format("this is a member of group {}, not {}", options.name, batch.group));
  if (batch.from == options.self || request.peer != options.identities[batch.from])
    return fail(ErrorCode::kRefused,
                std::format("\"{}\" is not member {} of group {}", request.peer, batch.from, options.name));
  const bool later =
      !move_to(batch.generation) ||
      (batch.generation == generation && has_restarted(batch.from, batch.instance) && !move_to(generation + 1));
  if (later) return fail(ErrorCode::kUnavailable, "this member finishes a decision before the new generation", true);
  if (batch.generation == generation) {
    std::vector<std::uint32_t> numbers;
    for (const std::string& name : batch.resources) numbers.push_back(number_of(name));
    for (std::size_t i = 0; i < batch.messages.size() && batch.generation == generation; ++i)
      if (peers[batch.from].taken.take(batch.number + i))
        run([&, message = renumbered(std::move(batch.messages[i]), numbers)](Protocol& p, Output& out) {
          p.received(batch.from, message, out);
        });
  }
  return nlohmann::json{{"instance", instance}, {"generation", generation}};
}

std::uint32_t LinkGroup::State::number_of(const std::string& name) {
  const auto found = std::ranges::find(names, name);
  const auto number = static_cast<std::uint32_t>(found - names.begin());
  if (found != names.end()) return number;
  names.push_back(name);
  if (protocol) protocol->grow(number + 1);
  return number;
}

// Replaces the sender's resource numbers by ours.
Message LinkGroup::State::renumbered(Message message, std::span<const std::uint32_t> numbers) const {
  std::vector<double> loads(names.size());
  for (std::size_t i = 0; i < message.loads.size(); ++i) loads[numbers[i]] = message.loads[i];
  message.loads = std::move(loads);
  for (Assignment& a : message.assignments) a.resource = numbers[a.resource];
  return message;
}

// Resolves a host name in another thread, because a resolver may take its time.
void LinkGroup::State::resolve(Member peer) {
  Peer& p = peers[peer];
  if (net::parse_address(p.address)) {
    if (!p.link)
      p.link = std::make_unique<net::LinkPeer>(loop, context, net::Peer{p.address, options.identities[peer]});
  } else if (!p.resolving.valid()) {
    p.resolving = std::async(std::launch::async, [address = p.address] { return net::resolve(address); });
  }
}

void LinkGroup::State::resolved(Member peer) {
  Peer& p = peers[peer];
  if (!p.resolving.valid() || p.resolving.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  const Result<std::string> address = p.resolving.get();
  if (!address && !p.link) return silent(peer, address.error());
  if (!address || (p.link && p.link->peer().address == *address)) return;
  p.link = std::make_unique<net::LinkPeer>(loop, context, net::Peer{*address, options.identities[peer]});
}

void LinkGroup::State::tick() {
  if (closed) return;
  const net::SteadyTime now = std::chrono::steady_clock::now();
  for (Member m = 0; m < peers.size(); ++m) {
    if (m == options.self) continue;
    Peer& peer = peers[m];
    resolved(m);
    // The name may resolve to another address by now.
    if (!peer.link || (peer.silent_since != net::SteadyTime::max() && now - peer.silent_since > kResolveAgain))
      resolve(m);
    if (protocol->view().lost(m)) peer.probe = true;
  }
  run([](Protocol& p, Output& out) { p.timer(out); });
  loop.after(options.tick, [this] { tick(); });
}

void LinkGroup::State::close() {
  closed = true;
  server.reset();
  for (Peer& peer : peers) peer.link.reset();
  if (const auto left = std::exchange(waiter, nullptr))
    left->set_value(fail(ErrorCode::kUnavailable, "this member has left the group"));
  if (const auto left = std::exchange(confirmation, nullptr))
    left->done.set_value(fail(ErrorCode::kUnavailable, "this member has left the group"));
}

Result<std::unique_ptr<LinkGroup>> LinkGroup::listen(net::TlsContext context, Options options,
                                                     const std::string& address) {
  if (options.identities.size() < 2 || options.self >= options.identities.size())
    return fail(ErrorCode::kInvalid,
                std::format("group {}: it has {} members and this is member {}; it needs at least 2, counted from 0",
                            options.name, options.identities.size(), options.self));
  auto state = std::make_shared<State>(std::move(context), std::move(options));
  BSP_TRY(state->server, net::LinkServer::listen(state->loop, state->context, address,
                                                 [s = state.get()](net::Request request, net::Reply reply) {
                                                   s->serve(std::move(request), std::move(reply));
                                                 }));
  state->thread = std::thread([s = state.get()] {
    const ChecksThrow here;  // all jobs' moves depend on it
    s->loop.run();
  });
  return std::unique_ptr<LinkGroup>(new LinkGroup(std::move(state)));
}

LinkGroup::~LinkGroup() {
  state_->on_loop([this] { state_->close(); });
  state_->loop.stop();
  state_->thread.join();
}

const LinkGroup::Options& LinkGroup::options() const { return state_->options; }

std::uint16_t LinkGroup::port() const { return state_->server->port(); }

Result<void> LinkGroup::join(std::vector<std::string> addresses, std::vector<double> own) {
  const Options& options = state_->options;
  if (addresses.size() != options.identities.size())
    return fail(ErrorCode::kInvalid, std::format("group {}: {} addresses for {} members", options.name,
                                                 addresses.size(), options.identities.size()));
  Result<void> result;
  state_->on_loop([&] {
    State& s = *state_;
    if (s.protocol) {
      result = fail(ErrorCode::kConflict, std::format("group {} has already been joined", options.name));
      return;
    }
    if (own.size() != s.names.size()) {
      result = fail(ErrorCode::kInvalid,
                    std::format("group {}: {} loads for {} resources", options.name, own.size(), s.names.size()));
      return;
    }
    s.peers = std::vector<State::Peer>(addresses.size());
    for (Member m = 0; m < addresses.size(); ++m) {
      s.peers[m].address = std::move(addresses[m]);
      if (m != options.self) s.resolve(m);
    }
    s.begin(1, std::move(own), {});
    s.tick();
  });
  return result;
}

Result<LinkGroup::Decision> LinkGroup::decide(std::chrono::nanoseconds timeout) {
  const std::lock_guard lock(state_->deciding);
  auto granted = std::make_shared<ViewPromise>();
  auto future = granted->get_future();
  state_->loop.post([s = state_.get(), granted] {
    if (!s->protocol || s->closed)
      return granted->set_value(fail(ErrorCode::kUnavailable, "the group has not been joined"));
    if (s->open) return granted->set_value(fail(ErrorCode::kConflict, "the previous decision is not finished"));
    s->waiter = granted;
    if (std::exchange(s->wanted, true)) return;  // an earlier call requested it and timed out
    s->run([](Protocol& p, Output& out) { p.want_decision(out); });
  });
  if (future.wait_for(timeout) == std::future_status::timeout)
    state_->on_loop([&] {
      if (state_->waiter == granted) state_->waiter.reset();
    });
  // The loop may have set the value before the waiter was removed.
  if (future.wait_for(std::chrono::seconds(0)) == std::future_status::timeout)
    return fail(ErrorCode::kTimeout,
                std::format("group {}: timed out waiting for a view of all members", state_->options.name), true);
  BSP_TRY(View view, future.get());
  return Decision(state_, std::move(view));
}

void LinkGroup::State::decided(const std::vector<Assignment>& assignments) {
  open = false;
  run([&](Protocol& p, Output& out) { p.decided(assignments, out); });
}

void LinkGroup::Decision::assign(std::vector<Assignment> assignments) {
  const auto state = std::exchange(state_, nullptr);
  check(state != nullptr, "a decision is made only once");
  state->loop.post([s = state.get(), list = std::move(assignments)] {
    s->decided(list);
    s->move_to(s->next);
  });
}

Result<void> LinkGroup::Decision::assign_confirmed(std::vector<Assignment> assignments,
                                                   std::chrono::nanoseconds timeout) {
  const auto state = std::exchange(state_, nullptr);
  check(state != nullptr, "a decision is made only once");
  auto waiting = std::make_shared<Confirmation>();
  auto future = waiting->done.get_future();
  state->on_loop([&] {
    if (state->closed) return waiting->done.set_value(fail(ErrorCode::kUnavailable, "this member has left the group"));
    state->decided(assignments);
    for (const State::Peer& peer : state->peers) waiting->up_to.push_back(peer.first + peer.outbox.size());
    state->confirmation = waiting;
    state->confirm();
    state->move_to(state->next);
  });
  if (future.wait_for(timeout) == std::future_status::timeout)
    state->on_loop([&] {
      if (state->confirmation == waiting) state->confirmation.reset();
    });
  if (future.wait_for(std::chrono::seconds(0)) == std::future_status::timeout)
    return fail(ErrorCode::kTimeout,
                std::format("group {}: not all members have confirmed it in time", state->options.name), true);
  return future.get();
}

LinkGroup::Decision::~Decision() {
  if (state_) assign({});
}

void LinkGroup::load_changed(std::uint32_t resource, double by, bool assigned) {
  state_->loop.post([s = state_.get(), resource, by, assigned] {
    check(resource < s->names.size(), "the resource is one of the group's");
    s->run([&](Protocol& p, Output& out) { p.load_changed(resource, by, assigned, out); });
  });
}

void LinkGroup::no_more_decisions() {
  state_->loop.post([s = state_.get()] { s->run([](Protocol& p, Output& out) { p.no_more_decisions(out); }); });
}

void LinkGroup::lose(Member peer) {
  state_->loop.post([s = state_.get(), peer] { s->lost(peer, "marked by the caller"); });
}

void LinkGroup::refresh() {
  state_->loop.post([s = state_.get()] {
    if (!s->protocol || s->open || std::exchange(s->wanted, true)) return;
    s->run([](Protocol& p, Output& out) { p.want_decision(out); });
  });
}

std::uint32_t LinkGroup::resource(const std::string& name) {
  std::uint32_t number = 0;
  state_->on_loop([&] { number = state_->number_of(name); });
  return number;
}

std::vector<std::string> LinkGroup::resources() const {
  std::vector<std::string> names;
  state_->on_loop([&] { names = state_->names; });
  return names;
}

View LinkGroup::view() const {
  View view(static_cast<std::uint32_t>(state_->options.identities.size()), 0);
  state_->on_loop([&] {
    if (state_->protocol) view = state_->protocol->view();
  });
  return view;
}

}  // namespace bsp::exchange
