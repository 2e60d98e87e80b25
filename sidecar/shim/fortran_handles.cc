// MPI_Comm_c2f and its family: Fortran numbers of handles, also for C programs that keep handles as integers.
#include "sidecar/shim/measure.h"
#include "sidecar/shim/recipes.h"
#include "sidecar/shim/requests.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

template <class Handle>
MPI_Fint number(Handle handle, MPI_Fint (*of_mpi)(Handle)) {
  return is_ours(handle) ? fortran_number(handle) : of_mpi(handle);
}

template <class Handle>
Handle handle_of(MPI_Fint n, Handle (*of_mpi)(MPI_Fint)) {
  if (n < kFirstNumber) return of_mpi(n);
  return reinterpret_cast<Handle>(arena + static_cast<std::ptrdiff_t>(n - kFirstNumber) * kAlignment);
}

}  // namespace

extern "C" {

#define BSP_BOTH_WAYS(kind, handle)                                                  \
  MPI_Fint MPI_##kind##_c2f(handle h) { return number<handle>(h, real.kind##_c2f); } \
  handle MPI_##kind##_f2c(MPI_Fint n) { return handle_of<handle>(n, real.kind##_f2c); }
BSP_BOTH_WAYS(Group, MPI_Group)
BSP_BOTH_WAYS(Info, MPI_Info)
BSP_BOTH_WAYS(Errhandler, MPI_Errhandler)
BSP_BOTH_WAYS(Request, MPI_Request)
#undef BSP_BOTH_WAYS

MPI_Fint MPI_Op_c2f(MPI_Op op) {
  if (Op* object = object_of<Op>(op)) note_language(*object);
  return number<MPI_Op>(op, real.Op_c2f);
}
MPI_Op MPI_Op_f2c(MPI_Fint n) { return handle_of<MPI_Op>(n, real.Op_f2c); }

MPI_Fint MPI_Type_c2f(MPI_Datatype type) { return number<MPI_Datatype>(type, real.Type_c2f); }
MPI_Datatype MPI_Type_f2c(MPI_Fint n) { return from_fortran.type = handle_of<MPI_Datatype>(n, real.Type_f2c); }

MPI_Fint MPI_Comm_c2f(MPI_Comm comm) {  // 0 and 1 in mpif.h, also before MPI is open
  if (comm == pre.comm_world) return 0;
  if (comm == pre.comm_self) return 1;
  return number<MPI_Comm>(comm, real.Comm_c2f);
}

MPI_Fint MPI_Win_c2f(MPI_Win window) { return number<MPI_Win>(window, real.Win_c2f); }
MPI_Win MPI_Win_f2c(MPI_Fint n) { return from_fortran.window = handle_of<MPI_Win>(n, real.Win_f2c); }

MPI_Fint MPI_File_c2f(MPI_File file) { return number<MPI_File>(file, real.File_c2f); }
MPI_File MPI_File_f2c(MPI_Fint n) { return handle_of<MPI_File>(n, real.File_f2c); }

MPI_Comm MPI_Comm_f2c(MPI_Fint n) {
  return from_fortran.comm = n == 0 ? pre.comm_world : n == 1 ? pre.comm_self : handle_of<MPI_Comm>(n, real.Comm_f2c);
}

}  // extern "C"
