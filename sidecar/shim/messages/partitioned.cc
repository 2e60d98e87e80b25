// Partitioned communication (MPI 4.1, chapter 4), implemented as one persistent message that is sent when the last
// partition is ready.
//
// Open MPI 5's implementation needs MPI_Init's world, which an MPI session doesn't have. The standard allows all
// partitions to arrive at once. The two sides may divide the same message differently, which a single message
// supports by itself. Its tag is hidden (hidden_tags.h), and below those of MPI's own messages (coll_tags.h). With another
// pml than ob1 it lies above the program's tags (kLargestTag), where MPI_ANY_TAG matches it.
//
// Requests of one communicator, peer and tag match in the order in which each side made them, not in which they start.
// So the tag includes how many the rank has made before; both sides count the same. Tags above 16 bits leave no space
// for that number: such requests match in the order of their starts.
#include <sched.h>

#include <mutex>

#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/hidden_tags.h"
#include "sidecar/shim/messages/request_arrays.h"

namespace bsp::shim {
namespace {

constexpr int kNumberedBit = kLargestTag + 1;
constexpr int kTagBit = kNumberedBit << 1;
constexpr int kNumberedTagBits = 16;
constexpr std::uint32_t kNumbers = kNumberedBit >> kNumberedTagBits;

std::mutex numbering;  // with MPI_THREAD_MULTIPLE

// The tag of the message of a new request to (`sending`) or from `peer`.
int message_tag(MPI_Comm comm, bool sending, int peer, int tag) {
  if (tag < 0) return tag;  // an error
  if (tag >> kNumberedTagBits != 0) return tag | kTagBit;
  Comm* const on = comm_of(comm);
  if (on == nullptr) return tag;  // an error
  const std::scoped_lock lock(numbering);
  const std::uint32_t number = on->partitioned[{sending ? 1 : 0, peer, tag}]++ % kNumbers;
  return kTagBit | kNumberedBit | static_cast<int>(number << kNumberedTagBits) | tag;
}

int raised_on(MPI_Comm real_comm, int code) {
  real.Comm_call_errhandler(real_comm, code);
  return code;
}

// `made` is MPI's request, which has checked all arguments: makes it anew with the negative tag.
template <class Make>
int hide(int rc, int peer, MPI_Comm comm, MPI_Request* made, Make make) {
  if (rc != MPI_SUCCESS || peer < 0 || !ob1::is_used()) return rc;
  real.Request_free(made);
  return make() == MPI_SUCCESS ? MPI_SUCCESS : raised_on(comm, MPI_ERR_NO_MEM);
}

int send_init(void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* made) {
  return hide(real.Send_init(b, n, t, to, tag, c, made), to, c, made,
              [&] { return ob1::send_init(b, n, t, to, -tag, c, made); });
}

int receive_init(void* b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* made) {
  return hide(real.Recv_init(b, n, t, from, tag, c, made), from, c, made,
              [&] { return ob1::recv_init(b, n, t, from, -tag, c, made); });
}

// Makes `*request` a persistent message of `partitions` times `count` elements; `tag` is message_tag's.
template <class Make>
int make_message(void* buffer, int partitions, MPI_Count count, MPI_Datatype type, int tag, MPI_Comm comm,
                 MPI_Request* request, Make make) {
  if (count < 0 || count > INT32_MAX) return raised_on(to_real(comm), MPI_ERR_COUNT);
  MPI_Datatype partition = nullptr;
  if (const int rc = real.Type_contiguous(static_cast<int>(count), to_real(type), &partition); rc != MPI_SUCCESS)
    return rc;
  real.Type_commit(&partition);
  const int rc = make(buffer, partitions, partition, tag, to_real(comm), request);
  real.Type_free(&partition);  // the request keeps it
  return rc;
}

void make_partitioned(Request* request, int partitions, bool sending, int tag) {
  if (request == nullptr) return;
  request->partitions = std::make_unique<Partitions>();
  request->partitions->count = partitions;
  request->partitions->sending = sending;
  request->shown_tag = tag;
}

// Marks `count` more partitions of an active send as ready.
int ready(Request& request, int partitions) {
  Partitions& part = *request.partitions;
  if (part.missing.fetch_sub(partitions) != partitions) return MPI_SUCCESS;
  const int rc = real.Start(&request.real);
  if (rc == MPI_SUCCESS && request.send_to >= 0) count_sent(request.send_to);
  part.started.store(true, std::memory_order_release);
  return rc;
}

int not_partitioned() { return raised_on(self.real, MPI_ERR_REQUEST); }

}  // namespace

void wait_while_withheld(const Request& request) {
  while (withheld(request)) sched_yield();
}

void start_partitions(Request& request) {
  request.partitions->missing.store(request.partitions->count);
  request.partitions->started.store(false);
  request.active = true;
  if (request.partitions->count == 0) ready(request, 0);
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

extern "C" {

int MPI_Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                   MPI_Comm comm, MPI_Info, MPI_Request* request) {
  Call call;
  auto make = [=, numbered = message_tag(comm, true, dest, tag)](MPI_Request* made) {
    return make_message(const_cast<void*>(buf), partitions, count, datatype, numbered, comm, made,
                        [dest](void* b, int n, MPI_Datatype t, int real_tag, MPI_Comm c, MPI_Request* out) {
                          return send_init(b, n, t, dest, real_tag, c, out);
                        });
  };
  if (const int rc = make(request); rc != MPI_SUCCESS) return rc;
  Request* r = make_persistent(request, RequestKind::kSend, "MPI_Psend_init", comm, dest, tag);
  make_partitioned(r, partitions, true, tag);
  if (r == nullptr) return MPI_SUCCESS;
  r->bytes = bytes_of(partitions * count, to_real(datatype));
  set_recipe(*r, comm, make, {datatype});
  return MPI_SUCCESS;
}

int MPI_Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                   MPI_Comm comm, MPI_Info, MPI_Request* request) {
  Call call;
  const int numbered = message_tag(comm, false, source, tag);
  auto make = [=](MPI_Request* made) {
    return make_message(buf, partitions, count, datatype, numbered, comm, made,
                        [source](void* b, int n, MPI_Datatype t, int real_tag, MPI_Comm c, MPI_Request* out) {
                          return receive_init(b, n, t, source, real_tag, c, out);
                        });
  };
  if (const int rc = make(request); rc != MPI_SUCCESS) return rc;
  Request* r = make_persistent(request, RequestKind::kReceive, "MPI_Precv_init", comm, -1, 0);
  make_partitioned(r, partitions, false, tag);
  if (r == nullptr) return MPI_SUCCESS;
  r->key = {comm_of(comm), source, ob1::is_used() ? -numbered : numbered};
  set_recipe(*r, comm, make, {datatype});
  return MPI_SUCCESS;
}

int MPI_Pready_range(int first, int last, MPI_Request request) {
  Call call;
  Request* r = object_of_request(request);
  if (r == nullptr || r->partitions == nullptr || !r->partitions->sending || last < first) return not_partitioned();
  return ready(*r, last - first + 1);
}

int MPI_Pready(int partition, MPI_Request request) { return MPI_Pready_range(partition, partition, request); }

int MPI_Pready_list(int length, int[], MPI_Request request) {
  Call call;
  Request* r = object_of_request(request);
  if (r == nullptr || r->partitions == nullptr || !r->partitions->sending) return not_partitioned();
  return length > 0 ? ready(*r, length) : MPI_SUCCESS;
}

int MPI_Parrived(MPI_Request request, int, int* flag) {
  Call call;
  Request* r = object_of_request(request);
  if (r == nullptr || r->partitions == nullptr || r->partitions->sending) return not_partitioned();
  *flag = 1;
  if (!r->active || r->completed) return MPI_SUCCESS;
  MPI_Status ignored;
  return real.Request_get_status(r->real, flag, &ignored);
}

}  // extern "C"
