// The commands of local mode besides `local run`. Each takes the words after its name, prints, and returns an exit code
// (operator/cli/exit_code.h).
#pragma once

#include <span>
#include <string>

#include "base/core/error.h"

namespace bsp::local {

Result<int> local_get(std::span<const std::string> args);
Result<int> local_describe(std::span<const std::string> args);
// The screens of operator/screens.
Result<int> local_explain(std::span<const std::string> args);
Result<int> local_top(std::span<const std::string> args);
Result<int> local_timeline(std::span<const std::string> args);
// Prints what the rank has written in all its pods, in order.
Result<int> local_logs(std::span<const std::string> args);
// Creates a RankMigration, as a user of a cluster would.
Result<int> local_migrate(std::span<const std::string> args);
// Asks for a checkpoint set, as a user of a cluster would; lists those that there are.
Result<int> local_checkpoint(std::span<const std::string> args);
Result<int> local_checkpoints(std::span<const std::string> args);
// Waits until the object is gone. If no operator is running, it removes containers, networks and files itself.
Result<int> local_delete(std::span<const std::string> args);

}  // namespace bsp::local
