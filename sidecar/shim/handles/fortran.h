// Fortran programs: mpif.h, use mpi and use mpi_f08 of Open MPI 5.0.
//
// Open MPI's bindings are a separate library, libmpi_mpifh, which turns integers into handles by PMPI_*_f2c and calls
// PMPI_*. Those calls arrive here like a C program's (libmpi_usempif08 calls libmpi_mpifh). The bindings also bypass
// PMPI in the places listed below. The list was read from Open MPI 5.0.7; the files in question are identical from
// 5.0.0 to 5.0.9. Other versions are refused.
//
//   number of a request or group      read from the object (req_f_to_c_index, grp_f_to_c_index): FortranView
//   ompi_op_t.o_flags                 OMPI_OP_FLAGS_FORTRAN_FUNC is set in the object before PMPI_Op_c2f: FortranView
//   ompi_attr_create_keyval_{fint,aint}, _set_*, _get_*   replaced in attributes.cc. _get_* don't receive the object: it is the one
//                                     that this thread converted to a handle last, just before
//   ompi_errhandler_create            replaced in callbacks.cc
//   ompi_info_get, _get_valuelen, _get_nthkey             replaced here, as they receive the shim's info
//   MPI_Alltoallw, _Ialltoallw, _Alltoallw_init   read the communicator's size from the object: replaced in fortran_alltoallw.cc
//   nonblocking and persistent vector collectives     write into the request (release_arrays, bytes 200 to 255): FortranView
//   MPI_Grequest_start                sets a flag in the request that its functions are Fortran's: replaced as a whole, here
//
// MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE and the like are addresses of common blocks, which libmpi_mpifh
// replaces itself.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <iterator>

#include "sidecar/shim/process/export.h"

#define BSP_FORTRAN_NAME(function, name) extern BSP_EXPORT decltype(function) name __attribute__((alias(#function)));
// All symbol names that Fortran compilers generate for a function.
#define BSP_FORTRAN_NAMES(function, lower, upper) \
  BSP_FORTRAN_NAME(function, mpi_##lower##_)      \
  BSP_FORTRAN_NAME(function, mpi_##lower##__)     \
  BSP_FORTRAN_NAME(function, mpi_##lower)         \
  BSP_FORTRAN_NAME(function, MPI_##upper)         \
  BSP_FORTRAN_NAME(function, pmpi_##lower##_)     \
  BSP_FORTRAN_NAME(function, pmpi_##lower##__)    \
  BSP_FORTRAN_NAME(function, pmpi_##lower)        \
  BSP_FORTRAN_NAME(function, PMPI_##upper)

namespace bsp::shim {

// The beginning of a shim object, for code that takes it for an Open MPI object. Every integer in it holds the
// object's Fortran number, so that the member offsets needn't be known.
class FortranView {
 public:
  void fill(MPI_Fint number) {
    for (MPI_Fint& word : words_) word = number;
  }
  // Whether a byte has been written since it was filled with 0.
  [[nodiscard]] bool is_written() const {
    for (const MPI_Fint word : words_)
      if (word != 0) return true;
    return false;
  }
  // Does the same to the Open MPI object that this one stands for. Flags are added.
  void copy_written(void* object) const {
    auto* const words = static_cast<MPI_Fint*>(object);
    for (std::size_t i = 0; i < std::size(words_); ++i)
      if (words_[i] != 0) words[i] |= words_[i];
  }

 private:
  // ompi_request_t and ompi_group_t are smaller; the flags of ompi_op_t are at offset 84.
  static constexpr std::size_t kBytes = 256;
  MPI_Fint words_[kBytes / sizeof(MPI_Fint)];
};

// A user callback that was declared with C arguments but takes Fortran's.
template <class Function, class Declared>
Function* in_fortran(Declared* function) {
  return reinterpret_cast<Function*>(reinterpret_cast<void*>(function));
}

// Exits with a message if the program uses Fortran bindings of an unsupported Open MPI version.
void require_known_fortran();
// Whether the process has loaded them.
bool has_fortran();

// Some Fortran operation has no trampoline (callbacks.cc): MPI passes it its own number of a type.
extern std::atomic<bool> mpi_numbers_types;

// The object that this thread converted to a handle last.
struct FromFortran {
  MPI_Comm comm = nullptr;
  MPI_Datatype type = nullptr;
  MPI_Win window = nullptr;
};
extern thread_local FromFortran from_fortran __attribute__((tls_model("initial-exec")));

}  // namespace bsp::shim
