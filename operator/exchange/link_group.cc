#include "operator/exchange/link_group.h"

#include <format>

#include "base/core/guard.h"
#include "operator/exchange/link_group_state.h"

namespace bsp::exchange {

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
