// Between RankMigration objects and the wave of operator/migrate: making one, looking at the world for
// it, turning its actions into requests, showing it in the objects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/kernel/silence.h"

namespace bsp::reconcile {

// The wave that is stored in the status; nullopt: none was ever begun. An unreadable one is an error.
Result<std::optional<migrate::Wave>> stored_wave(const crds::BspJobStatus& status);

// Begins wave number status.wave + 1: chooses slots, hands out generations and epoch numbers. Requests
// that can't be met are left out, each with its reason.
struct Refusal {
  std::string migration;
  std::string reason;  // CamelCase
  std::string message;
};
struct Begun {
  std::optional<migrate::Wave> wave;  // nullopt: nothing to move
  std::vector<Refusal> refused;
  std::vector<Refusal> waiting;  // made by hand, and too many move already: they stay Pending
};
Begun begin_wave(const Observed& o, const std::vector<MoveRequest>& requests, crds::BspJobStatus& status);

// RankMigrations that wait for a wave (made by hand), as requests.
std::vector<MoveRequest> waiting_requests(const Observed& o);

// The RankMigration of the wave that somebody has deleted, which aborts it; "": none. A target is made only once its
// RankMigration is seen, so one that is missing then was there.
std::string deleted_of(const migrate::Wave& wave, const Observed& o);

// Of the slowest of its moves, bytes/s, as far as the calibration knows: for the limits of the wave.
double bandwidth_of(const migrate::Wave& wave, const Observed& o);

migrate::View view_of(const Observed& o, const Silence& silence, const std::string& cancelled);
// Adds what the wave's actions need.
void add_actions(const migrate::Wave& wave, const std::vector<migrate::Action>& actions, const Observed& o, Work& work);

// A rank is stopped, so the others wait for it, or soon will: what is not needed to let it go on waits too.
bool stands_still(const Observed& o);

// status.ranks as the committed epoch has them, after a commit of that wave.
void place_ranks(const migrate::Wave& wave, const Observed& o, crds::BspJobStatus& status);

// The RankMigrations of the wave as they should be now: those that differ from what is there, or are
// missing. `gains`: predicted gain by rank.
std::vector<crds::RankMigration> show_wave(const migrate::Wave& wave, const Observed& o);
// RankMigrations that say they belong to a wave, but not to the one that is stored (nullptr: none): nobody
// would ever end them.
std::vector<Refusal> orphans(const migrate::Wave* wave, const Observed& o);
crds::RankMigration refused(const crds::RankMigration& migration, const Refusal& refusal, Time now);

}  // namespace bsp::reconcile
