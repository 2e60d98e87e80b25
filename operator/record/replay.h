// Decides a recorded call again.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/record/call.h"

namespace bsp::record {

// Decides the same call, after the same supersteps, with these parameters. kInvalid if they would change when calls
// are made (keeps_cadence()).
Result<decide::Plan> replay(const Call& call, const decide::Params& params);

// Whether alpha0, d0, omega, delta and beta are equal; then the window is the recorded one, and so are α, D and P.
bool keeps_cadence(const decide::Params& recorded, const decide::Params& other);

// "" if both are the same bit for bit; else the first field that differs: "moves.to[0]: 3 and 4".
std::string difference(const decide::Plan& recorded, const decide::Plan& other);

// Reruns a whole run with parameters that make calls at other times: its supersteps are divided into new windows, from
// the first record on. Ranks stay where the run had them, whatever this decides; after they moved, a new window begins.
// Takes the records of one job and attempt, in order.
class Rerun {
 public:
  explicit Rerun(const decide::Params& params) : params_(params) {}
  // The calls that become due within this record's supersteps, with the record's snapshot.
  Result<std::vector<decide::Plan>> add(const Call& call);

 private:
  void begin(const Call& call);
  decide::Params params_;
  std::optional<decide::Window> window_;
  std::uint64_t added_ = 0;           // the last superstep added
  std::uint64_t ended_ = 0;           // the previous record's call came after it
  std::vector<std::string> mapping_;  // of the previous record: Set and processor of every rank
};

}  // namespace bsp::record
