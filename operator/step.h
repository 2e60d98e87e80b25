// What a kernel answers, of a job as of a wave: EITHER a change to be stored, after which everything is read and asked
// again, OR the work that the stored state, unchanged, needs now.
//
// So whatever was done to the outside follows from what is stored, and an operator that is killed anywhere goes on from
// there.
#pragma once

#include <utility>
#include <variant>

#include "base/core/error.h"

namespace bsp {

template <class Change, class Work>
class Step {
 public:
  explicit Step(Change change) : is_(std::move(change)) {}
  explicit Step(Work work) : is_(std::move(work)) {}

  // Null: there is nothing to store.
  [[nodiscard]] const Change* change() const { return std::get_if<Change>(&is_); }
  // Only where there is nothing to store.
  [[nodiscard]] const Work& work() const {
    check(!change(), "nothing is done before the change is stored");
    return std::get<Work>(is_);
  }

 private:
  std::variant<Change, Work> is_;
};

}  // namespace bsp
