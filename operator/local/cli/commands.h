// The commands beside `local run`. Each takes the words after its name, prints, and returns the exit status: 0 done,
// 1 it failed (the reason is on stderr), 2 the call was wrong.
#pragma once

#include <span>
#include <string>

namespace bsp::local {

// get [bspjobs|rankmigrations|pods|nodes|events] [NAME] [-n NS] [-o table|wide|json|yaml|name] [-w]
int local_get(std::span<const std::string> args);
// describe bspjob|rankmigration NAME
int local_describe(std::span<const std::string> args);
// logs RANK [--job NAME] [-f]: what the rank has written in all its pods, in order
int local_logs(std::span<const std::string> args);
// migrate RANK --to SET [--job NAME] [--wait]: creates a RankMigration, as a user of a cluster would
int local_migrate(std::span<const std::string> args);
// delete [bspjob] NAME: waits until it is gone. If the operator was killed it takes containers, networks and files away
// itself.
int local_delete(std::span<const std::string> args);

}  // namespace bsp::local
