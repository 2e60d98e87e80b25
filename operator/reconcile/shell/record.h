// Files of recorded calls, to which lines are only ever appended.
#pragma once

#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp::reconcile {

// Adds `line` and a newline; the file is made if there is none. An unfinished line is ended first,
// and a line that can't be written whole leaves nothing behind. kNoSpace, kFailed with the path.
Result<void> append_line(const std::string& path, std::string_view line);

// Whether that could work: makes the file.
Result<void> check_appendable(const std::string& path);

// In `directory`, the calls of one job: <namespace>_<job>.jsonl. Neither name has a '_'.
std::string record_path(const std::string& directory, const std::string& name_space, const std::string& job);

// append_line(), and a warning if that fails: a job goes on without its record.
void record_line(const std::string& path, const std::string& line);

}  // namespace bsp::reconcile
