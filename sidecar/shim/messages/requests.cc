#include "sidecar/shim/messages/requests.h"

#include <deque>
#include <mutex>
#include <new>
#include <utility>

#include "sidecar/shim/handles/attributes.h"
#include "sidecar/shim/handles/errors_after.h"
#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/interruptible.h"
#include "sidecar/shim/messages/request_arrays.h"
#include "sidecar/shim/messages/synchronous_sends.h"

namespace bsp::shim {
namespace {

std::mutex lock;
Request* live_head = nullptr;
Request* free_head = nullptr;
// Requests that the program freed while they were active. What they receive is counted when they complete.
std::deque<Request*> orphans;

// It must be fully constructed when it enters the list: another thread may find it there.
Request* create(MPI_Request real_request, RequestKind kind, const char* what) {
  RequestsLock guard;
  void* storage = free_head;
  if (storage != nullptr)
    free_head = free_head->next;
  else
    storage = arena_allocate(sizeof(Request));
  auto* request = new (storage) Request;  // without parentheses, which would zero the part only Fortran reads
  if (has_fortran()) request->view.fill(fortran_number(request));
  request->real = real_request;
  request->kind = kind;
  request->what = what;
  request->next = live_head;
  if (live_head != nullptr) live_head->previous = request;
  live_head = request;
  return request;
}

void destroy(Request* request) {
  std::unique_ptr<RequestRecipe> recipe;
  Posted posted;
  {
    RequestsLock guard;
    if (request->previous != nullptr)
      request->previous->next = request->next;
    else
      live_head = request->next;
    if (request->next != nullptr) request->next->previous = request->previous;
    recipe = std::move(request->recipe);
    posted = request->posted;
  }
  release_recipe(std::move(recipe), posted);
  request->~Request();
  RequestsLock guard;
  request->next = free_head;  // NOLINT: the slot is raw memory now, its `next` links the free ones
  free_head = request;
}

// The real request has completed with `status` and `error`: counts it, once.
void count_completion(Request& request, const MPI_Status& status, int error) {
  if (request.kind == RequestKind::kReceive || request.kind == RequestKind::kSendReceive)
    received(request.peers, status);
  if (request.synchronous) end_synchronous();
  if (Comm* made = std::exchange(request.makes_comm, nullptr); made != nullptr && error == MPI_SUCCESS) {
    describe(*made);
  } else if (made != nullptr) {  // there is no communicator: its real handle points at nothing
    delete_attributes(reinterpret_cast<MPI_Comm>(made));
    comms.destroy(made);
  }
}

}  // namespace

RequestsLock::RequestsLock() {
  if (state.multiple) lock.lock();
}

RequestsLock::~RequestsLock() {
  if (state.multiple) lock.unlock();
}

Request* make_request(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm) {
  if (*request == pre.request_null) return nullptr;
  Request* r = create(*request, kind, what);
  if (Comm* c = comm_of(comm)) r->peers = c->peers, r->comm = comm;
  *request = reinterpret_cast<MPI_Request>(r);
  return r;
}

Request* make_persistent(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm, int dest, int tag) {
  Request* r = make_request(request, kind, what, comm);
  if (r == nullptr) return nullptr;
  r->persistent = true;
  r->active = false;
  if (kind == RequestKind::kSend) r->send_to = world_rank(r->peers, dest), r->key = {comm_of(comm), dest, tag};
  if (const Comm* c = comm_of(comm); c != nullptr && kind == RequestKind::kCollective) r->origin = origin_on(*c);
  return r;
}

Request* make_send(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm, int dest,
                   std::uint64_t bytes) {
  Request* r = make_request(request, kind, what, comm);
  if (r != nullptr) r->send_to = world_rank(r->peers, dest), r->bytes = bytes;
  return r;
}

Request* make_synchronous(MPI_Request* request, const char* what, MPI_Comm comm, int dest, int tag,
                          std::uint64_t bytes) {
  Request* r = make_send(request, RequestKind::kSend, what, comm, dest, bytes);
  if (r == nullptr) return nullptr;
  r->key = {comm_of(comm), dest, tag};
  r->synchronous = true;
  begin_synchronous(*r);
  return r;
}

void settle(MPI_Request* slot, Request* request, const MPI_Status& status, int error) {
  if (request->persistent) {
    if (request->active && !request->completed) count_completion(*request, status, error);
    request->active = false;
    request->completed = false;
    return;
  }
  if (!request->completed) count_completion(*request, status, error);
  destroy(request);
  *slot = pre.request_null;
}

bool collective_pending() {
  RequestsLock guard;
  for (const Request* r = live_head; r != nullptr; r = r->next)
    if (r->kind == RequestKind::kCollective && !r->completed && r->recipe == nullptr) return true;
  return false;
}

Request* youngest_request() { return live_head; }

void forget_requests_on(const Comm* comm) {
  std::vector<std::pair<std::unique_ptr<RequestRecipe>, Posted>> released;
  {
    RequestsLock guard;
    for (Request* r = live_head; r != nullptr; r = r->next) {
      if (object_of<Comm>(r->comm) == comm) r->comm = nullptr;
      if ((r->recipe != nullptr && r->recipe->comm == comm) ||
          (r->posted.known && object_of<Comm>(r->posted.comm) == comm)) {
        released.emplace_back(std::move(r->recipe), r->posted);
        r->posted.known = false;
      }
    }
  }
  // Outside the lock: it takes other locks.
  for (auto& [recipe, posted] : released) release_recipe(std::move(recipe), posted);
}

void raise_error(MPI_Comm comm, int error) {
  if (error != MPI_SUCCESS && comm != nullptr) real.Comm_call_errhandler(to_real(comm), error);
}

namespace {

// While it exists, MPI returns a communicator's errors: the program learns of them later. Only while no other thread is
// inside MPI.
class ErrorsKept {
 public:
  explicit ErrorsKept(MPI_Comm comm) : comm_(comm != nullptr ? to_real(comm) : nullptr) {
    if (comm_ == nullptr) return;
    real.Comm_get_errhandler(comm_, &handler_);
    real.Comm_set_errhandler(comm_, pre.errors_return);
  }
  ~ErrorsKept() {
    if (comm_ == nullptr) return;
    real.Comm_set_errhandler(comm_, handler_);
    real.Errhandler_free(&handler_);
  }
  ErrorsKept(const ErrorsKept&) = delete;
  ErrorsKept& operator=(const ErrorsKept&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler handler_ = nullptr;
};

// At a gate: tests an active request. False if it has not completed; otherwise stores its outcome.
bool has_completed(Request& request) {
  if (withheld(request)) return false;
  int flag = 0;
  MPI_Status status{};
  const ErrorsKept guard(request.comm);
  request.error = real.Test(&request.real, &flag, &status);
  if (!flag) return false;
  count_completion(request, status, request.error);
  request.completed = true;
  request.status = status;
  request.types.reset();
  if (!request.persistent) request.real = pre.request_null;
  return true;
}

// MPI can do without it until the next epoch.
bool can_pause(const Request& request) {
  return can_repost(request) || (withheld(request) && request.recipe != nullptr);
}

// False if a pending request waits for a call of the program.
bool can_complete(const Request& request) { return request.kind != RequestKind::kGeneralised && !withheld(request); }

// MPI_Test would raise an error of a request that the program has freed; MPI drops it.
bool orphan_has_completed(Request& request) {
  if (request.completed) return true;
  int flag = 0;
  MPI_Status status{};
  if (real.Request_get_status(request.real, &flag, &status) != MPI_SUCCESS || !flag) return false;
  count_completion(request, status, MPI_SUCCESS);
  return true;
}

// Destroys those of the `count` oldest orphans that have completed.
void collect_orphans(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Request* r = nullptr;
    {
      RequestsLock guard;
      if (orphans.empty()) return;
      r = orphans.front();
      orphans.pop_front();
    }
    if (orphan_has_completed(*r)) {
      if (r->persistent || !r->completed) real.Request_free(&r->real);
      destroy(r);
    } else {
      RequestsLock guard;
      orphans.push_back(r);
    }
  }
}

}  // namespace

Pending pending_request() {
  collect_orphans(orphans.size());
  Pending first;
  for (Request* r = live_head; r != nullptr;) {
    Request* next = r->next;
    if (r->active && !r->completed && (r->orphan || !has_completed(*r))) {
      if (!can_pause(*r)) {
        if (!can_complete(*r)) return {.request = r};
        if (first.request == nullptr) first = {.request = r, .passing = true};
        if (r->makes_comm != nullptr) first.makes_comm = true;
      }
    } else if (r->persistent && r->recipe == nullptr) {
      return {.request = r};
    }
    r = next;
  }
  return first;
}

}  // namespace bsp::shim

