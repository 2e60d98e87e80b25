// Virtual requests, so that a completed receive is counted wherever the program learns of it.
//
// A request that has completed by the time of a gate keeps its status. A receive whose message hasn't been sent yet
// is posted again in the next epoch (the gate closes only when no message is in flight), and a persistent request is
// recreated (persistent.cc). The gate waits for other pending requests (undelivered.h), or is postponed. Partitioned
// requests are built on persistent ones (partitioned.cc).
#pragma once

#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <vector>

#include "sidecar/shim/handles/handles.h"

namespace bsp::shim {

enum class RequestKind {
  kSend,
  kReceive,
  kSendReceive,
  kCollective,
  kGeneralised,
  kOther,  // of files and windows
};

// How to recreate a persistent request in the next epoch, and the objects that must live as long as it does.
struct RequestRecipe {
  std::function<int(MPI_Request*)> make;
  const Comm* comm = nullptr;
  std::vector<Datatype*> types{};
  std::vector<Op*> ops{};
};

// The arguments of MPI_Irecv, for the next epoch.
struct Posted {
  bool known = false;
  std::uint64_t order = 0;  // of posting, over all receives including persistent ones
  void* buffer = nullptr;
  int count = 0;
  int source = 0;
  int tag = 0;
  MPI_Datatype type = nullptr;  // the program's handle; holds a reference if it is virtual
  MPI_Comm comm = nullptr;
};

// Messages that are received in the order in which this rank sent them. `peer`: rank in the communicator.
struct MessageKey {
  const Comm* comm = nullptr;
  int peer = -1;
  int tag = 0;
  auto operator<=>(const MessageKey&) const = default;
};

// A partitioned request: MPI sees one message, sent when its last partition is ready.
struct Partitions {
  int count = 0;
  bool sending = false;
  std::atomic<int> missing{0};       // partitions of an active send that are not ready
  std::atomic<bool> started{false};  // MPI has started to send
};

struct Request : SeenByFortran, Object {
  MPI_Request real = nullptr;
  RequestKind kind = RequestKind::kOther;
  const char* what = "";  // the call that created it
  // The program's handle, for its error handler; nullptr: none, or freed, perhaps by another thread.
  std::atomic<MPI_Comm> comm{nullptr};
  const Peers* peers = nullptr;  // for the source of what it receives
  int send_to = -1;              // of a send: world rank
  std::uint64_t bytes = 0;       // of a send
  MessageKey key;                // of a persistent or synchronous send, or a partitioned receive
  bool synchronous = false;      // synchronous_sends.h has this, `number` and `message`
  std::uint64_t number = 0;
  std::shared_ptr<const std::vector<char>> message{};  // holds what MPI sends again
  int shown_tag = -1;  // the program's, where MPI's is hidden (hidden_tags.h); < 0: it isn't
  bool persistent = false;
  // Of a persistent collective: its `_init` call, as a communicator's origin, and how often it has been started.
  std::uint64_t origin = 0;
  std::uint64_t starts = 0;
  bool active = true;
  // Set by the time of a gate: `status` holds the outcome. `real` is freed, or inactive if the request is persistent.
  // Atomic because other threads read it when they check for pending collectives.
  std::atomic<bool> completed{false};
  // These two are protected by the list's lock: one thread may free a generalised request that another completes.
  bool orphan = false;     // freed by the program while active
  bool announced = false;  // by MPI_Grequest_complete
  MPI_Status status{};
  int error = 0;               // for the call that completes it; its error handler has not been called yet
  Comm* makes_comm = nullptr;  // MPI_Comm_idup: the real handle is filled in on completion
  // Arrays that MPI reads until completion (alltoallw).
  std::unique_ptr<std::vector<std::vector<MPI_Datatype>>> types;
  // This and `posted` are protected by the list's lock: MPI_Comm_free in another thread reads them.
  std::unique_ptr<RequestRecipe> recipe;
  Posted posted;
  std::unique_ptr<Partitions> partitions;
  Request* next = nullptr;  // live requests: the next older one
  Request* previous = nullptr;
};

// Protects the list of live requests and the parts of a request that other threads read. Taken only with
// MPI_THREAD_MULTIPLE.
class RequestsLock {
 public:
  RequestsLock();
  ~RequestsLock();
  RequestsLock(const RequestsLock&) = delete;
  RequestsLock& operator=(const RequestsLock&) = delete;
};

// `status` is MPI's, for the program.
inline void restore_tag(const Request* request, MPI_Status& status) {
  const bool is_hidden = status.MPI_TAG > kLargestTag || status.MPI_TAG < -kLargestTag;
  if (request != nullptr && request->shown_tag >= 0 && is_hidden) status.MPI_TAG = request->shown_tag;
}

// Replaces the real request in *request by a virtual one.
Request* make_request(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm);
Request* make_send(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm, int dest,
                   std::uint64_t bytes);
Request* make_synchronous(MPI_Request* request, const char* what, MPI_Comm comm, int dest, int tag,
                          std::uint64_t bytes);
// `dest` and `tag`: of a send.
Request* make_persistent(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm, int dest, int tag);

inline MPI_Request to_real(MPI_Request h) { return is_ours(h) ? reinterpret_cast<Request*>(h)->real : h; }

// True while a collective is pending that may use an operation that has been freed: a persistent one holds a reference
// to its operation, until its communicator is freed.
bool collective_pending();

// A request that prevents the rank from moving, or nullptr.
struct Pending {
  const Request* request = nullptr;
  bool passing = false;     // it and all others may complete if the rank waits
  bool makes_comm = false;  // and some request makes a communicator
};
// Tests all pending requests. Returns the youngest one that doesn't pass, else the youngest that does.
Pending pending_request();

// The youngest live request; `next` leads to the older ones. Only while no other thread is inside MPI.
Request* youngest_request();

// --- Persistent requests (persistent.cc) ---------------------------------------------------------------

// `make` creates the request from the objects of the epoch open at the time of the call. The request keeps `types`
// and `op`, which the program may free.
void set_recipe(Request& request, MPI_Comm comm, std::function<int(MPI_Request*)> make,
                std::initializer_list<MPI_Datatype> types, MPI_Op op = nullptr);
// A receive posted by MPI_Irecv. Arguments as the program passed them.
void note_receive(Request& request, void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm);
// True if the pending request can be cancelled and posted again in the next epoch.
bool can_repost(const Request& request);
// Releases the objects a request was created from, once it is in no list any more.
void release_recipe(std::unique_ptr<RequestRecipe> recipe, const Posted& posted);
// The communicator is being freed: requests on it can't be recreated (requests.cc).
void forget_requests_on(const Comm* comm);

void save_requests();
// After everything else is open again.
void restore_requests();

// --- Partitioned requests (partitioned.cc) -------------------------------------------------------------

// An active send with a partition that is not ready: MPI has not seen it yet.
inline bool withheld(const Request& r) {
  return r.partitions != nullptr && r.partitions->sending && r.active && !r.completed &&
         !r.partitions->started.load(std::memory_order_acquire);
}
// Waits until another thread has marked the last partition ready.
void wait_while_withheld(const Request& request);
void start_partitions(Request& request);

}  // namespace bsp::shim
