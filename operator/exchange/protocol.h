// How decision makers learn each other's loads: one interface, three mechanisms.
//
// Source: A. Guermouche, J.-Y. L'Excellent, "A study of various load information exchange mechanisms for a distributed
// application using dynamic scheduling", INRIA RR-5478 and IPDPS 2005: Naive and Increments maintain a view, Snapshot
// builds one on demand.
//
// A group has `members` 0, 1, … (the smallest rank wins an election); each holds an amount of load on each of
// `resources`. The group's user defines what that means. Two uses:
//   Set Managers       member = Set, resource 0 = its slots in use; a decision assigns slots of another member
//   operator replicas  member = replica, resource = pool; a replica assigns to itself, a pool's load is the
//                      sum over members (operator/reconcile/capacity/stores/exchange_store.h)
//
// A Protocol is a pure state machine: no clock, no I/O, no thread. Every event appends the messages to send to an
// Output, which also says when the view is ready to decide on. Each message must arrive at most once (once.h) and,
// unless a member is lost, eventually. Order doesn't matter, even from one sender: no mechanism relies on FIFO. A loss
// is final: when a member returns, all members start new machines (link_group.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "crds/exchange.h"

namespace bsp::exchange {

using Member = std::uint32_t;
using Message = wire::ExchangeMessage;
using Kind = wire::ExchangeKind;
using Assignment = wire::ExchangeAssignment;

enum class Mechanism { kNaive, kIncrements, kSnapshot };
std::string_view to_string(Mechanism mechanism);  // "Naive", …
std::optional<Mechanism> mechanism_from(std::string_view name);

struct Config {
  Member self = 0;
  std::uint32_t members = 1;
  std::uint32_t resources = 1;  // at the start; grow() adds more
  // Naive, Increments: broadcast a change larger than this on any resource. In units of load.
  double threshold = 0;
  // Snapshot: decide only while more than half of the group isn't lost, so that at most one part of a partitioned group
  // decides. (A group of two stops deciding when one is lost.)
  bool majority = true;
  // Loads at the start, members × resources, if all members know them; empty: every member sends Hello.
  std::vector<double> initial;
  // Last known loads, members × resources, or empty. A member's count until it sends Hello, or for good if it is lost
  // first.
  std::vector<double> carried = {};
};

// One member's view of all members' loads.
class View {
 public:
  View(std::uint32_t members, std::uint32_t resources)
      : resources_(resources), loads_(members * resources), lost_(members) {}

  [[nodiscard]] double load(Member m, std::uint32_t resource = 0) const { return loads_[m * resources_ + resource]; }
  [[nodiscard]] double total(std::uint32_t resource) const;  // over all members; lost ones count with their last load
  [[nodiscard]] bool lost(Member m) const { return lost_[m]; }
  [[nodiscard]] std::uint32_t members() const { return static_cast<std::uint32_t>(lost_.size()); }
  [[nodiscard]] std::span<const double> loads() const { return loads_; }  // members × resources
  [[nodiscard]] std::uint32_t resources() const { return resources_; }

  std::span<double> row(Member m) { return {loads_.data() + m * resources_, resources_}; }
  [[nodiscard]] std::span<const double> row(Member m) const { return {loads_.data() + m * resources_, resources_}; }
  void add(const Assignment& a) { loads_[a.to * resources_ + a.resource] += a.amount; }
  void set_lost(Member m) { lost_[m] = true; }
  void grow(std::uint32_t resources);  // with a load of 0 on new resources

 private:
  std::uint32_t resources_;
  std::vector<double> loads_;
  std::vector<bool> lost_;
};

struct Send {
  std::vector<Member> to;  // never the sender, never a lost member
  Message message;
};

struct Output {
  std::vector<Send> sends;
  bool ready = false;        // view() is ready to decide on; the next event must be decided()
  std::vector<Member> late;  // after timer(): the members whose answer, or whose decision, this member waits for
};

// One member's machine. Not thread-safe; each member has its own.
class Protocol {
 public:
  explicit Protocol(Config config);
  virtual ~Protocol() = default;
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;

  // The first event: this member's own loads (with Config::initial, the same as there).
  virtual void start(std::span<const double> own, Output& out) = 0;
  virtual void received(Member from, const Message& message, Output& out) = 0;
  // This member's own load on `resource` has changed by `by`. assigned: the work comes from some member's decision, so
  // mechanisms that announce decisions don't count it again.
  virtual void load_changed(std::uint32_t resource, double by, bool assigned, Output& out) = 0;
  // Output::ready follows at once or with a later event, exactly once for each call.
  virtual void want_decision(Output& out) = 0;
  virtual void decided(std::span<const Assignment> assignments, Output& out) = 0;  // may be empty
  virtual void no_more_decisions(Output& out) = 0;
  virtual void lost(Member peer, Output& out) = 0;
  // Call this periodically. Naive and Increments broadcast changes below the threshold; Snapshot reports in
  // Output::late whom it waits for, so that the caller can check that they are alive.
  virtual void timer(Output& out) = 0;

  // Adds resources. Pad the loads of earlier messages with 0.
  virtual void grow(std::uint32_t resources) { config_.resources = resources, view_.grow(resources); }

  // Whether another member decides, or is about to, on this member's answer. Changing our loads now makes its view
  // wrong.
  [[nodiscard]] virtual bool bound() const { return false; }
  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] std::span<const double> own() const { return view_.row(config_.self); }

 protected:
  Config config_;
  View view_;  // our own row has our own loads
};

std::unique_ptr<Protocol> make_protocol(Mechanism mechanism, Config config);

}  // namespace bsp::exchange