// --- The calls --------------------------------------------------------------------------------------
using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

namespace {

// MPI_Wait or MPI_Test of a virtual request.
template <class RealCall>
int complete(MPI_Request* slot, Request* r, int* flag, MPI_Status* status, RealCall call_real) {
  ErrorsAfter errors;
  MPI_Status own = r->status;
  int rc = r->error;
  const MPI_Comm to_raise_on =
      r->completed ? r->comm.load() : nullptr;  // MPI raises the error of a request that it completes now
  if (r->completed) {
    *flag = 1;
  } else {
    own = {};
    rc = call_real(&r->real, flag, &own);
    if (!(rc == MPI_SUCCESS && *flag) && r->real != pre.request_null) return errors.raised(rc);
  }
  restore_tag(r, own);
  put(status, own);
  settle(slot, r, own, rc);
  raise_error(to_raise_on, rc);
  return errors.raised(rc);
}

// Tests two orphans for each new one, so that the completed ones don't outnumber the pending ones.
void add_orphan(Request& request) {
  {
    RequestsLock guard;
    request.orphan = true;
    orphans.push_back(&request);
  }
  collect_orphans(2);
}

// A send of more bytes, for which a gate may have to wait (undelivered.h), isn't forgotten when the program frees it.
constexpr std::uint64_t kBrief = 4096;

// MPI calls the function that frees the program's state once it has been both freed and announced, in either order.
// The program passes the shim's object to MPI_Grequest_complete, so that one lasts until then.
int free_generalised(Request& request) {
  MPI_Request handle = request.real;
  bool announced = false;
  {
    RequestsLock guard;
    request.orphan = true;
    announced = request.announced;
  }
  const int rc = real.Request_free(&handle);
  if (announced) destroy(&request);
  return rc;
}

}  // namespace

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  Call call;
  auto* r = request != nullptr ? object_of_request(*request) : nullptr;
  if (r == nullptr) return real.Wait(request, status);
  if (is_interruptible()) return poll_until([&](int* flag) { return MPI_Test(request, flag, status); });
  wait_while_withheld(*r);
  int flag = 1;
  return complete(request, r, &flag, status, [](MPI_Request* one, int*, MPI_Status* s) { return real.Wait(one, s); });
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  Call call;
  auto* r = request != nullptr ? object_of_request(*request) : nullptr;
  if (r == nullptr) return real.Test(request, flag, status);
  *flag = 0;
  return withheld(*r) ? MPI_SUCCESS : complete(request, r, flag, status, real.Test);
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  Call call;
  auto* r = object_of_request(request);
  if (r == nullptr) return real.Request_get_status(request, flag, status);
  *flag = 0;
  if (withheld(*r)) return MPI_SUCCESS;
  MPI_Status own = r->status;
  int rc = MPI_SUCCESS;
  if (r->completed)
    *flag = 1;
  else
    rc = real.Request_get_status(r->real, flag, &own);
  if (!*flag) return rc;
  restore_tag(r, own);
  put(status, own);
  return rc;
}

