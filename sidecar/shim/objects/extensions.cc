// Open MPI's fault tolerance (mpi-ext.h): the calls that take or return handles. Without a failed rank they work as usual; with one,
// the operator restarts the job.
#include "sidecar/shim/objects/extensions.h"

#include <algorithm>

#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/requests.h"
#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/message.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

// An Open MPI built without fault tolerance doesn't have them.
template <class... Arguments>
int call_real(const char* name, Arguments... arguments) {
  auto* function = reinterpret_cast<int (*)(Arguments...)>(find_real(name));
  if (function == nullptr) die("the program calls %s, which its MPI library does not provide", name);
  return function(arguments...);
}

int make_group(const char* name, MPI_Comm comm, MPI_Group* made) {
  const int rc = call_real(name, to_real(comm), made);
  if (rc == MPI_SUCCESS) wrap(made);
  return rc;
}

}  // namespace

namespace bsp::shim {

std::string revoked_blocker() {
  using IsRevoked = int(MPI_Comm, int*);
  static auto* const is_revoked = reinterpret_cast<IsRevoked*>(find_real("PMPIX_Comm_is_revoked"));
  if (is_revoked == nullptr) return "";
  const auto revoked = [](const Comm* comm) {
    int flag = 0;
    return comm->real != nullptr && is_revoked(comm->real, &flag) == MPI_SUCCESS && flag != 0;
  };
  const auto all = comms.live();
  return revoked(&world) || revoked(&self) || std::ranges::any_of(all, revoked) ? "a revoked communicator" : "";
}

}  // namespace bsp::shim

extern "C" {

BSP_EXPORT int MPIX_Comm_revoke(MPI_Comm comm) {
  Call call;
  return call_real("PMPIX_Comm_revoke", to_real(comm));
}
BSP_EXPORT int MPIX_Comm_is_revoked(MPI_Comm comm, int* flag) {
  Call call;
  return call_real("PMPIX_Comm_is_revoked", to_real(comm), flag);
}
BSP_EXPORT int MPIX_Comm_failure_ack(MPI_Comm comm) {
  Call call;
  return call_real("PMPIX_Comm_failure_ack", to_real(comm));
}
BSP_EXPORT int MPIX_Comm_ack_failed(MPI_Comm comm, int most, int* acknowledged) {
  Call call;
  return call_real("PMPIX_Comm_ack_failed", to_real(comm), most, acknowledged);
}
BSP_EXPORT int MPIX_Comm_failure_get_acked(MPI_Comm comm, MPI_Group* failed) {
  Call call;
  return make_group("PMPIX_Comm_failure_get_acked", comm, failed);
}
BSP_EXPORT int MPIX_Comm_get_failed(MPI_Comm comm, MPI_Group* failed) {
  Call call;
  return make_group("PMPIX_Comm_get_failed", comm, failed);
}
BSP_EXPORT int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm* remaining) {
  Call call;
  begin_collective(comm);
  const int rc = call_real("PMPIX_Comm_shrink", to_real(comm), remaining);
  if (rc == MPI_SUCCESS) wrap(remaining, comm);
  return rc;
}
BSP_EXPORT int MPIX_Comm_agree(MPI_Comm comm, int* flag) {
  Call call;
  return call_real("PMPIX_Comm_agree", to_real(comm), flag);
}
BSP_EXPORT int MPIX_Comm_iagree(MPI_Comm comm, int* flag, MPI_Request* request) {
  Call call;
  const int rc = call_real("PMPIX_Comm_iagree", to_real(comm), flag, request);
  if (rc == MPI_SUCCESS) make_request(request, RequestKind::kCollective, "MPIX_Comm_iagree", comm);
  return rc;
}

}  // extern "C"
