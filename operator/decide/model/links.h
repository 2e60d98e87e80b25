// The links between Sets: where all ranks' messages were seen to share one, it limits what a superstep and a wave take.
//
//   C(a,b)       bytes/s from Set a to Set b, all ranks together
//   a superstep  its communication takes no less than  Σ bytes from a to b / C(a,b),  for any a ≠ b
//   a wave       its pause is no shorter than  Σ M(i) of those that go from a to b / C(a,b)
//
// T is what one rank's bytes take alone. How many ranks' bytes a link carries at that pace nobody says, so it is learned
// from supersteps, and nothing is assumed of a link that was not seen to be a limit:
//
//   A      bytes from a to b in a superstep;  t = max_i BT(i,a), s, over the ranks i in b
//   pace   t ÷ the most bytes that one of them received from a, s/byte. A link that isn't shared has the same pace,
//          whoever uses it
//   shared once the pace was kSlower times the quickest that was seen, T included if that was measured; and A more than
//          kSlower times the most of one rank: sharing slows a rank down by the other ranks' bytes, not by its own
//   C      the highest A/t seen: a shared link is never quicker than what it carries, and may be quicker than was seen. Of a
//          shared link, what is no more than C ÷ kLess may be noise: it has to be seen in two blocks in a row
//   less   if the link was a limit, by the pace again, in kFallen blocks in a row, and carried less than kLess · C in each of
//          them, others use it now: C is the highest A/t of these
//
// All of them over kBlock supersteps, so that a single one that was held up says nothing. Of fewer than kLeastBytes a
// rank, what takes so long are latencies, which no link divides; what messages are known to take besides their bytes is left out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operator/decide/model/columns.h"
#include "operator/decide/model/model.h"

namespace bsp::decide {

// What crossed from one Set to another in a superstep.
struct Crossing {
  SetId from{}, to{};
  double bytes = 0, most = 0;  // of all ranks in `to`; of the one that received most
  double seconds = 0;          // t
};
// Of all pairs of different Sets of which something did. `own`: by rank, the Set that it was in. `messages`: [i, j], s that rank i's
// messages from Set j take besides their bytes; empty: not known.
std::vector<Crossing> crossings(const MeasuredSuperstep& t, std::span<const SetId> own,
                                const Grid<double>& messages = {});
// That, by Platform::apart and what partners are known to send in a superstep; empty without prices.
Grid<double> message_seconds(const Platform& platform, std::span<const std::vector<Partner>> partners,
                             std::span<const SetId> own);

// What was seen of the link from one Set to another.
class LinkSeen {
 public:
  static constexpr std::uint32_t kBlock = 3;    // supersteps
  static constexpr double kSlower = 1.5;        // ratio; noise of ±10 % on bytes and times makes (1.1 ÷ 0.9)² at most
  static constexpr double kLeastBytes = 100e3;  // of the rank that receives most
  static constexpr std::uint32_t kFallen = 4;   // blocks
  static constexpr double kLess = 0.75;         // ratio; noise of ±10 % makes less of two blocks

  LinkSeen() = default;
  // One that was seen to be shared before; 0: it wasn't.
  explicit LinkSeen(double capacity) : best_(capacity > 0 ? capacity : 0), shared_(best_ > 0) {}

  // A superstep's. `T`, s/byte, if it was measured, else 0.
  void add(const Crossing& crossing, double T);

  // C, bytes/s; 0: not seen to be a limit.
  [[nodiscard]] double capacity() const { return shared_ ? best_ : 0; }

 private:
  struct Block {
    std::uint32_t supersteps = 0;
    double bytes = 0, most = 0, seconds = 0;
  } block_{};
  struct Low {
    std::uint32_t blocks = 0;
    double best = 0;
  } low_{};                     // those in a row in which it was a limit and carried less than C
  double best_ = 0, last_ = 0;  // A/t; of the last block
  double quick_ = 0;            // pace; 0: none yet
  bool shared_ = false;
};

// Adds a superstep's crossings, from Set to Set. `own`: by rank, the Set that it was in.
void learn(Grid<LinkSeen>& links, const MeasuredSuperstep& t, std::span<const SetId> own, const Platform& platform,
           const Grid<double>& messages = {});

// C of all of them, as Platform::capacity has it: empty if none was seen to be a limit.
Grid<double> capacities(const Grid<LinkSeen>& links);

// What the links make of a superstep or a wave.
class Links {
 public:
  // `capacity`: Platform's; it has to outlive this.
  explicit Links(const Grid<double>& capacity) : capacity_(capacity), bytes_(capacity.rows(), capacity.cols()) {}

  [[nodiscard]] bool limited() const { return !capacity_.empty(); }
  void add(std::uint32_t from, std::uint32_t to, double bytes) {
    if (from != to && limited()) bytes_[from, to] += bytes;
  }
  // What the link takes for what was added; 0 if it is no limit.
  [[nodiscard]] double seconds(std::uint32_t from, std::uint32_t to) const {
    return limited() && capacity_[from, to] > 0 ? bytes_[from, to] / capacity_[from, to] : 0;
  }
  struct Busiest {
    double seconds = 0;
    std::uint32_t from = 0, to = 0;
  };
  // The link that takes longest for what was added.
  [[nodiscard]] Busiest busiest() const;

 private:
  const Grid<double>& capacity_;
  Grid<double> bytes_;
};

// The pause of one wave: the largest Mem, and what the links make of all of them together, s.
double pause_of(const Snapshot& snapshot, const Columns& columns, std::span<const ProcessorId> before,
                std::span<const ProcessorId> after);

}  // namespace bsp::decide