int MPI_Request_free(MPI_Request* request) {
  Call call;
  auto* r = request != nullptr ? object_of_request(*request) : nullptr;
  if (r == nullptr) return real.Request_free(request);
  *request = pre.request_null;
  if (r->kind == RequestKind::kGeneralised && !r->completed) return free_generalised(*r);
  if (r->active && !r->completed && (r->kind != RequestKind::kSend || r->synchronous || r->bytes > kBrief)) {
    add_orphan(*r);
    return MPI_SUCCESS;
  }
  int rc = MPI_SUCCESS;
  if (r->persistent || !r->completed) rc = real.Request_free(&r->real);
  destroy(r);
  return rc;
}

int MPI_Grequest_complete(MPI_Request request) {
  Call call;
  auto* r = object_of_request(request);
  if (r == nullptr) return real.Grequest_complete(request);
  MPI_Request handle = nullptr;
  bool freed = false;
  {  // Before MPI completes it: another thread may then wait for it, which destroys the object.
    RequestsLock guard;
    handle = r->real;
    freed = r->orphan;
    r->announced = true;
  }
  const int rc = real.Grequest_complete(handle);
  if (freed) destroy(r);
  return rc;
}

int MPI_Cancel(MPI_Request* request) {
  Call call;
  auto* r = request != nullptr ? object_of_request(*request) : nullptr;
  if (r == nullptr) return real.Cancel(request);
  return r->completed ? MPI_SUCCESS : real.Cancel(&r->real);
}

}  // extern "C"
