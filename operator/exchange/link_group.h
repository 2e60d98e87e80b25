// Runs a Protocol: one member of a group, over base/net's links, with its own thread.
//
// The thread receives and answers the others' messages, whatever the deciding thread is doing (the source's threaded
// answers). It keeps each message until the peer has confirmed it, and sends in order, over as many connections as
// necessary. A peer that can't be reached for `lost_after` is lost, and the others continue without it.
//
// For a Protocol a loss is final. So when a lost member returns, or a known one restarts, all members move to the next
// generation: each starts a new machine from its own loads. That forgets nothing as long as members assign only to
// themselves, because their own loads include their decisions. A member moves as soon as it learns of a higher
// generation; if it is deciding, right after that. Every tick polls the lost members.
//
//   auto group = LinkGroup::listen(context, {.name = "pools", .self = 1, .identities = …}, "[::]:7700");
//   const auto pool = (*group)->resource("fast");
//   (*group)->join(addresses, {slots_my_jobs_use});
//   auto decision = (*group)->decide(10s);                 // blocks until the view is ready
//   if (decision->view().total(pool) < slots) decision->assign({{.to = 1, .resource = pool, .amount = 1}});
//
// With Snapshot no other member decides between the return of decide() and the end of the Decision.
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
    std::string name;  // of the group; use another name for other members or another mechanism
    Member self = 0;
    std::vector<std::string> identities;  // the CNs of the members' certificates
    Mechanism mechanism = Mechanism::kSnapshot;
    std::vector<std::string> resources;                                // known at the start, by number
    double threshold = 0;                                              // Config::threshold
    bool majority = true;                                              // Config::majority
    std::chrono::nanoseconds answer_within = std::chrono::seconds(5);  // of one request
    std::chrono::nanoseconds lost_after = std::chrono::seconds(30);
    std::chrono::nanoseconds tick = std::chrono::seconds(1);  // period of Protocol::timer()
  };

  // The right to decide, on a view that is exact until this object is destroyed. Without assign() the decision assigns
  // nothing.
  class Decision {
   public:
    Decision(Decision&& other) noexcept = default;
    Decision& operator=(Decision&&) = delete;
    ~Decision();
    [[nodiscard]] const View& view() const { return view_; }
    // Call one of the two, once. The second waits until all members that aren't lost have counted the assignments. If
    // it times out, they still count here: undo them with load_changed() and decide again.
    void assign(std::vector<Assignment> assignments);
    Result<void> assign_confirmed(std::vector<Assignment> assignments, std::chrono::nanoseconds timeout);

   private:
    friend class LinkGroup;
    Decision(std::shared_ptr<State> state, View view) : state_(std::move(state)), view_(std::move(view)) {}
    std::shared_ptr<State> state_;  // null: done
    View view_;
  };

  // Listens, but refuses messages until join(). Address: "[::]:7700"; with port 0 the kernel picks one.
  static Result<std::unique_ptr<LinkGroup>> listen(net::TlsContext context, Options options,
                                                   const std::string& address);
  ~LinkGroup();
  LinkGroup(const LinkGroup&) = delete;
  LinkGroup& operator=(const LinkGroup&) = delete;

  [[nodiscard]] const Options& options() const;
  [[nodiscard]] std::uint16_t port() const;
  // This member's number for the resource; assigns the next one to a new name. From any thread.
  std::uint32_t resource(const std::string& name);
  [[nodiscard]] std::vector<std::string> resources() const;  // by number; earlier views may have fewer
  // Call it once, with the members' addresses (by member; our own is not used), each ip:port or host:port, and our own
  // load on each resource.
  Result<void> join(std::vector<std::string> addresses, std::vector<double> own);

  // From any thread; one decision at a time. kTimeout if the view isn't ready in time; the next call keeps waiting for
  // it.
  Result<Decision> decide(std::chrono::nanoseconds timeout);
  // See Protocol. From any thread.
  void load_changed(std::uint32_t resource, double by, bool assigned = false);
  void no_more_decisions();
  [[nodiscard]] View view() const;  // the current view, not to decide on
  // With a mechanism that builds views on demand: requests one for view(), unless a decision is being made.
  void refresh();

 private:
  explicit LinkGroup(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace bsp::exchange
