// A rank survives the loss of its sidecar, but doesn't start an epoch without it: it ends if PMIx can't connect.
#pragma once

namespace bsp::shim {

// Open MPI treats the loss of its PMIx server as fatal. The connections between the ranks don't need the server, and
// the next epoch has another one, so a handler registered before Open MPI's swallows the event. Call it once in each
// epoch, right after MPI_Session_init.
void ignore_server_loss();

}  // namespace bsp::shim
