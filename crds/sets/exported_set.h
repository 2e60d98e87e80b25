// A checkpoint set that leaves its namespace or cluster: what spec.restoreFrom.exported says of it. All of it could also be read in the
// storage or in the job's status; the key, which is secret, goes in a Secret.
#pragma once

#include <cstdint>
#include <string>

#include "base/core/error.h"
#include "crds/bspjob.h"

namespace bsp::crds {

struct ExportedSet {
  std::string uid;                // of the job that made it
  std::uint64_t epochs_used = 0;  // by that job, so that no epoch that its ranks have seen comes again
  StoredSet set;
};

// Base64.
std::string export_text(const ExportedSet& exported);
// kInvalid: it can't be one. Whoever writes a job may have written it.
Result<ExportedSet> read_exported(const std::string& text);

}  // namespace bsp::crds
