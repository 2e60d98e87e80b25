#include "operator/exchange/link_group_state.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/core/log.h"
#include "base/net/address.h"
#include "base/net/resolve.h"

namespace bsp::exchange {
namespace {

constexpr std::chrono::milliseconds kRetry{100};
constexpr std::chrono::seconds kResolveAgain{5};
constexpr std::size_t kMaxMessagesPerRequest = 64;

}  // namespace

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

void LinkGroup::State::decided(const std::vector<Assignment>& assignments) {
  open = false;
  run([&](Protocol& p, Output& out) { p.decided(assignments, out); });
}

}  // namespace bsp::exchange
