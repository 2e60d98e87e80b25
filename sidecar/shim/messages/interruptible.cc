#include "sidecar/shim/messages/interruptible.h"

#include <time.h>

#include <atomic>

#include "sidecar/shim/measure/measure.h"

namespace bsp::shim {
namespace {

std::atomic<bool> has_eager_one{false};

}  // namespace

Polling::~Polling() {
  if (is_eager_) has_eager_one = false;
}

void Polling::pause() {
  constexpr timespec kPause{0, 50000};
  if (!is_eager_) is_eager_ = !has_eager_one.exchange(true);
  if (!is_eager_) nanosleep(&kPause, nullptr);
  step_aside();
}

namespace interruptible {
namespace {

int complete(MPI_Request& request, MPI_Status* status) {
  return poll_until([&](int* flag) { return MPI_Test(&request, flag, status); });
}

}  // namespace

int Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  Call call;
  MPI_Request request = pre.request_null;
  const int rc = MPI_Irecv(buffer, count, type, source, tag, comm, &request);
  return rc == MPI_SUCCESS ? complete(request, status) : rc;
}

int Send(const void* buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  Call call;
  MPI_Request request = pre.request_null;
  const int rc = MPI_Isend(buffer, count, type, dest, tag, comm, &request);
  return rc == MPI_SUCCESS ? complete(request, MPI_STATUS_IGNORE) : rc;
}

int Ssend(const void* buffer, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  Call call;
  MPI_Request request = pre.request_null;
  const int rc = MPI_Issend(buffer, count, type, dest, tag, comm, &request);
  return rc == MPI_SUCCESS ? complete(request, MPI_STATUS_IGNORE) : rc;
}

int Sendrecv(const void* out, int out_count, MPI_Datatype out_type, int dest, int out_tag, void* in, int in_count,
             MPI_Datatype in_type, int source, int in_tag, MPI_Comm comm, MPI_Status* status) {
  Call call;
  MPI_Request receive = pre.request_null, send = pre.request_null;
  if (const int rc = MPI_Irecv(in, in_count, in_type, source, in_tag, comm, &receive); rc != MPI_SUCCESS) return rc;
  if (const int rc = MPI_Isend(out, out_count, out_type, dest, out_tag, comm, &send); rc != MPI_SUCCESS) {
    MPI_Cancel(&receive);
    complete(receive, MPI_STATUS_IGNORE);
    return rc;
  }
  const int received = complete(receive, status);
  const int sent = complete(send, MPI_STATUS_IGNORE);
  return received != MPI_SUCCESS ? received : sent;
}

int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  Call call;
  return poll_until([&](int* flag) { return MPI_Iprobe(source, tag, comm, flag, status); });
}

}  // namespace interruptible
}  // namespace bsp::shim
