// A rank outlives its sidecar.
#pragma once

namespace bsp::shim {

// Open MPI takes the loss of its PMIx server as fatal. The connections between the ranks don't need it,
// and the next epoch has another server: a handler of ours, before Open MPI's, ends the matter. Call it
// once in each epoch, right after MPI_Session_init.
void survive_loss_of_server();

}  // namespace bsp::shim
