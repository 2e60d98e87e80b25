// A Protocol that runs: one member of a group, on base/net's links, with a thread of its own.
//
// The thread takes in what the others say and answers it, whatever the thread that decides is doing (the source's
// threaded answers). What must reach a peer is kept until the peer has confirmed it, in order, over as many connections
// as that takes; a peer that cannot be reached for `lost_after` is lost, and the others go on without it.
//
// To a Protocol a loss is final. So when one that was lost is heard of again, or one that was known runs anew, all
// begin anew in the next generation: each with a machine that starts from what the member itself holds. Nothing is
// forgotten by that, as long as members assign to themselves only: their decisions are in their own loads. A member
// goes over as soon as it hears of a higher generation; where a decision is being made, right after it. Lost ones are
// asked at every tick whether they are back.
//
//   auto group = LinkGroup::listen(context, {.name = "pools", .self = 1, .identities = …}, "0.0.0.0:7700");
//   const auto pool = (*group)->resource("fast");
//   (*group)->join(addresses, {slots_my_jobs_use});
//   auto decision = (*group)->decide(10s);                 // blocks until the view is ready
//   if (decision->view().total(pool) < slots) decision->assign({{.to = 1, .resource = pool, .amount = 1}});
//
// With Snapshot nobody else in the group decides between the return of decide() and the end of the Decision.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/net/tls.h"
#include "operator/exchange/protocol.h"

namespace bsp::exchange {

class LinkGroup {
  struct State;

 public:
  struct Options {
    std::string name;  // of the group: other members or another mechanism, other name
    Member self = 0;
    std::vector<std::string> identities;  // of the members: the CN of their certificates
    Mechanism mechanism = Mechanism::kSnapshot;
    std::vector<std::string> resources;                                // those known at the start, by their numbers
    double threshold = 0;                                              // Config::threshold
    bool majority = true;                                              // Config::majority
    std::chrono::nanoseconds answer_within = std::chrono::seconds(5);  // of one request
    std::chrono::nanoseconds lost_after = std::chrono::seconds(30);
    std::chrono::nanoseconds tick = std::chrono::seconds(1);  // between two Protocol::timer()
  };

  // The right to decide, on a view that is true until this object ends. Ended without assign() it was a decision for
  // nothing.
  class Decision {
   public:
    Decision(Decision&& other) noexcept = default;
    Decision& operator=(Decision&&) = delete;
    ~Decision();
    [[nodiscard]] const View& view() const { return view_; }
    // Once, one of the two. The second waits until all members that are not lost have counted it; an error if they
    // have not in time. It is counted here all the same: give it back by load_changed(), and decide anew.
    void assign(std::vector<Assignment> assignments);
    Result<void> assign_confirmed(std::vector<Assignment> assignments, std::chrono::nanoseconds timeout);

   private:
    friend class LinkGroup;
    Decision(std::shared_ptr<State> state, View view) : state_(std::move(state)), view_(std::move(view)) {}
    std::shared_ptr<State> state_;  // null: done
    View view_;
  };

  // Listens; what the others say is refused until join(). Address "0.0.0.0:7700"; port 0 lets the system choose.
  static Result<std::unique_ptr<LinkGroup>> listen(net::TlsContext context, Options options,
                                                   const std::string& address);
  ~LinkGroup();
  LinkGroup(const LinkGroup&) = delete;
  LinkGroup& operator=(const LinkGroup&) = delete;

  [[nodiscard]] const Options& options() const;
  [[nodiscard]] std::uint16_t port() const;
  // The number of a resource of that name on this member; a new one if it is not known yet. From any thread.
  std::uint32_t resource(const std::string& name);
  [[nodiscard]] std::vector<std::string> resources() const;  // by their numbers; views made before may have fewer
  // Once: where the members are (index = member; its own is not used), each ip:port or host:port, and what this one
  // holds of each resource.
  Result<void> join(std::vector<std::string> addresses, std::vector<double> own);

  // From any thread, one at a time. An error when the group isn't ready in time; the next call goes on waiting.
  Result<Decision> decide(std::chrono::nanoseconds timeout);
  // See Protocol. From any thread.
  void load_changed(std::uint32_t resource, double by, bool assigned = false);
  void no_more_decisions();
  void lose(Member peer);           // by other knowledge than the links'
  [[nodiscard]] View view() const;  // as it is now, not to decide on
  // Where views are made on demand: asks for one that only view() will show, unless a decision is being made.
  void refresh();

 private:
  explicit LinkGroup(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace bsp::exchange
