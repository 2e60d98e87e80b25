// Messages with a negative tag, as MPI's own have. They match no receive or probe of the program, not even one with
// MPI_ANY_TAG. MPI's functions refuse such tags; ob1, below them, takes any. Arguments and results are those of MPI,
// but handles are MPI's own.
#pragma once

#include "sidecar/shim/library/real.h"

namespace bsp::shim::ob1 {

// Whether messages travel by ob1. If not, nothing else here may be called.
bool is_used();

int send_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request);
int recv_init(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request);
int isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request);
int recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm);
int iprobe(int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status);
int improbe(int from, int tag, MPI_Comm comm, int* flag, MPI_Message* message);

}  // namespace bsp::shim::ob1
