// Requests that survive a gate: persistent ones, and receives whose message hasn't been sent yet.
//
// A close frees the real request. The next epoch recreates it from the arguments of the original call, after the
// communicators and in the order in which the program created its requests. All ranks of a persistent collective create
// it in the same order, and the gate closes only if they have freed the same ones, because Open MPI matches those of a
// communicator by their order. Objects that the program may free meanwhile are kept. Receives are posted in their old
// order, because the order decides which receive gets which message.
#include <algorithm>
#include <atomic>
#include <vector>

#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/request_arrays.h"
#include "sidecar/shim/messages/synchronous_sends.h"

namespace bsp::shim {
namespace {

std::atomic<std::uint64_t> posted_so_far{0};

bool is_waiting(const Request& r) { return r.active && !r.completed && can_repost(r); }

// Cancels a pending receive. At a gate no message is in flight to it; in MPI_Finalize there may be one.
void cancel_receive(Request& request) {
  MPI_Status status{};
  int done = 0;
  real.Cancel(&request.real);
  request.error = real.Test(&request.real, &done, &status);
  if (!done && !request.persistent) real.Request_free(&request.real);
  if (!done || status._cancelled) return;
  received(request.peers, status);
  request.status = status;
  request.completed = true;
}

int post(Request& r) {
  if (r.persistent) return real.Start(&r.real);
  const Posted& p = r.posted;
  return real.Irecv(p.buffer, p.count, to_real(p.type), p.source, p.tag, to_real(p.comm), &r.real);
}

}  // namespace

void note_receive(Request& request, void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm) {
  if (Datatype* object = object_of<Datatype>(type)) ++object->references;
  RequestsLock guard;
  request.posted = {.known = true,
                    .order = posted_so_far.fetch_add(1, std::memory_order_relaxed),
                    .buffer = buffer,
                    .count = count,
                    .source = source,
                    .tag = tag,
                    .type = type,
                    .comm = comm};
}

bool can_repost(const Request& r) {
  return r.kind == RequestKind::kReceive && (r.posted.known || (r.persistent && r.recipe != nullptr));
}

namespace {

template <class T>
void hold(typename T::Handle handle, std::vector<T*>& held) {
  T* object = object_of<T>(handle);
  if (object == nullptr) return;
  ++object->references;
  held.push_back(object);
}

}  // namespace

void set_recipe(Request& request, MPI_Comm comm, std::function<int(MPI_Request*)> make,
                std::initializer_list<MPI_Datatype> types, MPI_Op op) {
  auto recipe = std::make_unique<RequestRecipe>(RequestRecipe{.make = std::move(make), .comm = comm_of(comm)});
  for (MPI_Datatype type : types) hold(type, recipe->types);
  hold(op, recipe->ops);
  RequestsLock guard;
  request.recipe = std::move(recipe);
}

void release_recipe(std::unique_ptr<RequestRecipe> recipe, const Posted& posted) {
  if (posted.known)
    if (Datatype* type = object_of<Datatype>(posted.type)) release(type);
  if (recipe == nullptr) return;
  for (Datatype* type : recipe->types) release(type);
  for (Op* op : recipe->ops) release(op);
}

void save_requests() {
  for (Request* r = youngest_request(); r != nullptr; r = r->next) {
    if (is_waiting(*r)) cancel_receive(*r);
    if (r->persistent) real.Request_free(&r->real);
  }
}

void restore_requests() {
  Request* r = youngest_request();
  while (r != nullptr && r->next != nullptr) r = r->next;
  std::vector<Request*> waiting;
  for (; r != nullptr; r = r->previous) {
    if (r->persistent) must(r->recipe->make(&r->real), r->what);
    if (is_waiting(*r)) waiting.push_back(r);
  }
  std::ranges::sort(waiting, {}, [](const Request* one) { return one->posted.order; });
  for (Request* one : waiting) must(post(*one), one->what);
}

namespace {

// MPI has started it.
void started(Request& request) {
  request.active = true;
  ++request.starts;
  request.posted.order = posted_so_far.fetch_add(1, std::memory_order_relaxed);
  if (request.send_to < 0) return;
  count_sent(request.send_to);
  note_message(request.key);
  if (request.synchronous) begin_synchronous(request);
}

}  // namespace
}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

extern "C" {

int MPI_Start(MPI_Request* request) {
  Call call;
  auto* r = request != nullptr ? object_of_request(*request) : nullptr;
  if (r == nullptr) return real.Start(request);
  if (r->partitions != nullptr && r->partitions->sending) {
    start_partitions(*r);
    return MPI_SUCCESS;
  }
  const int rc = real.Start(&r->real);
  if (rc == MPI_SUCCESS) started(*r);
  return rc;
}

int MPI_Startall(int count, MPI_Request array_of_requests[]) {
  Call call;
  // Even of no request MPI expects an array.
  if (count <= 0 || array_of_requests == nullptr) return real.Startall(count, array_of_requests);
  std::vector<MPI_Request> known;  // known to MPI
  std::vector<Request*> objects;
  for (int i = 0; i < count; ++i) {
    Request* r = object_of_request(array_of_requests[i]);
    if (r != nullptr && r->partitions != nullptr && r->partitions->sending) {
      start_partitions(*r);
      continue;
    }
    known.push_back(r != nullptr ? r->real : array_of_requests[i]);
    objects.push_back(r);
  }
  if (known.empty()) return MPI_SUCCESS;
  const int rc = real.Startall(static_cast<int>(known.size()), known.data());
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects[i] == nullptr) continue;
    objects[i]->real = known[i];
    if (rc == MPI_SUCCESS) started(*objects[i]);
  }
  return rc;
}

}  // extern "C"
