// Closes an epoch's connections gracefully: no rank writes to a peer that is gone, and no data that a rank still
// needs is lost.
//
// Open MPI's ob1 and btl/tcp send things that no request waits for. ob1 answers the first message between two ranks
// on a communicator made from a session with its local communicator number, and that may be answered once more.
// btl/tcp sends FIN before it closes. If a rank closes a socket that holds such an unread answer, its kernel resets
// the connection: the peer dies of SIGPIPE when it sends FIN, or loses what this kernel had not sent yet.
// MPI_Finalize has the same problem and hides it with a PMIx fence before, and by ignoring link errors after; closing
// a session does neither.
//
// A close begins with a collective of all ranks (the agreement at a gate, the barrier in MPI_Finalize). That
// collective is then repeated once for each link that two ranks may have. This is sufficient because:
//  * A rank that leaves a collective knows that all ranks have entered it. So every message that a program waits for
//    has arrived, and so has every message of the collective to this rank: only answers are still in flight to it,
//    and they aren't needed.
//  * This rank's own last message may still wait in btl/tcp for a connection. The repetition sends to the same ranks.
//    A rank that has entered it has received the messages of the first round, so those connections are established,
//    and btl/tcp writes directly to the kernel. Links take turns, so the last repetition finds every link connected.
//  * The rank then closes. It sends btl/tcp's FIN, shuts each connection down for writing only, and reads until the
//    peer has closed too. The kernel still delivers what it holds, and no unread byte remains when the socket is
//    closed: no reset.
//  * A peer still in the collective reads all of that before FIN, in order, and what it answers reaches a socket that
//    is still being read. After FIN it has nothing to send to this rank, because a rank receives everything the
//    collective sends it before it leaves.
//  * All ranks shut down writing before they wait for a peer, so there is no deadlock.
//  * With several links between two ranks, an answer may take another link than FIN and find it closed. Such link
//    errors are ignored from the beginning of the collective on, as in Open MPI's MPI_Finalize.
#pragma once

namespace bsp::shim {

// MPI ignores link errors from the collective that begins a close until the close has ended: peers may have left
// already.
void ignore_link_errors();
void stop_ignoring_link_errors();

// Repeats the collective that began the close.
template <class Collective>
void repeat_for_each_link(Collective collective) {
  constexpr int kLinks = 2;  // a pod has one network interface for MPI, rarely two
  for (int i = 0; i < kLinks; ++i) collective();
}

// While it exists, MPI's connections are closed as described above. The destructor waits for the peers to close.
class GracefulClose {
 public:
  GracefulClose();
  ~GracefulClose();
  GracefulClose(const GracefulClose&) = delete;
  GracefulClose& operator=(const GracefulClose&) = delete;
};

}  // namespace bsp::shim
