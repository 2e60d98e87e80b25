// The timeline of a real run as SVG. Pure but for calls_of_file().
//
//   rows      a rank each, in the colour of the Set where it ran; with a record, the strong part of a bar is the share of
//             the window in which the rank computed
//   bands     waves, from the order to stop; dark: the pause, with its length; red where the wave was rolled back
//   marks     in a rank's row: where it moved (a line in its row's height), or where its move was rolled back (a cross)
//   ticks     rescheduling calls; below, α and D as they left them
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operator/record/call.h"
#include "operator/screens/words.h"

namespace bsp::screens {

// One rescheduling call.
struct CallMade {
  Time time{};
  Superstep superstep;
  double alpha = 0, alpha_next = 0;  // supersteps
  double d = 0, d_next = 0;
  bool moves = false;
  std::vector<double> busy = {};  // by rank: the share of the window in which it computed; empty: unknown
};
CallMade call_of(const crds::Decision& decision);
CallMade call_of(const record::Call& call);
// The job's calls in a record (operator/record). kInvalid names the line; or says that there is none of this job.
Result<std::vector<CallMade>> calls_in(std::string_view record, const crds::BspJob& job);
// The same of a file; none if `file` is "".
Result<std::vector<CallMade>> calls_of_file(const std::string& file, const crds::BspJob& job);

// `calls` in their order. `running`: when all ranks first ran; Time{}: unknown.
std::string timeline_svg(const Shown& shown, std::span<const CallMade> calls, Time running, Time now);

}  // namespace bsp::screens
