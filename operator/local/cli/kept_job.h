// A job of local mode whose checkpoint sets outlive it, for `local resume`: beside them in the directory lies what the operator's objects
// held of it, and the seed from which the sets' keys follow. Whoever reads that file can read the sets, so only its owner can; and a
// file of anybody else is not read, since others may write into the directory. Of sets in a bucket it lies in a directory of the user's
// (bucket.h).
#pragma once

#include <set>
#include <string>

#include "base/core/error.h"
#include "crds/bspjob.h"

namespace bsp::local {

struct KeptJob {
  crds::BspJob job;
  std::string seed;
};

// <directory>/<uid>.job
Result<void> keep_job(const std::string& directory, const KeptJob& kept);
// The one that has made a set last. kNotFound: there is none. `place`: what --checkpoints names.
Result<KeptJob> newest_kept_job(const std::string& directory, const std::string& place);
// That of the job, and those of the jobs whose sets it has taken over.
std::set<std::string> uids_of_sets(const crds::BspJob& job);
// With the sets that lie in the directory: its own, and those that it has taken over.
Result<void> forget_job(const std::string& directory, const crds::BspJob& job);

// A job that goes on from these sets, in that namespace.
Result<crds::BspJob> resumed(const KeptJob& kept, const std::string& name_space);

}  // namespace bsp::local
