// Increments: a member broadcasts by how much its load has changed, and a decision maker at once what it has just
// assigned.
//
// Source: RR-5478, the mechanism based on load increments. The reservation (the source's Master_To_All) goes to all
// that will still decide and to the receivers of the work, which count it as theirs from then on and do not broadcast
// that increase again. All messages are additions, so that their order does not matter; each must be taken in exactly
// once (once.h).
//
// After the loss of a member that was telling a decision, those whom it told differ from the others by that decision.
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
  void say_if_beyond(double threshold, Output& out);

  std::vector<double> unsaid_;  // changes of this member's load that the others do not know
  View carried_;                // of members that have not said Hello, counted in the view until they do
};

}  // namespace bsp::exchange
