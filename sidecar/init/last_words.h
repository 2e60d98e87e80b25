// What a finished program's rank leaves behind where no sidecar is left to say it: a pod's sidecar ends with its program, and an operator
// that comes later knows only what the node has kept of the container. An exit status other than 0 doesn't make the results of a job
// incomplete whose ranks have all returned from MPI_Finalize.
#pragma once

#include <string>

namespace bsp::init {

// Appends names::kFinalizedNote to the container's termination message, which the node reports, if the ring says that the program has
// finalized MPI. Does nothing where there is no regular file at `log`, as outside Kubernetes.
void note_finalized(const std::string& ring, const std::string& log);

// Likewise appends names::kAborted or kEpochFailed if `why` says so, the reason that the shim has given for the program's end.
void note_reason(const std::string& why, const std::string& log);

}  // namespace bsp::init
