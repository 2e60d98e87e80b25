// Windows at a gate (windows.cc has the calls).
//
// A window is freed when its epoch closes and recreated in the next one, on the same memory, with the same locks held
// and the same fence epoch open. MPI_Win_allocate's memory is the shim's, so it outlives the epoch.
//
// Why the program can't notice:
//  * Every rank is behind the same edge, and no thread is inside MPI. Windows are closed only if all ranks agree to
//    close the epoch and every one of a window's ranks has called as many fences and hasn't freed it: so their fence
//    epochs match. MPI_Win_start and MPI_Win_post can't be repeated by all ranks in step, so they postpone the gate.
//  * A rank first ends its passive epochs: unlocking completes its accesses at their targets. It then takes part in
//    the fences and MPI_Win_free of all its windows, which are collective. So when a window is gone on one rank, no
//    rank accesses it any more: each has unlocked before it entered MPI_Win_free, which no rank leaves before all have
//    entered it (MPI 4.1, 12.2.5).
//  * To complete an access early is legal: MPI may perform it at any time between the call and the end of its epoch,
//    and until then the program may use neither the origin's buffer nor the target's memory.
//  * Between unlocking and locking again no rank runs the program's code, so nobody else gets the lock. The locks that
//    were held together are compatible, so all can be acquired again in any order.
//
// Memory that ranks share (MPI_Win_allocate_shared) doesn't move: such a window postpones every gate. MPI_Comm_split_type(…,
// MPI_COMM_TYPE_SHARED) promises of its ranks that they can make one. What it says is true of the epoch in which it is called: the
// ranks of one pod. The promise holds as long as the communicator, or one made from it, is there: a gate after which two of its
// ranks would be in different pods is postponed. They move together, others move as they like, and a communicator that was freed
// holds nobody.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

namespace bsp::shim {

// MPI_Comm_split_type has made this.
void note_split_type(MPI_Comm made, int split_type, MPI_Info info);

// "", or why ranks must not part that share memory, if the next epoch parts this rank from one of them.
std::string parting_blocker(bool (*parts_from)(int rank));

// What prevents a window from being closed now; "" if nothing does. Completes the accesses of passive epochs, so that
// their requests (MPI_Rput) don't hold the rank back.
std::string window_blocker();

// 0, summed over all ranks, if every window is live on all its ranks and they have called as many fences.
std::int64_t share_of_windows();

// Collective over all ranks.
void close_windows();
void reopen_windows();

}  // namespace bsp::shim
