// Messages that have been sent but not received at a gate, and for which no receive is posted. They would be lost with
// the epoch, so the ranks settle them, together:
//
//   1. Each rank waits until what the others have sent has arrived. Then it receives all that, as bytes, and waits for its
//      own requests that can complete by themselves.
//   2. The epoch closes and the next one opens, or the gate is postponed.
//   3. Each rank gives the messages back to their senders, which send them again, in the old order. So MPI itself
//      matches them with the program's receives and probes. The program continues once all of them have arrived, because
//      it may already know of one by MPI_Iprobe.
//
// The sender's buffer may have changed by then, and a rank holds only its own messages: that is why they travel twice
// more. MPI doesn't compare datatypes: for it a message is its bytes.
//
// It is all or nothing, also where the gate is postponed: a message that one rank left in MPI would be received before
// those that it followed. So a rank first has a token from each sender on each communicator, which ob1 delivers after the
// sender's messages there, and says beforehand if it has no room for all.
#pragma once

#include <cstdint>
#include <string>

namespace bsp::shim {

// Waits until no communicator is being made (MPI_Comm_idup), or nothing has happened for three seconds. Such a communicator
// has no number, which settle_messages() needs.
void wait_for_communicators();

// Settles messages, unless all ranks have received all of them, and then waits for requests until none is pending or nothing
// has happened for three seconds. Collective over all ranks. All have the same communicators, and these have been numbered.
// Returns "", or why this rank has left messages, to follow their number.
std::string settle_messages(bool all_received);

// Gives back what settle_messages() has received, and sends again what the others give back. Collective over all ranks,
// in the same epoch or in the next one.
void deliver_again();

// Whether MPI is still sending such a message.
bool is_sending_again();
// Frees those that it has sent.
void collect_sent_again();

}  // namespace bsp::shim
