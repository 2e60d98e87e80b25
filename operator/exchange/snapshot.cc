#include "operator/exchange/snapshot.h"

#include <algorithm>
#include <utility>

namespace bsp::exchange {

Snapshot::Snapshot(Config config) : Protocol(std::move(config)), peers_(config_.members) {}

void Snapshot::start(std::span<const double> own, Output& /*out*/) {
  std::ranges::copy(own, view_.row(config_.self).begin());
}

void Snapshot::received(Member from, const Message& message, Output& out) {
  if (view_.lost(from)) return;
  switch (message.kind) {
    case Kind::kStart:
      return take_start(from, message, out);
    case Kind::kAnswer:
      return take_answer(from, message, out);
    case Kind::kEnd:
      return take_end(from, message, out);
    case Kind::kHello:
    case Kind::kLoads:
    case Kind::kReserve:
    case Kind::kNoMoreMaster:
      return;  // from another mechanism
  }
}

void Snapshot::load_changed(std::uint32_t resource, double by, bool assigned, Output& /*out*/) {
  if (assigned && by > 0) return;  // the End has counted it
  view_.row(config_.self)[resource] += by;
}

void Snapshot::want_decision(Output& out) {
  if (state_ != State::kIdle) return;
  state_ = State::kAsking;
  active_.insert(config_.self);
  missing_ = 0;
  std::vector<Member> all;
  for (Member m = 0; m < config_.members; ++m) {
    peers_[m].answered = false;
    if (m == config_.self || view_.lost(m)) continue;
    all.push_back(m);
    ++missing_;
  }
  ask(std::move(all), out);
  grant_next(out);
}

void Snapshot::ask(std::vector<Member> whom, Output& out) {
  if (whom.empty()) return;
  ++last_id_;
  for (const Member m : whom) peers_[m].asked = last_id_;
  out.sends.push_back(
      {.to = std::move(whom), .message = {.kind = Kind::kStart, .id = last_id_, .decided = decisions_}});
}

void Snapshot::take_start(Member from, const Message& start, Output& out) {
  Peer& peer = peers_[from];
  // Its last End hasn't arrived yet: an answer without that decision would be wrong.
  if (start.decided > peer.taken) {
    if (!peer.aside || peer.aside->id < start.id) peer.aside = start;
    return;
  }
  if (start.decided < peer.taken || start.id <= peer.request) return;  // out of date
  peer.request = start.id;
  active_.insert(from);
  if (granted_ == from) granted_.reset();  // it yielded, and asks again
  // We yield too: asking those that have answered again lets them answer the smaller rank first.
  if (state_ == State::kAsking && from < config_.self) {
    std::vector<Member> again;
    for (Member m = 0; m < config_.members; ++m) {
      if (!peers_[m].answered || view_.lost(m)) continue;
      peers_[m].answered = false;
      ++missing_;
      again.push_back(m);
    }
    ask(std::move(again), out);
    if (granted_ == config_.self) granted_.reset();
  }
  grant_next(out);
}

void Snapshot::grant_next(Output& out) {
  if (!granted_) {
    const Member to = leader();
    if (to == config_.members) return;
    granted_ = to;
    if (to != config_.self)
      out.sends.push_back(
          {.to = {to},
           .message = {.kind = Kind::kAnswer, .id = peers_[to].request, .loads = {own().begin(), own().end()}}});
  }
  decide_if_complete(out);
}

void Snapshot::take_answer(Member from, const Message& answer, Output& out) {
  Peer& peer = peers_[from];
  if (state_ != State::kAsking || answer.id != peer.asked || peer.answered) return;  // answers an old id
  // It doesn't know yet of the smaller rank that we yield to.
  if (leader() < config_.self) return ask({from}, out);
  peer.answered = true;
  --missing_;
  std::ranges::copy(answer.loads, view_.row(from).begin());
  decide_if_complete(out);
}

void Snapshot::decide_if_complete(Output& out) {
  if (state_ != State::kAsking || granted_ != config_.self || missing_ > 0) return;
  std::uint32_t present = 0;
  for (Member m = 0; m < config_.members; ++m) present += view_.lost(m) ? 0 : 1;
  if (config_.majority && 2 * present <= config_.members) return;
  state_ = State::kDeciding;
  out.ready = true;
}

void Snapshot::decided(std::span<const Assignment> assignments, Output& out) {
  check(state_ == State::kDeciding, "decided() follows Output::ready");
  for (const Assignment& a : assignments) view_.add(a);
  ++decisions_;
  Send send{
      .to = {},
      .message = {.kind = Kind::kEnd, .decided = decisions_, .assignments = {assignments.begin(), assignments.end()}}};
  for (Member m = 0; m < config_.members; ++m)
    if (m != config_.self && !view_.lost(m)) send.to.push_back(m);
  if (!send.to.empty()) out.sends.push_back(std::move(send));
  state_ = State::kIdle;
  active_.erase(config_.self);
  granted_.reset();
  grant_next(out);
}

void Snapshot::take_end(Member from, const Message& end, Output& out) {
  Peer& peer = peers_[from];
  if (end.decided <= peer.taken) return;
  // One at a time: no decision is ready without our grant, and we grant nothing while an End is missing.
  peer.taken = end.decided;
  active_.erase(from);
  // A member that has answered our request has already counted what it was assigned before.
  for (const Assignment& a : end.assignments)
    if (state_ != State::kAsking || !peers_[a.to].answered) view_.add(a);
  if (granted_ == from) granted_.reset();
  if (const auto start = std::exchange(peer.aside, std::nullopt)) take_start(from, *start, out);
  grant_next(out);
}

// Members that won't decide again still have to answer.
void Snapshot::no_more_decisions(Output& /*out*/) {}

void Snapshot::lost(Member peer, Output& out) {
  if (view_.lost(peer)) return;
  view_.set_lost(peer);
  if (state_ == State::kAsking && !peers_[peer].answered) --missing_;
  peers_[peer].aside.reset();
  active_.erase(peer);
  if (granted_ == peer) granted_.reset();
  grant_next(out);
}

void Snapshot::timer(Output& out) {
  if (bound()) out.late.push_back(*granted_);
  if (state_ != State::kAsking) return;
  for (Member m = 0; m < config_.members; ++m)
    if (m != config_.self && m != granted_ && !view_.lost(m) && !peers_[m].answered) out.late.push_back(m);
}

}  // namespace bsp::exchange
