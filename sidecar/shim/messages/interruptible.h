// Calls that wait for another rank, while threads may close the epoch (MPI_THREAD_MULTIPLE).
//
// A thread that waited in MPI's own call would hold its rank: at once with a message that never comes, and otherwise where the rank that
// is to send it has its threads out of MPI for this very gate. So such a call posts its request, as the program could by itself, and tests
// it until it has completed. In between the thread holds nothing of MPI's. It steps aside while another one closes the epoch, and the
// request is carried like any other: a receive is taken back and posted again, a send is settled (undelivered.h).
#pragma once

#include <cstdint>

#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {

inline bool is_interruptible() { return state.multiple && state.epochs; }
// MPI keeps what is smaller by itself, and its own call returns.
inline bool is_interruptible(std::uint64_t bytes_to_send) { return is_interruptible() && bytes_to_send > 4096; }

// One thread of a process tests without pause, as MPI's own calls do; further ones leave it the processor.
class Polling {
 public:
  Polling() = default;
  ~Polling();
  Polling(const Polling&) = delete;
  Polling& operator=(const Polling&) = delete;
  void pause();  // within one Call

 private:
  bool is_eager_ = false;
};

// `test(flag)`, until it fails or sets the flag. Within one Call.
template <class Test>
int poll_until(const Test& test) {
  Polling polling;
  for (;;) {
    int flag = 0;
    if (const int rc = test(&flag); rc != MPI_SUCCESS || flag) return rc;
    polling.pause();
  }
}

// The functions of that name, of MPI.
namespace interruptible {
int Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status);
int Send(const void* buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int Ssend(const void* buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
int Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int dest, int out_tag, void* in, int in_count,
             MPI_Datatype in_type, int source, int in_tag, MPI_Comm comm, MPI_Status* status);
int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status);
}  // namespace interruptible

}  // namespace bsp::shim
