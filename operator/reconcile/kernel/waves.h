// Between RankMigrations and a wave of operator/migrate: beginning one, its view of the cluster, the work that its actions
// need, and how RankMigrations show it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"
#include "operator/reconcile/kernel/silence.h"

namespace bsp::reconcile {

// The wave that is stored in the status; nullopt: there was none yet. An unreadable one is an error.
Result<std::optional<migrate::Wave>> stored_wave(const crds::BspJobStatus& status);

// Of verbs outside of a wave: none lower is sent in a later one. `last`: the stored wave.
wire::Token newest_token(const crds::BspJobStatus& status, const std::optional<migrate::Wave>& last);
// The highest wave that a sidecar has followed.
std::uint32_t waves_seen(const Observed& o);

// A wave is stored with all its moves, some 500 bytes each, in the job's object (crds/README.md, "Size").
inline constexpr std::uint32_t kMostMoves = 1000;
// Begins wave number status.wave + 1: chooses slots, assigns generations and epoch numbers. Requests
// that can't be met are refused, each with its reason.
struct Refusal {
  std::string migration;
  std::string reason;  // CamelCase
  std::string message;
};
struct WaveStart {
  std::optional<migrate::Wave> wave;  // nullopt: nothing to move
  std::vector<Refusal> refused;
  std::vector<Refusal> waiting;  // made by hand, while too many ranks move: they stay Pending
  std::string stuck;             // why a rank whose node is drained can't move now; "": all of them can
};
WaveStart begin_wave(const Observed& o, const std::vector<MoveRequest>& requests, crds::BspJobStatus& status);

// A person named the target's node; the cost model only relies on the capacity of a Set.
bool wants_its_node(const std::string& migration, const Observed& o);
// The object of a move; null: it is not there.
const crds::RankMigration* migration_of(const migrate::Move& move, const Observed& o);
bool target_was_made(const migrate::Wave& wave, const migrate::Move& move, const Observed& o);

// The RankMigrations of pods that carry kAnnotationMoveTo, whether they are there already or not.
std::vector<crds::RankMigration> asked_on_pods(const Observed& o);
// Made by hand before the job was: it means an earlier job of this name, so it moves nothing.
bool is_older_than(const crds::RankMigration& migration, const crds::BspJob& job);
// RankMigrations that wait for a wave (made by hand), as requests.
std::vector<MoveRequest> waiting_requests(const Observed& o);

// The RankMigration of the wave that was deleted, which aborts the wave; "": none. A target is created only once its
// RankMigration is seen, so one that is missing after that was deleted.
std::string deleted_of(const migrate::Wave& wave, const Observed& o);

// The bandwidth of its slowest move in bytes/s, as far as measured, for the wave's limits; 0: not known.
double bandwidth_of(const migrate::Wave& wave, const Observed& o);

migrate::View view_of(const Observed& o, const Silence& silence, const std::string& cancelled);
// Adds what the wave's actions need.
void add_actions(const migrate::Wave& wave, const std::vector<migrate::Action>& actions, const Observed& o, Work& work);

// A rank is stopped, so the others wait for it or soon will: whatever it doesn't need can wait.
bool stands_still(const Observed& o);

// status.ranks as the committed epoch has them, after a commit of that wave.
void place_ranks(const migrate::Wave& wave, const Observed& o, crds::BspJobStatus& status);

// The RankMigrations of the wave that are missing or out of date, as they should be.
std::vector<crds::RankMigration> show_wave(const migrate::Wave& wave, const Observed& o);
// How a wave ended, for each of its first ranks: from where to where, and in what time.
std::vector<Event> wave_events(const migrate::Wave& wave, const Observed& o);
// What the moves of a wave did to the superstep, once it is known.
Event gain_event(const std::vector<RealisedGain>& gains, const std::vector<crds::RankMigration>& migrations);
// Made by hand, and waiting: the oldest so many of a job. Whoever may make RankMigrations could fill the operator's memory.
inline constexpr std::size_t kMostWaiting = 1000;
// RankMigrations that name a wave other than the stored one (nullptr: none): no wave would ever end them. And those beyond
// kMostWaiting.
std::vector<Refusal> orphans(const migrate::Wave* wave, const Observed& o);
crds::RankMigration refused(const crds::RankMigration& migration, const Refusal& refusal, Time now);

}  // namespace bsp::reconcile
