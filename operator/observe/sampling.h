// Which supersteps a job's ranks are asked for. All of them, unless the ranks end so many that the operator can't read them
// all: then each rank would deliver other ones, whichever its ring still holds when its turn comes, and no superstep would be
// known of all ranks. So all ranks are asked for the same part of them (wire::sampled).
//
// Pure: the pace is what the ranks have completed between two rounds of requests, and between two reports.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "crds/wire.h"

namespace bsp::observe {

class Sampling {
 public:
  explicit Sampling(std::size_t ranks) : ranks_(std::max<std::size_t>(ranks, 1)) {}

  // A rank has completed so many more since its last report.
  void completed(std::uint64_t supersteps) {
    ended_ += static_cast<double>(std::min<std::uint64_t>(supersteps, wire::kMostRecords));
    late_ += supersteps > kLate;
    ++reports_;
  }
  // Before each round of requests, which come some times a second.
  void begin_round() {
    pace_ += (ended_ / static_cast<double>(ranks_) - pace_) / 4;
    ended_ = 0;
    const double asked = pace_ / static_cast<double>(every_),
                 most = std::max(kLeast, kRound / static_cast<double>(ranks_));
    bool slow = false;
    if (reports_ >= 2 * ranks_) {  // since the last change, of requests made before it too
      slow = late_ > reports_ / 8;
      in_time_ = late_ > 0 ? 0 : in_time_ + 1;
      reports_ = late_ = 0;
    }
    if ((asked > most || slow) && every_ < kMostEvery) {
      every_ *= 2;
      reports_ = late_ = in_time_ = 0;
    } else if (asked < most / 4 && in_time_ >= kInTime && every_ > 1) {
      every_ /= 2;
      reports_ = late_ = in_time_ = 0;
    }
  }
  // A power of two, so that requests made before and after a change have supersteps in common.
  [[nodiscard]] std::uint64_t every() const { return every_; }

 private:
  static constexpr double kRound = 8192;  // supersteps of all ranks together, some 250 bytes each, …
  static constexpr double kLeast = 2;     // … and of one rank however many there are
  // A rank is asked too rarely if half of its ring is new.
  static constexpr std::uint64_t kLate = wire::kMostRecords / 2;
  static constexpr std::size_t kInTime = 4;  // turns of all ranks
  static constexpr std::uint64_t kMostEvery = 64;

  std::size_t ranks_;
  double ended_ = 0;                    // supersteps of all ranks since the last round
  double pace_ = 0;                     // supersteps of a rank in one round
  std::size_t reports_ = 0, late_ = 0;  // since the last turn of all ranks
  std::size_t in_time_ = 0;             // turns in a row without a late report
  std::uint64_t every_ = 1;
};

}  // namespace bsp::observe
