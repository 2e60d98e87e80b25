// MPI-1's procedures that MPI 3 removed and mpi.h hides from C programs. Open MPI's library has them for Fortran programs, which call
// them through PMPI; some of its versions read the object, which is the shim's here.
#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/export.h"

#undef MPI_Errhandler_create
#undef MPI_Errhandler_get
#undef MPI_Errhandler_set
#undef MPI_Type_extent
#undef MPI_Type_hindexed
#undef MPI_Type_hvector
#undef MPI_Type_lb
#undef MPI_Type_struct
#undef MPI_Type_ub

extern "C" {

BSP_EXPORT int MPI_Errhandler_create(MPI_Comm_errhandler_function* function, MPI_Errhandler* handler) {
  return MPI_Comm_create_errhandler(function, handler);
}
BSP_EXPORT int MPI_Errhandler_get(MPI_Comm comm, MPI_Errhandler* handler) {
  return MPI_Comm_get_errhandler(comm, handler);
}
BSP_EXPORT int MPI_Errhandler_set(MPI_Comm comm, MPI_Errhandler handler) {
  return MPI_Comm_set_errhandler(comm, handler);
}

BSP_EXPORT int MPI_Type_extent(MPI_Datatype type, MPI_Aint* extent) {
  MPI_Aint lower = 0;
  return MPI_Type_get_extent(type, &lower, extent);
}
BSP_EXPORT int MPI_Type_lb(MPI_Datatype type, MPI_Aint* lower) {
  MPI_Aint extent = 0;
  return MPI_Type_get_extent(type, lower, &extent);
}
BSP_EXPORT int MPI_Type_ub(MPI_Datatype type, MPI_Aint* upper) {
  MPI_Aint lower = 0, extent = 0;
  const int rc = MPI_Type_get_extent(type, &lower, &extent);
  if (rc == MPI_SUCCESS) *upper = lower + extent;
  return rc;
}

BSP_EXPORT int MPI_Type_hindexed(int count, int lengths[], MPI_Aint displacements[], MPI_Datatype old,
                                 MPI_Datatype* type) {
  return MPI_Type_create_hindexed(count, lengths, displacements, old, type);
}
BSP_EXPORT int MPI_Type_hvector(int count, int length, MPI_Aint stride, MPI_Datatype old, MPI_Datatype* type) {
  return MPI_Type_create_hvector(count, length, stride, old, type);
}
BSP_EXPORT int MPI_Type_struct(int count, int lengths[], MPI_Aint displacements[], MPI_Datatype types[],
                               MPI_Datatype* type) {
  return MPI_Type_create_struct(count, lengths, displacements, types, type);
}

}  // extern "C"
