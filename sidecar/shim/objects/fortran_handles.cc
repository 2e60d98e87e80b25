// MPI_Comm_c2f and its family: Fortran numbers of handles, also for C programs that keep handles as integers.
#include "sidecar/shim/objects/fortran_handles.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/objects/recipes.h"

using namespace bsp::shim;  // NOLINT: this file speaks MPI

namespace {

// The predefined objects of one kind, by number. They stay where they are, so MPI is asked for them only once, and what a
// Fortran program converts in each call needn't wait while another thread closes the epoch.
template <class Handle>
struct PredefinedNumbers {
  std::array<Handle, 256> handles{};
  std::atomic<std::size_t> count{0};  // 0 before MPI is open
};
template <class Handle>
PredefinedNumbers<Handle> predefined;

template <class Handle>
MPI_Fint number(Handle handle, MPI_Fint (*of_mpi)(Handle)) {
  if (is_ours(handle)) return fortran_number(handle);
  const BriefCall call;
  return of_mpi(handle);
}

template <class Handle>
Handle handle_of(MPI_Fint n, Handle (*of_mpi)(MPI_Fint)) {
  if (n >= kFirstNumber)
    return reinterpret_cast<Handle>(arena + static_cast<std::ptrdiff_t>(n - kFirstNumber) * kAlignment);
  const auto& known = predefined<Handle>;
  const auto index = static_cast<std::size_t>(n);  // beyond every count if it is negative
  if (index < known.count.load(std::memory_order_acquire)) return known.handles[index];
  const BriefCall call;
  return of_mpi(n);
}

// MPI numbers its predefined objects first; `most` limits them where it has made others by now.
template <class Handle>
void note_predefined(Handle (*of_mpi)(MPI_Fint), std::size_t most = 256) {
  auto& known = predefined<Handle>;
  std::size_t n = 0;
  for (; n < std::min(most, known.handles.size()); ++n)
    if ((known.handles[n] = of_mpi(static_cast<MPI_Fint>(n))) == nullptr) break;
  known.count.store(n, std::memory_order_release);
}

}  // namespace

namespace bsp::shim {

void note_predefined_numbers() {
  note_predefined(real.Type_f2c);
  note_predefined(real.Op_f2c);
  note_predefined(real.Group_f2c, 2);       // MPI_GROUP_NULL, MPI_GROUP_EMPTY
  note_predefined(real.Info_f2c, 2);        // MPI_INFO_NULL, MPI_INFO_ENV
  note_predefined(real.Errhandler_f2c, 4);  // MPI_ERRHANDLER_NULL, MPI_ERRORS_ARE_FATAL, _RETURN, _ABORT
  note_predefined(real.Request_f2c, 1);
  note_predefined(real.Message_f2c, 2);  // MPI_MESSAGE_NULL, MPI_MESSAGE_NO_PROC
  note_predefined(real.Win_f2c, 1);
  note_predefined(real.File_f2c, 1);
}

}  // namespace bsp::shim

extern "C" {

#define BSP_BOTH_WAYS(kind, handle)                                                  \
  MPI_Fint MPI_##kind##_c2f(handle h) { return number<handle>(h, real.kind##_c2f); } \
  handle MPI_##kind##_f2c(MPI_Fint n) { return handle_of<handle>(n, real.kind##_f2c); }
BSP_BOTH_WAYS(Group, MPI_Group)
BSP_BOTH_WAYS(Info, MPI_Info)
BSP_BOTH_WAYS(Errhandler, MPI_Errhandler)
BSP_BOTH_WAYS(Request, MPI_Request)
BSP_BOTH_WAYS(Message, MPI_Message)
#undef BSP_BOTH_WAYS

MPI_Fint MPI_Op_c2f(MPI_Op op) {
  if (Op* object = object_of<Op>(op)) note_language(*object);
  return number<MPI_Op>(op, real.Op_c2f);
}
MPI_Op MPI_Op_f2c(MPI_Fint n) { return handle_of<MPI_Op>(n, real.Op_f2c); }

MPI_Fint MPI_Type_c2f(MPI_Datatype type) { return number<MPI_Datatype>(type, real.Type_c2f); }
MPI_Datatype MPI_Type_f2c(MPI_Fint n) {
  const auto type = handle_of<MPI_Datatype>(n, real.Type_f2c);
  // MPI gives a type its number when first asked for it.
  if (mpi_numbers_types && is_ours(type)) real.Type_c2f(to_real(type));
  return from_fortran.type = type;
}

MPI_Fint MPI_Comm_c2f(MPI_Comm comm) {  // 0, 1 and 2 in mpif.h, also before MPI is open
  if (comm == pre.comm_world) return 0;
  if (comm == pre.comm_self) return 1;
  if (comm == pre.comm_null) return 2;
  return number<MPI_Comm>(comm, real.Comm_c2f);
}

MPI_Fint MPI_Win_c2f(MPI_Win window) { return number<MPI_Win>(window, real.Win_c2f); }
MPI_Win MPI_Win_f2c(MPI_Fint n) { return from_fortran.window = handle_of<MPI_Win>(n, real.Win_f2c); }

MPI_Fint MPI_File_c2f(MPI_File file) { return number<MPI_File>(file, real.File_c2f); }
MPI_File MPI_File_f2c(MPI_Fint n) { return handle_of<MPI_File>(n, real.File_f2c); }

MPI_Comm MPI_Comm_f2c(MPI_Fint n) {
  const MPI_Comm named[] = {pre.comm_world, pre.comm_self, pre.comm_null};
  return from_fortran.comm = n >= 0 && n <= 2 ? named[n] : handle_of<MPI_Comm>(n, real.Comm_f2c);
}

}  // extern "C"
