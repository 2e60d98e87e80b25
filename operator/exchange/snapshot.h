// Snapshot: a decision maker asks every member and decides on the answers; one at a time.
//
// Source: RR-5478, the demand-driven mechanism (a distributed snapshot; leader election makes concurrent ones
// sequential: the smallest rank wins. Losers repeat their requests with a new id, and answers to old ids are dropped. A
// request that arrives while another leader is active is answered when that one has finished).
//
//        want           all answers         decided: End to all
//  Idle ──────> Asking ─────────────> Deciding ──────────────────> Idle
//               ^    │ a smaller rank starts: ask those that have answered again with a new id,
//               └────┘ which frees them to answer the smaller rank
//
// A member grants one request at a time (its own included): its Answer binds it until the requester's End or next
// Start. A decision needs everyone's grant, so at most one member decides at any time. An End carries the assignments,
// so a member that is free for the next request has counted them. That holds for any order of messages: a Start says
// how many decisions its sender had finished, and a member sets it aside until it knows all of them.
//
// To answer while its program computes, a member needs another thread. Protocol leaves that to its user (link_group.h
// has one).
#pragma once

#include <set>

#include "operator/exchange/protocol.h"

namespace bsp::exchange {

class Snapshot final : public Protocol {
 public:
  explicit Snapshot(Config config);

  void start(std::span<const double> own, Output& out) override;
  void received(Member from, const Message& message, Output& out) override;
  void load_changed(std::uint32_t resource, double by, bool assigned, Output& out) override;
  void want_decision(Output& out) override;
  void decided(std::span<const Assignment> assignments, Output& out) override;
  void no_more_decisions(Output& out) override;
  void lost(Member peer, Output& out) override;
  void timer(Output& out) override;
  [[nodiscard]] bool bound() const override { return granted_ && granted_ != config_.self; }

 private:
  enum class State { kIdle, kAsking, kDeciding };
  struct Peer {
    // Its requests to us
    std::uint64_t request = 0;       // the newest id
    std::uint64_t taken = 0;         // its decisions that we have counted
    std::optional<Message> aside{};  // a Start that arrived before the preceding End
    // Our request to it
    std::uint64_t asked = 0;  // the newest id
    bool answered = false;    // that id
  };

  void take_start(Member from, const Message& start, Output& out);
  void take_answer(Member from, const Message& answer, Output& out);
  void take_end(Member from, const Message& end, Output& out);
  // The smallest rank that we know wants to decide; members() if none does.
  [[nodiscard]] Member leader() const { return active_.empty() ? config_.members : *active_.begin(); }
  void ask(std::vector<Member> whom, Output& out);  // with a new id
  void grant_next(Output& out);                     // to the leader, unless we have granted a request
  void decide_if_complete(Output& out);

  State state_ = State::kIdle;
  std::optional<Member> granted_;  // whose request we have granted
  std::uint64_t last_id_ = 0;
  std::uint64_t decisions_ = 0;
  std::vector<Peer> peers_;
  std::set<Member> active_;  // members that want to decide or are deciding, as far as we know; including this one
  std::size_t missing_ = 0;  // answers
};

}  // namespace bsp::exchange
