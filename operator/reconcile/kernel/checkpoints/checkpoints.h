// Checkpoint sets: an image of each rank, made at one gate by a wave in which nobody moves (migrate::Checkpoint).
//
//   due ──wave──> pending: every image is in memory, the ranks compute, the sidecars write into the storage
//                    │ every rank's sidecar has reported its image ──one write of the status──> stored
//                    └ any rank's failure ──> abandoned; the sets before it stay
//
//   an attempt ends ──> the next one starts from the newest set that is usable: each pod waits for its rank's image, restores
//                       it, stopped, and an epoch above all others opens once every rank is there. Else from the beginning.
//
// A set that the status doesn't name doesn't exist. The storage is reached by sidecars alone, and no rank ever waits for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

inline constexpr const char* kCheckpointStored = "CheckpointStored";
inline constexpr const char* kCheckpointFailed = "CheckpointFailed";
inline constexpr const char* kSetUnusable = "SetUnusable";
inline constexpr const char* kResumedFrom = "ResumedFrom";
inline constexpr const char* kSharedFiles = "SharedFiles";

inline bool makes_sets(const crds::BspJob& job) { return job.spec.checkpoint.storage.has_value(); }

// Every rank computes, and no set is being made or stored.
bool can_make_set(const Observed& o);
// The same, and spec.checkpoint.interval is over; or a drain is about to evict pods (spec.checkpoint.grace).
bool set_is_due(const Observed& o);
// A person has asked for one (names::kAnnotationCheckpoint), and none was begun since.
bool set_is_asked(const Observed& o);
// Of a job that makes none: why, once. nullopt: nobody has asked.
std::optional<Event> refuse_set(const Observed& o, crds::BspJobStatus& status);
// The wave that makes one, under an id and epochs that were never used.
migrate::Wave begin_set(const Observed& o, crds::BspJobStatus& status);
// What such a wave leaves once it has ended: a pending set, or why there is none.
std::vector<Event> note_set(const migrate::Wave& wave, const Observed& o, crds::BspJobStatus& status);
// Commits or abandons the pending set if it is known which. nullopt: it isn't, or there is none.
std::optional<std::vector<Event>> settle_set(const Observed& o, crds::BspJobStatus& status);
// One is being stored, of which a rank that moves would leave its image behind, so that it would be abandoned. Moves that can wait do, for
// a while: not those off a node that is being drained, or for an eviction.
bool moves_wait(const Observed& o);
// Lets rank 0's sidecar remove what the status doesn't name, or not any more: older sets, and what is left of abandoned ones.
std::optional<migrate::Action> remove_older_sets(const Observed& o);

}  // namespace bsp::reconcile
