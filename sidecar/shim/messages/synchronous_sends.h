// Synchronous sends under way. Such a send completes once its message is being received. A gate takes messages that nobody
// has received, and they are sent again after it (undelivered.h): the send must then wait for that message.
//
// Its sender has to know which of the messages that come back is the request's. Messages with the same sender,
// communicator, destination and tag are matched in order, so those that come back unmatched are the latest. It is enough
// to know how many followed the request's, and to count them only while a synchronous send is under way. The message of
// one that hasn't completed may also have been matched by MPI_Mprobe: such a send completes at the gate, a little early,
// as its message can't be told from one that has been received.
#pragma once

#include <atomic>
#include <vector>

#include "sidecar/shim/messages/requests.h"

namespace bsp::shim {

extern std::atomic<int> synchronous_under_way;

void number_message(const MessageKey& key);

// MPI has taken a message, perhaps that of a synchronous send.
inline void note_message(const MessageKey& key) {
  if (synchronous_under_way.load(std::memory_order_relaxed) != 0) [[unlikely]]
    number_message(key);
}

// MPI has started the synchronous send with this key, and note_message() has been called for it.
void begin_synchronous(Request& request);
// It has completed …
void end_synchronous();
// … but only because a gate has taken its message, which is being sent again.
void continue_synchronous(Request& request);

// At a gate: those that haven't completed.
std::vector<Request*> pending_synchronous();

// How many messages with the request's key followed its own.
std::uint64_t followers(const Request& request);

}  // namespace bsp::shim
