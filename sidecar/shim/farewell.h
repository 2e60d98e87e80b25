// How the connections of an epoch end: nobody writes to a rank that has gone, and nothing that a rank still wants is lost.
//
// Open MPI's ob1 and btl/tcp send things that no request waits for: ob1 answers the first message between two ranks on a
// communicator made from a session (the communicator's number here), which may be answered once more; btl/tcp says FIN
// before it closes. A rank that closes a socket in which such an answer lies unread makes its kernel reset the
// connection: its peer dies of SIGPIPE saying FIN, or loses what this kernel had not sent yet. MPI_Finalize has the same
// trouble, hides it by a fence of PMIx before and by ignoring errors of links after; closing a session has neither.
//
// A close begins with a collective of all ranks (the agreement at a gate, the barrier in MPI_Finalize), which is then
// repeated, once for each link that two ranks may have. Why this is enough:
//  * A rank that leaves a collective knows that all ranks have entered it. So every message that a program waits for has
//    arrived, and so has every message of the collective to this rank: only answers are under way to it, which nobody
//    needs.
//  * Its own last message may still wait in btl/tcp for a connection. The repetition sends to the same ranks: who has
//    entered it has got the messages of the first time, so those connections stand, and btl/tcp writes what it sends
//    there straight into the kernel. Links take turns, so the last repetition finds each of them connected.
//  * It then closes. Each connection is closed for writing only, after btl/tcp's FIN, and is read until the peer has
//    closed it too. What this kernel holds is still delivered, and no unread byte is there when the socket goes: no reset.
//  * A peer that is still in the collective reads all of that before FIN, in order; what it answers finds a socket that is
//    still read. After FIN it has nothing to send to this rank: what the collective sends to a rank comes before that
//    rank leaves.
//  * All close for writing before they wait for a peer: no circle.
//  * With several links between two ranks an answer may take another link than FIN, and find it closed. Such an error
//    of a link is ignored from the beginning of the collective on, as Open MPI does in its MPI_Finalize.
#pragma once

namespace bsp::shim {

// From the collective that begins a close to its end MPI ignores that links break: the peers may have left already.
void links_may_break();
void links_must_hold();

// Repeats the collective that has begun the close.
template <class Collective>
void settle(Collective again) {
  constexpr int kLinks = 2;  // a pod has one network interface for MPI, seldom two
  for (int i = 0; i < kLinks; ++i) again();
}

// While it lives MPI's connections are closed as described above; its end waits for the peers' farewells.
class Farewell {
 public:
  Farewell();
  ~Farewell();
  Farewell(const Farewell&) = delete;
  Farewell& operator=(const Farewell&) = delete;
};

}  // namespace bsp::shim
