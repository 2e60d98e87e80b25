#include "sidecar/shim/messages/hidden_tags.h"

#include <cstddef>

#include "sidecar/shim/library/thread_level.h"

namespace bsp::shim::ob1 {
namespace {

constexpr int kStandardMode = 0;  // MCA_PML_BASE_SEND_STANDARD

template <class Function>
Function* find(const char* name) {
  return reinterpret_cast<Function*>(find_in_mpi(name));
}

// ompi/mca/pml/ob1/pml_ob1.h, the same in all releases of Open MPI 5.0.
struct Functions {
  using Send = int(const void*, std::size_t, MPI_Datatype, int to, int tag, int mode, MPI_Comm, MPI_Request*);
  Send* const send_init = find<Send>("mca_pml_ob1_isend_init");
  Send* const isend = find<Send>("mca_pml_ob1_isend");
  using RecvInit = int(void*, std::size_t, MPI_Datatype, int from, int tag, MPI_Comm, MPI_Request*);
  RecvInit* const recv_init = find<RecvInit>("mca_pml_ob1_irecv_init");
  using Recv = int(void*, std::size_t, MPI_Datatype, int from, int tag, MPI_Comm, MPI_Status*);
  Recv* const recv = find<Recv>("mca_pml_ob1_recv");
  using Probe = int(int from, int tag, MPI_Comm, int* flag, MPI_Status*);
  Probe* const iprobe = find<Probe>("mca_pml_ob1_iprobe");
  using MatchedProbe = int(int from, int tag, MPI_Comm, int* flag, MPI_Message*, MPI_Status*);
  MatchedProbe* const improbe = find<MatchedProbe>("mca_pml_ob1_improbe");
};

const Functions& functions() {
  static const Functions found;
  return found;
}

}  // namespace

bool is_used() {
  static const bool used = [](const Functions& f) {
    return f.send_init != nullptr && f.isend != nullptr && f.recv_init != nullptr && f.recv != nullptr &&
           f.iprobe != nullptr && f.improbe != nullptr && uses_ob1();
  }(functions());
  return used;
}

int send_init(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return functions().send_init(buffer, static_cast<std::size_t>(count), type, to, tag, kStandardMode, comm, request);
}

int recv_init(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  return functions().recv_init(buffer, static_cast<std::size_t>(count), type, from, tag, comm, request);
}

int isend(const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return functions().isend(buffer, static_cast<std::size_t>(count), type, to, tag, kStandardMode, comm, request);
}

int recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm) {
  return functions().recv(buffer, static_cast<std::size_t>(count), type, from, tag, comm, MPI_STATUS_IGNORE);
}

int iprobe(int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  return functions().iprobe(from, tag, comm, flag, status);
}

int improbe(int from, int tag, MPI_Comm comm, int* flag, MPI_Message* message) {
  return functions().improbe(from, tag, comm, flag, message, MPI_STATUS_IGNORE);
}

}  // namespace bsp::shim::ob1
