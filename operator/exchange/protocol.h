// What decision makers have to know of each other's loads, behind one interface with three mechanisms.
//
// Source: A. Guermouche, J.-Y. L'Excellent, "A study of various load information exchange mechanisms for a distributed
// application using dynamic scheduling", INRIA RR-5478 and IPDPS 2005: Naive and Increments maintain a view, Snapshot
// makes one on demand.
//
// A group has `members` 0, 1, … (the smaller rank wins an election); each holds an amount of load on each of
// `resources`. What that is, the user of the group says. Two uses:
//   Set Managers       member = Set, resource 0 = its slots in use; a decision assigns slots of another member
//   operator replicas  member = replica, resource = pool; a replica assigns to itself, a pool's load is the
//                      sum over members (operator/reconcile/shell_exchange.h)
//
// A Protocol is a pure state machine: no clock, no I/O, no thread. Every event appends to an Output what has to be
// sent, and says when the view is ready to decide on. Messages must arrive at most once (once.h) and, unless a member
// is lost, at last; in any order, from the same sender too: no mechanism leans on FIFO. A loss is final: a member that
// returns does so among new machines, one for each member (link_group.h).
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
  std::uint32_t resources = 1;  // at the start; more may come
  // Naive, Increments: a change is broadcast when it is larger than this on some resource. In units of load.
  double threshold = 0;
  // Snapshot: decide only while more than half of the group is not lost, so that a group that fell apart decides in one
  // part at most. (A group of two then decides no more when one is lost.)
  bool majority = true;
  // Loads at the start, members × resources, where all know them beforehand; empty: every member says Hello.
  std::vector<double> initial;
  // As last known of them, members × resources, or empty: what counts of a member that is lost before it says more.
  std::vector<double> carried = {};
};

// What one member believes that all hold.
class View {
 public:
  View(std::uint32_t members, std::uint32_t resources)
      : resources_(resources), loads_(members * resources), lost_(members) {}

  [[nodiscard]] double load(Member m, std::uint32_t resource = 0) const { return loads_[m * resources_ + resource]; }
  [[nodiscard]] double total(
      std::uint32_t resource) const;  // over all members, lost ones with what was last known of them
  [[nodiscard]] bool lost(Member m) const { return lost_[m]; }
  [[nodiscard]] std::uint32_t members() const { return static_cast<std::uint32_t>(lost_.size()); }
  [[nodiscard]] std::span<const double> loads() const { return loads_; }  // members × resources
  [[nodiscard]] std::uint32_t resources() const { return resources_; }

  std::span<double> row(Member m) { return {loads_.data() + m * resources_, resources_}; }
  [[nodiscard]] std::span<const double> row(Member m) const { return {loads_.data() + m * resources_, resources_}; }
  void add(const Assignment& a) { loads_[a.to * resources_ + a.resource] += a.amount; }
  void set_lost(Member m) { lost_[m] = true; }
  void grow(std::uint32_t resources);  // of the new ones nobody holds anything

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
  bool ready = false;        // view() may be decided on now; the next event has to be decided()
  std::vector<Member> late;  // after timer(): whom this member waits for, for its view or to have its word back
};

// Several members' machines never share one; a machine's calls come one after the other.
class Protocol {
 public:
  explicit Protocol(Config config);
  virtual ~Protocol() = default;
  Protocol(const Protocol&) = delete;
  Protocol& operator=(const Protocol&) = delete;

  // The first event: what this member holds (with Config::initial: the same as there).
  virtual void start(std::span<const double> own, Output& out) = 0;
  virtual void received(Member from, const Message& message, Output& out) = 0;
  // This member's own load on `resource` has changed by `by`. assigned: it is work that a decision (of whomever) gave
  // it; where decisions are told, it has been counted then and isn't a second time.
  virtual void load_changed(std::uint32_t resource, double by, bool assigned, Output& out) = 0;
  // Output::ready may follow at once or with a later event, exactly once for each want.
  virtual void want_decision(Output& out) = 0;
  virtual void decided(std::span<const Assignment> assignments, Output& out) = 0;  // maybe nothing
  virtual void no_more_decisions(Output& out) = 0;
  virtual void lost(Member peer, Output& out) = 0;
  // Some time has passed. Naive and Increments say what is below the threshold; Snapshot tells whom it waits for: see
  // that they live.
  virtual void timer(Output& out) = 0;

  // There are more resources from now on; messages that were made before have fewer loads and are to be filled up with
  // 0.
  virtual void grow(std::uint32_t resources) { config_.resources = resources, view_.grow(resources); }

  // Another member decides, or is about to, on what this one has answered: who changes its own loads now spoils that
  // view.
  [[nodiscard]] virtual bool bound() const { return false; }
  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] const Config& config() const { return config_; }
  [[nodiscard]] std::span<const double> own() const { return view_.row(config_.self); }

 protected:
  Config config_;
  View view_;  // of the own row: what this member holds
};

std::unique_ptr<Protocol> make_protocol(Mechanism mechanism, Config config);

}  // namespace bsp::exchange
