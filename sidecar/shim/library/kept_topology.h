// PMIx 5.0.10 and later releases of 5.0 (Open MPI 5.0.10 and 5.0.11 bring them) free the hardware topology in PMIx_Finalize, but keep their
// pointers to it, and never make another: the next PMIx_Finalize frees both again. Earlier ones keep the topology, 6.1 forgets it. So here
// the pointers are taken away for the time of PMIx_Finalize, which makes the affected releases do what the earlier ones did.
#pragma once

#include "sidecar/shim/library/pmix_version.h"

namespace bsp::shim {

// Whether this PMIx frees what it keeps. `version` as PMIx_Get_version() says it: "OpenPMIx 5.0.11rcH, …".
inline bool frees_kept_topology(const char* version) {
  const auto [major, minor, release] = parse_pmix_version(version);
  return major == 5 && minor == 0 && release >= 10;
}

}  // namespace bsp::shim
