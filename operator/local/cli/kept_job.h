// A job of local mode whose checkpoint sets outlive it, for `local resume`: beside them in the directory lies what the operator's objects
// held of it, and the seed from which the sets' keys follow. Whoever reads that file can read the sets, so only its owner can; and a
// file of anybody else is not read, since others may write into the directory.
#pragma once

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
// The one that has made a set last. kNotFound: there is none.
Result<KeptJob> newest_kept_job(const std::string& directory);
// With its sets, and those that it has taken over.
Result<void> forget_job(const std::string& directory, const crds::BspJob& job);

// A job that goes on from these sets, in that namespace.
Result<crds::BspJob> resumed(const KeptJob& kept, const std::string& name_space);

}  // namespace bsp::local
