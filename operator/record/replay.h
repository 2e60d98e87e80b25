// Deciding a recorded call again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/record/call.h"

namespace bsp::record {

// The same call, after the same supersteps, by these parameters. They may differ from the recorded ones in whatever
// does not say when calls are made (keeps_cadence()); kInvalid if they do in more.
Result<decide::Plan> replay(const Call& call, const decide::Params& params);

// Whether alpha0, d0, omega, delta and beta are the same: then the window is the recorded one, and so are α, D and P.
bool keeps_cadence(const decide::Params& recorded, const decide::Params& other);

// "" if both are the same bit for bit; else the first field that differs: "moves.to[0]: 3 and 4".
std::string difference(const decide::Plan& recorded, const decide::Plan& other);

// A whole run by parameters that make calls at other times: its supersteps are put into windows of their own, from the
// first record on. Ranks are where the run had them, whatever this decides; where they were moved the window begins
// anew. Records of one job and attempt, in order.
class Rerun {
 public:
  explicit Rerun(const decide::Params& params) : params_(params) {}
  // The calls that come due within this record's supersteps; the snapshot is the record's.
  Result<std::vector<decide::Plan>> add(const Call& call);

 private:
  void begin(const Call& call);
  decide::Params params_;
  std::optional<decide::Window> window_;
  std::uint64_t added_ = 0;           // the last superstep that was
  std::uint64_t ended_ = 0;           // after which the record before made its call
  std::vector<std::string> mapping_;  // of the record before: Set and processor of every rank
};

}  // namespace bsp::record
