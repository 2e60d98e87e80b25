// Snapshot: a decision maker asks everybody and decides on the answers; one at a time.
//
// Source: RR-5478, the demand-driven mechanism (a distributed snapshot, concurrent ones made sequential by leader
// election: the smallest rank wins; losers' requests are issued again with a new id, answers to old ids are dropped, a
// request that comes while another leader is active is answered when that one has ended).
//
//        want           all answers         decided: End to all
//  Idle ──────> Asking ─────────────> Deciding ──────────────────> Idle
//               ^    │ a smaller rank starts: whoever has answered is asked again with a new id,
//               └────┘ and is free to answer the smaller one
//
// As one who answers, a member gives its word to one asker at a time (itself included): an Answer binds it until the
// asker's End or the asker's next Start. Everybody's word is needed to decide, so at most one member decides at any
// time; and an End carries the assignments, so that whoever is free for the next asker has counted them. That holds for
// any order of messages: a Start tells how many decisions its sender had finished, and is set aside until the last of
// them is known here.
//
// Who is asked while its program computes has to answer from another thread if the asker shall not wait for it:
// Protocol leaves that to its user (link_group.h does).
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
  [[nodiscard]] bool bound() const override { return word_ && word_ != config_.self; }

 private:
  enum class State { kIdle, kAsking, kDeciding };
  struct Peer {
    // Its requests, as we know them
    std::uint64_t request = 0;       // the newest id
    std::uint64_t taken = 0;         // decisions of this peer that are counted here
    std::optional<Message> aside{};  // a Start that came before the End before it
    // Our request, as it knows it
    std::uint64_t asked = 0;  // the id it was last asked with
    bool answered = false;    // with that id
  };

  void take_start(Member from, const Message& start, Output& out);
  void take_answer(Member from, const Message& answer, Output& out);
  void take_end(Member from, const Message& end, Output& out);
  // The smallest rank that wants to decide, as far as is known here; members() if there is none.
  [[nodiscard]] Member leader() const { return active_.empty() ? config_.members : *active_.begin(); }
  void ask(std::vector<Member> whom, Output& out);  // with a new id
  void give_word(Output& out);                      // to the leader, if it is not given to somebody
  void decide_if_complete(Output& out);

  State state_ = State::kIdle;
  std::optional<Member> word_;  // who has our word
  std::uint64_t last_id_ = 0;
  std::uint64_t decisions_ = 0;
  std::vector<Peer> peers_;
  std::set<Member>
      active_;  // whose requests, as far as is known here, wait for words or have them all; this member's too
  std::size_t missing_ = 0;  // answers
};

}  // namespace bsp::exchange
