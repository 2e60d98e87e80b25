// Increments: a member broadcasts the changes of its load, and a decision maker immediately broadcasts what it
// assigned.
//
// Source: RR-5478, the mechanism based on load increments. The reservation (the source's Master_To_All) goes to every
// member that may still decide and to the receivers of the work. A receiver counts it as its own from then on, and
// doesn't broadcast that increase again. All messages are additions, so their order doesn't matter; each must be
// applied exactly once (once.h).
//
// If a member is lost while it sends a decision, the members that received it see a different view from the others.
#pragma once

#include "operator/exchange/maintained.h"

namespace bsp::exchange {

class Increments final : public Maintained {
 public:
  explicit Increments(Config config);

  void received(Member from, const Message& message, Output& out) override;
  void load_changed(std::uint32_t resource, double by, bool assigned, Output& out) override;
  void decided(std::span<const Assignment> assignments, Output& out) override;
  void timer(Output& out) override;
  void grow(std::uint32_t resources) override;

 private:
  void broadcast_beyond(double threshold, Output& out);

  std::vector<double> unsent_;  // changes of this member's load that the others don't know
  View carried_;                // loads of members that haven't sent Hello; they count in the view until then
};

}  // namespace bsp::exchange
