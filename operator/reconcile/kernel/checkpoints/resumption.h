// The attempt that begins goes on from the newest set that an attempt can start from. What may be otherwise the next time costs none:
//
//   a rank's restore fails
//     the image is damaged, or what it needs is for certain not as it was         the set is given up, and the one before is tried
//     its node's CPU lacks what its libraries have seen                           another node is tried as long as one may fit
//                                                                                 (fitting_nodes.h), in kCpuTries attempts; then the same
//     criu can't do it                    on two nodes alike                      the same
//                                         else                                    the attempt has failed, and the next one tries again
//     an accident: the storage is away, no memory, a volume that isn't mounted    the rank tries again, in growing pauses, until
//                                                                                 loading_limit(); then the attempt has failed
//   kTries attempts have failed so        an older one is tried; once the job goes on from that, the newer ones are given up
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

inline constexpr std::size_t kDigest = 32;  // bytes, of a stored file
// A storage that takes or gives an image more slowly than this, for the job's largest, is no good.
inline constexpr std::chrono::minutes kStoring{5};
inline constexpr double kLeastBytesPerSecond = 1e6;
inline constexpr std::uint32_t kTries = 2;  // of a set, before an older one is tried
inline constexpr std::size_t kCpuTries =
    8;  // one after the other, each on nodes of which it wasn't known that they lack features

// The set from which an attempt that begins now starts: the newest; but one that could not be restored twice, by whatever accidents,
// comes after those that were tried less. Null: there is none.
const crds::StoredSet* next_set(const crds::BspJobStatus& status);
void choose_set(crds::BspJobStatus& status);  // that one
// The set from which the present attempt starts; null: from the beginning.
const crds::StoredSet* set_of_start(const crds::BspJobStatus& status);

// An attempt could start from no other.
bool is_last_usable(const crds::StoredSet& set, const crds::BspJobStatus& status);

// How far the ranks have come in starting from a set.
struct Resumption {
  // Of a rank that could not be restored on that node, and the image may be to blame.
  struct Suspicion {
    std::uint32_t rank = 0;
    std::string node, why;
  };
  bool done = false;                        // every rank is there, stopped
  std::string unusable = {};                // why no attempt can start from this set
  std::string unfit = {};                   // why none can on these nodes
  std::optional<Suspicion> suspicion = {};  // once every rank has said how it went
  std::string waits = {};                   // for people
  std::string failed = {};                  // likewise: the ranks that have failed by what may pass, and why
  std::string failed_on = {};               // the node of the first of them
  std::string notes = {};                   // likewise: what was done to files on shared volumes
  std::vector<migrate::Action> loads = {};
};
Resumption resume_from(const crds::StoredSet& set, const Observed& o);
// Of how many ranks it has images.
std::uint32_t ranks_of(const crds::StoredSet& set);
// No attempt starts from it again.
void give_up_set(std::uint64_t id, const std::string& why, crds::BspJobStatus& status);
// Nor from a newer one than that from which the ranks are about to go on.
void give_up_newer(std::uint64_t id, crds::BspJobStatus& status);
// An attempt could not start from it, and the next one may.
void note_try(std::uint64_t id, const Resumption& resumption, crds::BspJobStatus& status);
// How long a start from it may take beyond JobLimits::start.
Duration loading_limit(const crds::StoredSet& set, const crds::BspJob& job);

// Attempts that failed, and that runPolicy.backoffLimit counts: those since the last that stored a set. Call before the
// attempt's end is noted.
std::uint32_t failed_attempts(crds::BspJobStatus& status);

}  // namespace bsp::reconcile
