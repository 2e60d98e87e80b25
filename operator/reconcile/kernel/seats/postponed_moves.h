// Moves that no gate let through. What postpones a gate may last: a window of shared memory, or a communicator whose ranks would
// part (MPI_COMM_TYPE_SHARED). Each attempt holds targets and slots for minutes, so such ranks are left alone before they are tried
// again, longer after each. Counted from RankMigrations, where a fresh operator finds them, too. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

class PostponedMoves {
 public:
  explicit PostponedMoves(const Observed& o);

  // Why the cost model doesn't move the rank now; "": nothing is known against it.
  [[nodiscard]] std::string of(std::uint32_t rank) const;

 private:
  struct Hold {
    std::uint32_t count = 0;  // waves, since one has shown that the cause is gone
    Time last{};
    std::string why;
  };
  [[nodiscard]] std::string text_of(const Hold& hold) const;

  std::map<std::uint32_t, Hold> bonds_;  // by rank
  Hold everyone_;
  Time now_;
};

}  // namespace bsp::reconcile
