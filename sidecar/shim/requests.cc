#include "sidecar/shim/requests.h"

#include <mutex>
#include <new>

#include "sidecar/shim/counters.h"
#include "sidecar/shim/request_arrays.h"

namespace bsp::shim {
namespace {

std::mutex lock;  // of the lists; taken only with MPI_THREAD_MULTIPLE
Request* live_head = nullptr;
Request* free_head = nullptr;

class MaybeLock {
 public:
  MaybeLock() {
    if (state.multiple) lock.lock();
  }
  ~MaybeLock() {
    if (state.multiple) lock.unlock();
  }
  MaybeLock(const MaybeLock&) = delete;
  MaybeLock& operator=(const MaybeLock&) = delete;
};

Request* create() {
  MaybeLock guard;
  void* room = free_head;
  if (room != nullptr)
    free_head = free_head->next;
  else
    room = arena_take(sizeof(Request));
  auto* request = new (room) Request();
  request->next = live_head;
  if (live_head != nullptr) live_head->previous = request;
  live_head = request;
  return request;
}

void destroy(Request* request) {
  MaybeLock guard;
  if (request->previous != nullptr)
    request->previous->next = request->next;
  else
    live_head = request->next;
  if (request->next != nullptr) request->next->previous = request->previous;
  request->~Request();
  request->next = free_head;  // NOLINT: the slot is raw memory now, its `next` links the free ones
  free_head = request;
}

// The real request has completed with `status`: counts it, once.
void account(Request& request, const MPI_Status& status) {
  if (request.kind == RequestKind::kReceive || request.kind == RequestKind::kSendReceive)
    received(request.peers, status);
  if (request.makes_comm != nullptr) {
    describe(*request.makes_comm);
    request.makes_comm = nullptr;
  }
}

void start(Request& request) {
  request.active = true;
  if (request.send_to >= 0) count_sent(request.send_to);
}

}  // namespace

Request* make_request(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm) {
  if (*request == pre.request_null) return nullptr;
  Request* r = create();
  r->real = *request;
  r->kind = kind;
  r->what = what;
  if (Comm* c = comm_of(comm)) r->peers = c->peers;
  *request = reinterpret_cast<MPI_Request>(r);
  return r;
}

Request* make_persistent(MPI_Request* request, RequestKind kind, const char* what, MPI_Comm comm,
                         int dest) {
  Request* r = make_request(request, kind, what, comm);
  if (r == nullptr) return nullptr;
  r->persistent = true;
  r->active = false;
  if (kind == RequestKind::kSend) r->send_to = world_rank(r->peers, dest);
  return r;
}

void settle(MPI_Request* slot, Request* request, const MPI_Status& status) {
  if (request->persistent) {
    if (request->active) {
      request->active = false;
      account(*request, status);
    }
    return;
  }
  if (!request->completed) account(*request, status);
  destroy(request);
  *slot = pre.request_null;
}

bool collective_pending() {
  MaybeLock guard;
  for (const Request* r = live_head; r != nullptr; r = r->next)
    if (r->kind == RequestKind::kCollective && !r->completed) return true;
  return false;
}

const Request* pending_request() {
  for (Request* r = live_head; r != nullptr;) {
    Request* next = r->next;
    if (r->persistent) return r;
    if (!r->completed) {
      int flag = 0;
      MPI_Status status{};
      r->error = real.Test(&r->real, &flag, &status);
      if (!flag) return r;
      account(*r, status);
      r->completed = true;
      r->status = status;
      r->real = pre.request_null;
      r->types.reset();
      if (r->orphan) destroy(r);
    }
    r = next;
  }
  return nullptr;
}

}  // namespace bsp::shim

// --- The calls --------------------------------------------------------------------------------------
using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

namespace {

void put(MPI_Status* to, const MPI_Status& from) {
  if (to == MPI_STATUS_IGNORE) return;
  const int error = to->MPI_ERROR;  // single-completion calls leave MPI_ERROR alone
  *to = from;
  to->MPI_ERROR = error;
}

}  // namespace

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  Call call;
  auto* r = request != nullptr ? object_of_request(*request) : nullptr;
  if (r == nullptr) return real.Wait(request, status);
  if (r->completed) {
    const int rc = r->error;
    put(status, r->status);
    settle(request, r, r->status);
    return rc;
  }
  MPI_Status own{};
  const int rc = real.Wait(&r->real, &own);
  if (rc == MPI_SUCCESS || r->real == pre.request_null) {
    put(status, own);
    settle(request, r, own);
  }
  return rc;
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  Call call;
  auto* r = request != nullptr ? object_of_request(*request) : nullptr;
  if (r == nullptr) return real.Test(request, flag, status);
  if (r->completed) {
    const int rc = r->error;
    *flag = 1;
    put(status, r->status);
    settle(request, r, r->status);
    return rc;
  }
  MPI_Status own{};
  const int rc = real.Test(&r->real, flag, &own);
  if ((rc == MPI_SUCCESS && *flag) || r->real == pre.request_null) {
    put(status, own);
    settle(request, r, own);
  }
  return rc;
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  Call call;
  auto* r = object_of_request(request);
  if (r == nullptr) return real.Request_get_status(request, flag, status);
  if (!r->completed) return real.Request_get_status(r->real, flag, status);
  *flag = 1;
  put(status, r->status);
  return MPI_SUCCESS;
}

int MPI_Request_free(MPI_Request* request) {
  Call call;
  auto* r = request != nullptr ? object_of_request(*request) : nullptr;
  if (r == nullptr) return real.Request_free(request);
  *request = pre.request_null;
  if (!r->persistent && !r->completed && r->kind != RequestKind::kSend) {
    r->orphan = true;  // what it receives is counted when it completes: see pending_request()
    return MPI_SUCCESS;
  }
  int rc = MPI_SUCCESS;
  if (!r->completed) rc = real.Request_free(&r->real);
  destroy(r);
  return rc;
}

int MPI_Cancel(MPI_Request* request) {
  Call call;
  auto* r = request != nullptr ? object_of_request(*request) : nullptr;
  if (r == nullptr) return real.Cancel(request);
  return r->completed ? MPI_SUCCESS : real.Cancel(&r->real);
}

int MPI_Start(MPI_Request* request) {
  Call call;
  auto* r = request != nullptr ? object_of_request(*request) : nullptr;
  if (r == nullptr) return real.Start(request);
  const int rc = real.Start(&r->real);
  if (rc == MPI_SUCCESS) start(*r);
  return rc;
}

int MPI_Startall(int count, MPI_Request array_of_requests[]) {
  Call call;
  RequestArray array(count, array_of_requests);
  const int rc = real.Startall(count, array.real());
  for (int i = 0; i < count; ++i) {
    Request* r = array.object(i);
    if (r == nullptr) continue;
    r->real = array.real()[i];
    if (rc == MPI_SUCCESS) start(*r);
  }
  return rc;
}

}  // extern "C"
