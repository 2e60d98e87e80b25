// Requests: ours, so that the completion of a receive is counted wherever the program learns of it.
//
// A request that has completed by the time of a gate is carried over with its status; one that has not
// postpones the gate. Persistent and partitioned requests postpone it as long as they live.
#pragma once

#include <vector>

#include "sidecar/shim/handles.h"

namespace bsp::shim {

enum class RequestKind {
  kSend,
  kReceive,
  kSendReceive,
  kCollective,
  kPartitioned,
  kOther,  // file, window and generalised requests, whose objects have blockers of their own
};

struct Request : Object {
  MPI_Request real = nullptr;
  RequestKind kind = RequestKind::kOther;
  const char* what = "";  // the call that made it
  const Peers* peers = nullptr;  // for the source of what it receives
  int send_to = -1;              // world rank, counted at each start of a persistent send
  bool persistent = false;
  bool active = true;
  bool completed = false;  // by the time of a gate: `status` holds the outcome, `real` is gone
  bool orphan = false;     // freed by the program while active
  MPI_Status status{};
  int error = 0;           // what completing it returned
  Comm* makes_comm = nullptr;  // MPI_Comm_idup: `real` of it is there on completion
  // Arrays that MPI reads until completion (alltoallw).
  std::unique_ptr<std::vector<std::vector<MPI_Datatype>>> types;
  Request* next = nullptr;  // live requests
  Request* previous = nullptr;
};

// Replaces the real request in *request by one of ours.
Request* make_request(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm);
Request* make_persistent(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm,
                         int dest);

inline MPI_Request to_real(MPI_Request h) {
  return is_ours(h) ? reinterpret_cast<Request*>(h)->real : h;
}

// True while a collective is under way or could be started (a persistent one).
bool collective_pending();

// Tests what is pending; the first request that keeps the rank from being moved, or nullptr.
const Request* pending_request();

}  // namespace bsp::shim
