// Fortran programs: mpif.h, use mpi and use mpi_f08 of Open MPI 5.0.
//
// Open MPI's bindings are a library of their own, libmpi_mpifh, which turns integers into handles by PMPI_*_f2c and calls PMPI_*:
// all of that comes to us as a C program's calls do (libmpi_usempif08 calls libmpi_mpifh). What goes past these names is listed
// here, with what is relied on; it was read in Open MPI 5.0.7, whose files differ
// nowhere here from those of 5.0.0 to 5.0.9. Other versions are refused.
//
//   a request's, a group's number     read from the object (req_f_to_c_index, grp_f_to_c_index): FortranView
//   ompi_op_t.o_flags                 OMPI_OP_FLAGS_FORTRAN_FUNC is set in the object before PMPI_Op_c2f: FortranView
//   ompi_attr_create_keyval_{fint,aint}, _set_*, _get_*   ours, in attributes.cc. _get_* are not told the object: it is the one
//                                     that this thread turned into a handle last, just before
//   ompi_errhandler_create            ours, in callbacks.cc
//   ompi_info_get, _get_valuelen, _get_nthkey             given our info, here
//   MPI_Grequest_start                writes into the request that its functions are Fortran's: replaced as a whole, here
//
// MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE and the like are addresses of common blocks that libmpi_mpifh replaces itself.
#pragma once

#include <mpi.h>

#include <cstddef>

namespace bsp::shim {

// The beginning of an object of ours, for those who take it for one of Open MPI's. Whichever integer of it is read is the object's
// number in Fortran, so that the places of the members needn't be known.
class FortranView {
 public:
  void fill(MPI_Fint number) {
    for (MPI_Fint& word : words_) word = number;
  }
  // Whether somebody has written into it since it was filled with 0.
  [[nodiscard]] bool is_written() const {
    for (const MPI_Fint word : words_)
      if (word != 0) return true;
    return false;
  }

 private:
  static constexpr std::size_t kBytes =
      256;  // ompi_request_t and ompi_group_t are smaller, ompi_op_t has its flags at 84
  MPI_Fint words_[kBytes / sizeof(MPI_Fint)];
};

// A function of the program that was declared with C's arguments and takes Fortran's.
template <class Function, class Declared>
Function* in_fortran(Declared* function) {
  return reinterpret_cast<Function*>(reinterpret_cast<void*>(function));
}

// Ends the process with a message if the program has Fortran's bindings of an Open MPI that isn't known.
void require_known_fortran();
// Whether the process has them.
bool has_fortran();

// What this thread has turned into a handle last.
struct FromFortran {
  MPI_Comm comm = nullptr;
  MPI_Datatype type = nullptr;
};
extern thread_local FromFortran from_fortran __attribute__((tls_model("initial-exec")));

}  // namespace bsp::shim
