// Processes that join a running job, by MPI_Comm_spawn or through ports. A job has a fixed number of ranks, and the
// sidecars know no others: in an epoch these calls fail through their communicator's error handler. Without epochs
// they pass through to MPI.
#include <atomic>

#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/process/message.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

int refused(const char* call, MPI_Comm comm, int error) {
  static std::atomic<bool> printed{false};
  if (!printed.exchange(true))
    say("%s: a job under bsp-operator has a fixed number of ranks, so no process can be spawned or connected: "
        "start the "
        "job with all the ranks it needs (spec.ranks)",
        call);
  const int rc = real.Comm_call_errhandler(comm == pre.comm_self ? self.real : to_real(comm), error);
  return rc == MPI_SUCCESS ? error : rc;
}

// For the calls without a communicator (MPI 4.1, 9.3.1).
int refused(const char* call, int error) { return refused(call, pre.comm_self, error); }

int wrapped(int rc, MPI_Comm* made) {
  if (rc == MPI_SUCCESS) wrap(made);
  return rc;
}

}  // namespace

extern "C" {

int MPI_Comm_spawn(const char* command, char* argv[], int maxprocs, MPI_Info info, int root, MPI_Comm comm,
                   MPI_Comm* intercomm, int errcodes[]) {
  Call call;
  if (!state.epochs)
    return wrapped(real.Comm_spawn(command, argv, maxprocs, to_real(info), root, to_real(comm), intercomm, errcodes),
                   intercomm);
  *intercomm = pre.comm_null;
  return refused("MPI_Comm_spawn", comm, MPI_ERR_SPAWN);
}

int MPI_Comm_spawn_multiple(int count, char* commands[], char** argvs[], const int maxprocs[], const MPI_Info given[],
                            int root, MPI_Comm comm, MPI_Comm* intercomm, int errcodes[]) {
  Call call;
  if (!state.epochs) {
    RealArray<MPI_Info> infos_of_each(given, count);
    return wrapped(real.Comm_spawn_multiple(count, commands, argvs, maxprocs, infos_of_each.data(), root, to_real(comm),
                                            intercomm, errcodes),
                   intercomm);
  }
  *intercomm = pre.comm_null;
  return refused("MPI_Comm_spawn_multiple", comm, MPI_ERR_SPAWN);
}

int MPI_Comm_accept(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm) {
  Call call;
  if (!state.epochs) return wrapped(real.Comm_accept(port, to_real(info), root, to_real(comm), newcomm), newcomm);
  *newcomm = pre.comm_null;
  return refused("MPI_Comm_accept", comm, MPI_ERR_PORT);
}

int MPI_Comm_connect(const char* port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm* newcomm) {
  Call call;
  if (!state.epochs) return wrapped(real.Comm_connect(port, to_real(info), root, to_real(comm), newcomm), newcomm);
  *newcomm = pre.comm_null;
  return refused("MPI_Comm_connect", comm, MPI_ERR_PORT);
}

int MPI_Comm_join(int fd, MPI_Comm* intercomm) {
  Call call;
  if (!state.epochs) return wrapped(real.Comm_join(fd, intercomm), intercomm);
  *intercomm = pre.comm_null;
  return refused("MPI_Comm_join", MPI_ERR_PORT);
}

int MPI_Open_port(MPI_Info info, char* port) {
  Call call;
  return state.epochs ? refused("MPI_Open_port", MPI_ERR_PORT) : real.Open_port(to_real(info), port);
}

int MPI_Close_port(const char* port) {
  Call call;
  return state.epochs ? refused("MPI_Close_port", MPI_ERR_PORT) : real.Close_port(port);
}

int MPI_Publish_name(const char* service, MPI_Info info, const char* port) {
  Call call;
  return state.epochs ? refused("MPI_Publish_name", MPI_ERR_SERVICE) : real.Publish_name(service, to_real(info), port);
}

int MPI_Unpublish_name(const char* service, MPI_Info info, const char* port) {
  Call call;
  return state.epochs ? refused("MPI_Unpublish_name", MPI_ERR_SERVICE)
                      : real.Unpublish_name(service, to_real(info), port);
}

int MPI_Lookup_name(const char* service, MPI_Info info, char* port) {
  Call call;
  return state.epochs ? refused("MPI_Lookup_name", MPI_ERR_NAME) : real.Lookup_name(service, to_real(info), port);
}

}  // extern "C"
