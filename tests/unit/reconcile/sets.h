// Jobs of the simulated cluster that make checkpoint sets.
#pragma once

#include <string>

#include "tests/unit/reconcile/world.h"

namespace bsp::reconcile::sim {

inline void stores_sets(World& w, const std::string& interval = "2s") {
  w.job.spec.checkpoint.interval = interval;
  w.job.spec.checkpoint.storage.emplace();
  w.job.spec.checkpoint.storage->host_path = crds::HostPathSource{"/sets"};
}
inline std::size_t sets_of(const World& w) {
  return w.job.status.checkpoint ? w.job.status.checkpoint->sets.size() : 0;
}
inline const crds::StoredSet& newest(const World& w) { return w.job.status.checkpoint->sets.back(); }
inline bool has_stored(World& w, std::uint64_t id) {
  return w.run_until([&] { return sets_of(w) > 0 && newest(w).id >= id; }, 2000);
}

}  // namespace bsp::reconcile::sim
