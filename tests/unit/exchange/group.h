// A group of protocol machines and the messages between them, delivered in an order that the test (or chance) chooses.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "operator/exchange/once.h"
#include "operator/exchange/protocol.h"

namespace bsp::exchange {

// Returns a number below its argument.
using Choose = std::function<std::size_t(std::size_t)>;

class Group {
 public:
  struct Flying {
    Member from;
    Member to;
    std::uint64_t number;
    Message message;
  };
  // The decision that a member makes when its view is ready.
  using Decide = std::function<std::vector<Assignment>(Member, const View&)>;

  Group(Mechanism mechanism, std::uint32_t members, std::uint32_t resources = 1, double threshold = 0) {
    for (Member m = 0; m < members; ++m) {
      machines.push_back(make_protocol(
          mechanism, {.self = m, .members = members, .resources = resources, .threshold = threshold, .initial = {}}));
      alive.push_back(true);
    }
    ready.resize(members);
    received.resize(members, std::vector<Once>(members));
    numbers.resize(members, std::vector<std::uint64_t>(members));
  }

  Protocol& operator[](Member m) { return *machines[m]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(machines.size()); }

  void start(const std::vector<double>& own) {
    for (Member m = 0; m < size(); ++m) event(m, [&](Protocol& p, Output& out) { p.start(own, out); });
  }
  void want(Member m) {
    event(m, [](Protocol& p, Output& out) { p.want_decision(out); });
  }
  void decided(Member m, const std::vector<Assignment>& assignments) {
    ready[m] = false;
    event(m, [&](Protocol& p, Output& out) { p.decided(assignments, out); });
  }
  void change(Member m, double by, bool assigned = false, std::uint32_t resource = 0) {
    event(m, [&](Protocol& p, Output& out) { p.load_changed(resource, by, assigned, out); });
  }
  void no_more(Member m) {
    event(m, [](Protocol& p, Output& out) { p.no_more_decisions(out); });
  }
  void tick(Member m) {
    event(m, [](Protocol& p, Output& out) { p.timer(out); });
  }
  // Member `m` dies: `arrives` decides which of its messages still arrive. The others learn of the loss later, by
  // lost().
  void kill(Member m, const std::function<bool()>& arrives) {
    alive[m] = ready[m] = false;
    std::erase_if(flying, [&](const Flying& f) { return f.to == m || (f.from == m && !arrives()); });
  }
  void report_lost(Member to, Member whom) {
    event(to, [whom](Protocol& p, Output& out) { p.lost(whom, out); });
  }

  // Delivers one message: any, or (fifo) any that is the oldest of its pair. With `twice` it also stays in flight.
  void deliver(const Choose& choose, bool fifo, bool twice = false) {
    std::size_t i = choose(flying.size());
    if (fifo)
      for (std::size_t j = 0; j < i; ++j)
        if (flying[j].from == flying[i].from && flying[j].to == flying[i].to) {
          i = j;
          break;
        }
    const Flying f = flying[i];
    if (!twice) flying.erase(flying.begin() + static_cast<std::ptrdiff_t>(i));
    if (!alive[f.to] || !received[f.to][f.from].take(f.number)) return;
    event(f.to, [&](Protocol& p, Output& out) { p.received(f.from, f.message, out); });
  }
  // Delivers everything, oldest first, until nothing is in flight.
  void settle() {
    while (!flying.empty()) deliver([](std::size_t) { return 0; }, true);
  }

  [[nodiscard]] std::size_t count(Kind kind) const {
    const auto it = sent.find(kind);
    return it == sent.end() ? 0 : it->second;
  }
  [[nodiscard]] std::size_t messages() const {
    return std::accumulate(sent.begin(), sent.end(), std::size_t{0},
                           [](std::size_t n, const auto& k) { return n + k.second; });
  }

  std::vector<std::unique_ptr<Protocol>> machines;
  std::vector<bool> alive;
  std::vector<bool> ready;
  std::vector<Flying> flying;
  std::map<Kind, std::size_t> sent;
  std::vector<Member> late;  // of the last timer()
  std::function<void(Member)> on_ready = [](Member) {};

 private:
  template <class Event>
  void event(Member m, Event&& what) {
    if (!alive[m]) return;
    Output out;
    what(*machines[m], out);
    for (const Send& send : out.sends)
      for (const Member to : send.to) {
        ++sent[send.message.kind];
        EXPECT_NE(to, m);
        if (alive[to]) flying.push_back({m, to, ++numbers[m][to], send.message});
      }
    late = out.late;
    if (out.ready) {
      EXPECT_FALSE(ready[m]);
      ready[m] = true;
      on_ready(m);
    }
  }

  std::vector<std::vector<Once>> received;
  std::vector<std::vector<std::uint64_t>> numbers;
};

}  // namespace bsp::exchange
