// MPI_Comm_c2f and its family, for C programs that keep handles as integers.
//
// An object of ours is numbered by its place in the arena, so the number stays right over every epoch and
// needs no table. Predefined objects keep MPI's numbers, which the Fortran headers fix.
#include "sidecar/shim/measure.h"
#include "sidecar/shim/requests.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

constexpr MPI_Fint kFirst = 1 << 24;  // above MPI's own
constexpr int kAlignment = 16;
static_assert(kArenaBytes / kAlignment < (std::size_t{1} << 30));

template <class Handle>
MPI_Fint number(Handle handle, MPI_Fint (*of_mpi)(Handle)) {
  if (!is_ours(handle)) return of_mpi(handle);
  return kFirst + static_cast<MPI_Fint>((reinterpret_cast<char*>(handle) - arena) / kAlignment);
}

template <class Handle>
Handle handle_of(MPI_Fint n, Handle (*of_mpi)(MPI_Fint)) {
  if (n < kFirst) return of_mpi(n);
  return reinterpret_cast<Handle>(arena + static_cast<std::ptrdiff_t>(n - kFirst) * kAlignment);
}

}  // namespace

extern "C" {

#define BSP_BOTH_WAYS(kind, handle)                                                  \
  MPI_Fint MPI_##kind##_c2f(handle h) { return number<handle>(h, real.kind##_c2f); } \
  handle MPI_##kind##_f2c(MPI_Fint n) { return handle_of<handle>(n, real.kind##_f2c); }
BSP_BOTH_WAYS(Group, MPI_Group)
BSP_BOTH_WAYS(Type, MPI_Datatype)
BSP_BOTH_WAYS(Op, MPI_Op)
BSP_BOTH_WAYS(Info, MPI_Info)
BSP_BOTH_WAYS(Errhandler, MPI_Errhandler)
BSP_BOTH_WAYS(Request, MPI_Request)
#undef BSP_BOTH_WAYS

MPI_Fint MPI_Comm_c2f(MPI_Comm comm) {  // 0 and 1 in mpif.h, whether or not MPI has opened them
  if (comm == pre.comm_world) return 0;
  if (comm == pre.comm_self) return 1;
  return number<MPI_Comm>(comm, real.Comm_c2f);
}

MPI_Comm MPI_Comm_f2c(MPI_Fint n) {
  if (n == 0) return pre.comm_world;
  if (n == 1) return pre.comm_self;
  return handle_of<MPI_Comm>(n, real.Comm_f2c);
}

}  // extern "C"
