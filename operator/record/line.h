// A recorded call as one line of JSON, and back. The format is names::kRecordSchema; README.md describes it.
//
// Every figure comes back bit for bit. A list of processors, ranks or moves stands column by column, a grid of which
// most entries are alike as the others only, and a superstep leaves out what is as in the superstep before: of a job
// with many ranks most of a line would be repetition.
#pragma once

#include <string>
#include <string_view>

#include "operator/record/call.h"

namespace bsp::record {

// Without a newline at the end; there is none inside.
std::string to_line(const Call& call);

// kInvalid with the field and the remedy: "plan.moves.to[2]: must be a whole number, not a text; …". Whoever reads a
// file puts its name and the line's number in front (Error::in). What comes back has passed validate().
Result<Call> from_line(std::string_view line);

}  // namespace bsp::record
