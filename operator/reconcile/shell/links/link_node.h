// What Sidecars keeps of one seat's sidecar; links.cc and pages.cc share it. On the loop's thread.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/core/backoff.h"
#include "crds/wire.h"
#include "operator/reconcile/shell/links/links.h"

namespace bsp::reconcile {

inline constexpr std::chrono::seconds kAnswerLimit{5};

// Three connections: a watch occupies its own while it waits, and a Set Manager answers a report only
// when its members have. Most ranks are not Set Managers, and a pod that never answered gets no verbs: there may be thousands.
struct Sidecars::Node {
  Node(net::Loop& on, const net::TlsContext& with, Seat at, const std::string& address)
      : watch(on, with, {address, at.pod}, wire::answer_limits), seat(std::move(at)), loop(on), tls(with) {}
  // A request's fields, which say what seat of the pod it concerns.
  [[nodiscard]] nlohmann::json of_seat(nlohmann::json fields) const {
    if (seat.local != 0) fields[wire::kSeat] = seat.local;
    return fields;
  }
  [[nodiscard]] const std::string& address() const { return watch.peer().address; }
  net::LinkPeer& opened(std::unique_ptr<net::LinkPeer>& link) const {
    if (!link) link = std::make_unique<net::LinkPeer>(loop, tls, watch.peer(), wire::answer_limits);
    return *link;
  }
  net::LinkPeer watch;
  const Seat seat;
  std::unique_ptr<net::LinkPeer> command, report, who_hears;
  net::Loop& loop;
  const net::TlsContext& tls;  // of its Sidecars
  std::uint64_t version = 0;   // of the newest status; 0: none since the watch's connection was lost
  bool answered = false;       // ever
  std::optional<net::SteadyTime> silent_since;
  // Of a Set Manager: the members still to be asked.
  bool asked_report = false;
  bool asked_who_hears = false;
  net::SteadyTime asked_at{};
  // `until`: what it had completed when this round first asked it. A round ends there, or ranks that end supersteps faster
  // than they are read would keep it from the others for ever.
  struct Member {
    nlohmann::json request;
    std::uint64_t until = 0;  // 0: not asked yet
  };
  std::list<Member> members;                   // takes nothing while it is empty
  std::uint64_t every = 1;                     // also of a round that is under way
  std::size_t at_once = wire::kMembersAtOnce;  // fewer for one of a version without pages
  unsigned pages = 0;
  // A Set Manager that doesn't answer must not block others.
  Backoff reports{std::chrono::milliseconds(500), std::chrono::seconds(32)};
  net::SteadyTime report_again{};
  // How often a status that keeps changing is read: an honest one does so only for a moment, in a wave.
  static constexpr double kPushesPerSecond = 10, kPushesAtOnce = 200;
  // Of pushes, by the time that has gone by.
  double pushes = kPushesAtOnce;
  net::SteadyTime pushes_at{};
  bool may_push(net::SteadyTime now) {
    const double seconds = pushes_at == net::SteadyTime{} ? 0 : std::chrono::duration<double>(now - pushes_at).count();
    pushes = std::min(kPushesAtOnce, pushes + kPushesPerSecond * seconds);
    pushes_at = now;
    if (pushes < 1) return false;
    --pushes;
    return true;
  }
  // A wave's verb isn't that of the wave before, although both may name seat and gate alike.
  using Verb = std::tuple<std::uint32_t, migrate::ActionKind, std::uint64_t>;
  static Verb verb_of(const migrate::Action& action) {
    return {action.token ? action.token->wave : 0, action.kind, action.number};
  }
  struct Sent {
    bool under_way = false;
    net::SteadyTime at{};
  };
  std::map<Verb, Sent> sent;  // of the wave, and those of an earlier one that are under way
};

struct Sidecars::Page {
  std::vector<Node::Member> members;
};

}  // namespace bsp::reconcile
