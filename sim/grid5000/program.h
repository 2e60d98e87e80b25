// A run of that program, event by event:
//
//   * A process computes, then sends 1 MB to the next one and receives as much from the one before it. A message starts when both are
//     ready; those on the way share the machines' links.
//   * The barrier is a message from process 1 to each other process that has come to it, so that the others don't wait for each other.
//   * In a call each process sends a message to the manager of its site. The managers tell each other twice, and answer one after the
//     other: so the processes go on one by one, and from then on the messages of one overlap with the computation of another one.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/grid5000/rules.h"

namespace bsp::sim::grid5000 {

struct Program {
  decide::Mapping mapping{};
  std::uint32_t supersteps = 0;
  std::uint32_t alpha = 0;  // supersteps from call to call, never more or less; 0: none
  Heuristic heuristic{};
  bool migrates = false;
};

struct Ran {
  struct Moved {
    std::uint32_t process;
    Machine from, to;
    std::uint32_t superstep;
  };
  struct Called {
    std::uint32_t superstep, moves;
  };
  double seconds = 0;
  std::vector<Called> calls{};
  std::vector<Moved> moves{};
};

Ran run(const Program& program);

}  // namespace bsp::sim::grid5000
