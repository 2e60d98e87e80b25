// Moves whose target did not come up, or could not restore the rank. What keeps one from a Set may last: a quota without room
// for another pod, a volume that can't follow, a webhook, a file or CPU that differs there. Each attempt goes back with its whole wave,
// so the rank is left alone before it is tried there again, longer after each failure. Counted from RankMigrations, where a fresh
// operator finds them, too. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

class FailedMoves {
 public:
  explicit FailedMoves(const Observed& o);

  struct InSet {
    std::uint32_t count = 0;  // since the rank last moved there
    Time last{};
    std::string why;       // the last one failed
    bool came_up = false;  // its target, and then failed
  };
  // nullptr: none of the rank's moves into that Set.
  [[nodiscard]] const InSet* of(std::uint32_t rank, const std::string& set) const;
  // The Sets that the cost model doesn't move the rank to now.
  [[nodiscard]] std::vector<std::string> held_from(std::uint32_t rank) const;
  // A rank that has to leave its node isn't tried in that Set for now.
  [[nodiscard]] bool is_held(const InSet& failed) const;
  // Why it isn't tried in any: it has only just failed. "": it hasn't.
  [[nodiscard]] std::string just_failed(std::uint32_t rank) const;

 private:
  using BySet = std::map<std::string, InSet>;
  [[nodiscard]] bool lasts(const InSet& failed, Duration first, Duration most) const;
  [[nodiscard]] const BySet& of(std::uint32_t rank) const;

  std::map<std::uint32_t, BySet> failed_;  // by rank
  Time now_;
};

// From here on a rank that has to leave its node prefers any other Set.
inline constexpr std::uint32_t kFailuresInOneSet = 2;

// "its target in Set fast did not come up, 2 times: …"
std::string text_of(const FailedMoves::InSet& failed, std::string_view set);

}  // namespace bsp::reconcile
