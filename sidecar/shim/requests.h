// Requests: ours, so that the completion of a receive is counted wherever the program learns of it.
//
// A request that has completed by the time of a gate is carried over with its status. A receive that waits
// for a message not sent yet (the gate closes only when none is under way) is posted again in the next epoch,
// a persistent request is made again (persistent.cc); any other that has not completed postpones the gate.
// Partitioned requests are persistent ones of ours (partitioned.cc).
#pragma once

#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "sidecar/shim/handles.h"

namespace bsp::shim {

enum class RequestKind {
  kSend,
  kReceive,
  kSendReceive,
  kCollective,
  kOther,  // file, window and generalised requests, whose objects have blockers of their own
};

// How a persistent request is made in the next epoch, and what must live as long as it for that.
struct Again {
  std::function<int(MPI_Request*)> make;
  Comm* comm = nullptr;
  std::vector<Datatype*> types{};
  std::vector<Op*> ops{};
};

// The arguments of MPI_Irecv, for the next epoch.
struct Posted {
  bool known = false;
  std::uint64_t order = 0;  // of posting, over all receives, persistent ones too
  void* buffer = nullptr;
  int count = 0;
  int source = 0;
  int tag = 0;
  MPI_Datatype type = nullptr;  // the program's handle; held while it is ours
  MPI_Comm comm = nullptr;
};

// A partitioned request: MPI sees one message, sent when its last partition is ready.
struct Partitions {
  int count = 0;
  bool sending = false;
  std::atomic<int> missing{0};           // partitions of an active send that are not ready
  std::atomic<bool> handed_over{false};  // MPI has started to send
};

struct Request : SeenByFortran, Object {
  MPI_Request real = nullptr;
  RequestKind kind = RequestKind::kOther;
  const char* what = "";         // the call that made it
  const Peers* peers = nullptr;  // for the source of what it receives
  int send_to = -1;              // world rank, counted at each start of a persistent send
  bool persistent = false;
  bool active = true;
  // By the time of a gate: `status` holds the outcome. `real` is gone, or inactive if it is persistent.
  // Atomic because threads that look for pending collectives read it of requests that aren't theirs.
  std::atomic<bool> completed{false};
  bool orphan = false;  // freed by the program while active
  MPI_Status status{};
  int error = 0;               // what completing it returned
  Comm* makes_comm = nullptr;  // MPI_Comm_idup: `real` of it is there on completion
  // Arrays that MPI reads until completion (alltoallw).
  std::unique_ptr<std::vector<std::vector<MPI_Datatype>>> types;
  std::unique_ptr<Again>
      again;  // this and `posted` under the list's lock: MPI_Comm_free of another thread looks into them
  Posted posted;
  std::unique_ptr<Partitions> partitions;
  Request* next = nullptr;  // live requests: the next older one
  Request* previous = nullptr;
};

// Of the list of live requests, and of what other threads than its own read of a request. Taken only with MPI_THREAD_MULTIPLE.
class RequestsLock {
 public:
  RequestsLock();
  ~RequestsLock();
  RequestsLock(const RequestsLock&) = delete;
  RequestsLock& operator=(const RequestsLock&) = delete;
};

// Replaces the real request in *request by one of ours.
Request* make_request(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm);
Request* make_persistent(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm, int dest);

inline MPI_Request to_real(MPI_Request h) { return is_ours(h) ? reinterpret_cast<Request*>(h)->real : h; }

// True while a collective is under way or could be started (a persistent one).
bool collective_pending();

// Tests what is pending; the first request that keeps the rank from being moved, or nullptr.
const Request* pending_request();

// The youngest live request; `next` leads to the older ones. Only while no other thread is inside MPI.
Request* youngest_request();

// --- Persistent requests (persistent.cc) ---------------------------------------------------------------

// `make` makes the request with objects of the epoch that is open when it is called. The program may free `types` and `op`; the
// request still needs them.
void make_again(Request& request, MPI_Comm comm, std::function<int(MPI_Request*)> make,
                std::initializer_list<MPI_Datatype> types, MPI_Op op = nullptr);
// A receive that MPI_Irecv has posted. All arguments as the program gave them.
void note_receive(Request& request, void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm);
// True if the request can be taken back while it waits and be posted in the next epoch.
bool can_wait_on(const Request& request);
// Gives back what a request was made of, once it is in no list any more.
void let_go(std::unique_ptr<Again> again, const Posted& posted);
// The communicator is being freed: requests on it can't be made again (requests.cc).
void forget_requests_on(const Comm* comm);

void take_requests_down();
void bring_requests_up();

// --- Partitioned requests (partitioned.cc) -------------------------------------------------------------

// An active send with a partition that is not ready: MPI has not seen it yet.
inline bool withheld(const Request& r) {
  return r.partitions != nullptr && r.partitions->sending && r.active && !r.completed &&
         !r.partitions->handed_over.load(std::memory_order_acquire);
}
// Waits until another thread has made the last partition ready.
void wait_while_withheld(const Request& request);
void start_partitions(Request& request);
// MPI's tag of a partitioned message differs from the program's.
void restore_tag(const Request* request, MPI_Status& status);

}  // namespace bsp::shim
