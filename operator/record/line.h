// Converts a recorded call to a line of JSON and back. The format is names::kRecordSchema; README.md describes it.
//
// Numbers round-trip bit for bit. Lists of processors, ranks or moves are written by columns, a grid whose entries are
// mostly equal as its exceptions, and a superstep without the lists that equal those of the superstep before: for a
// job with many ranks, most of a line would be repetition otherwise.
#pragma once

#include <string>
#include <string_view>

#include "operator/record/call.h"

namespace bsp::record {

// Without newlines, also at the end.
std::string to_line(const Call& call);

// kInvalid with the field and the remedy: "plan.moves.to[2]: must be a whole number, not a string; …". The caller
// prepends the file's name and the line's number (Error::in). The result has passed validate().
Result<Call> from_line(std::string_view line);

}  // namespace bsp::record
