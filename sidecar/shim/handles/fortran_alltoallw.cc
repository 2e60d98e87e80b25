// MPI_Alltoallw, MPI_Ialltoallw and MPI_Alltoallw_init from Fortran (fortran.h).
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "sidecar/shim/handles/fortran.h"

namespace bsp::shim {
namespace {

// libmpi_mpifh has each constant as a common block, with all symbol names that Fortran compilers generate.
using CommonBlock = std::array<const void*, 4>;

CommonBlock common_block(const std::string& lower, const char* upper) {
  return {dlsym(RTLD_DEFAULT, upper), dlsym(RTLD_DEFAULT, lower.c_str()), dlsym(RTLD_DEFAULT, (lower + "_").c_str()),
          dlsym(RTLD_DEFAULT, (lower + "__").c_str())};
}

bool is_in_place(const void* buffer) {
  static const CommonBlock in_place = common_block("mpi_fortran_in_place", "MPI_FORTRAN_IN_PLACE");
  return buffer != nullptr && std::ranges::contains(in_place, buffer);
}

void* buffer_in_c(void* buffer) {
  static const CommonBlock bottom = common_block("mpi_fortran_bottom", "MPI_FORTRAN_BOTTOM");
  return std::ranges::contains(bottom, buffer) ? MPI_BOTTOM : buffer;
}

// The arguments that the three functions share, in C.
struct Alltoallw {
  Alltoallw(void* send, const MPI_Fint* send_types, void* receive, const MPI_Fint* receive_types, MPI_Fint number)
      : comm(MPI_Comm_f2c(number)), in_place(is_in_place(send)) {
    int inter = 0, size = 0;
    MPI_Comm_test_inter(comm, &inter);
    (inter != 0 ? MPI_Comm_remote_size : MPI_Comm_size)(comm, &size);
    sendbuf = in_place ? MPI_IN_PLACE : buffer_in_c(send);
    recvbuf = buffer_in_c(receive);
    for (int i = 0; i < size; ++i) {
      sendtypes.push_back(in_place ? nullptr : MPI_Type_f2c(send_types[i]));
      recvtypes.push_back(MPI_Type_f2c(receive_types[i]));
    }
  }

  MPI_Comm comm;
  bool in_place;
  void *sendbuf = nullptr, *recvbuf = nullptr;
  std::vector<MPI_Datatype> sendtypes, recvtypes;
};

void give(int rc, MPI_Request made, MPI_Fint* request, MPI_Fint* error) {
  if (error != nullptr) *error = rc;
  if (rc == MPI_SUCCESS) *request = MPI_Request_c2f(made);
}

}  // namespace
}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

extern "C" {

BSP_EXPORT void ompi_alltoallw_f(void* sendbuf, const MPI_Fint* sendcounts, const MPI_Fint* sdispls,
                                 const MPI_Fint* sendtypes, void* recvbuf, const MPI_Fint* recvcounts,
                                 const MPI_Fint* rdispls, const MPI_Fint* recvtypes, const MPI_Fint* comm,
                                 MPI_Fint* error) {
  const Alltoallw c(sendbuf, sendtypes, recvbuf, recvtypes, *comm);
  const int rc = MPI_Alltoallw(c.sendbuf, sendcounts, sdispls, c.sendtypes.data(), c.recvbuf, recvcounts, rdispls,
                               c.recvtypes.data(), c.comm);
  if (error != nullptr) *error = rc;
}
BSP_FORTRAN_NAMES(ompi_alltoallw_f, alltoallw, ALLTOALLW)

BSP_EXPORT void ompi_ialltoallw_f(void* sendbuf, const MPI_Fint* sendcounts, const MPI_Fint* sdispls,
                                  const MPI_Fint* sendtypes, void* recvbuf, const MPI_Fint* recvcounts,
                                  const MPI_Fint* rdispls, const MPI_Fint* recvtypes, const MPI_Fint* comm,
                                  MPI_Fint* request, MPI_Fint* error) {
  const Alltoallw c(sendbuf, sendtypes, recvbuf, recvtypes, *comm);
  MPI_Request made = nullptr;
  const int rc = MPI_Ialltoallw(c.sendbuf, sendcounts, sdispls, c.sendtypes.data(), c.recvbuf, recvcounts, rdispls,
                                c.recvtypes.data(), c.comm, &made);
  give(rc, made, request, error);
}
BSP_FORTRAN_NAMES(ompi_ialltoallw_f, ialltoallw, IALLTOALLW)

BSP_EXPORT void ompi_alltoallw_init_f(void* sendbuf, const MPI_Fint* sendcounts, const MPI_Fint* sdispls,
                                      const MPI_Fint* sendtypes, void* recvbuf, const MPI_Fint* recvcounts,
                                      const MPI_Fint* rdispls, const MPI_Fint* recvtypes, const MPI_Fint* comm,
                                      const MPI_Fint* info, MPI_Fint* request, MPI_Fint* error) {
  const Alltoallw c(sendbuf, sendtypes, recvbuf, recvtypes, *comm);
  MPI_Request made = nullptr;
  const int rc = MPI_Alltoallw_init(c.sendbuf, sendcounts, sdispls, c.sendtypes.data(), c.recvbuf, recvcounts, rdispls,
                                    c.recvtypes.data(), c.comm, MPI_Info_f2c(*info), &made);
  give(rc, made, request, error);
}
BSP_FORTRAN_NAMES(ompi_alltoallw_init_f, alltoallw_init, ALLTOALLW_INIT)

}  // extern "C"
