// Open MPI 5.0 (all releases up to 5.0.9, and its branch in August 2026) passes a session's thread level only to
// OPAL: it sets `opal_uses_threads`, but only MPI_Init sets `ompi_mpi_thread_multiple`. While that is 0, ob1 lends
// its single cached request to every thread in MPI_Send or MPI_Recv: values arrive in the wrong thread, and a request
// completes twice. Open MPI 6 sets it in MPI_Session_init. MPI_Init does nothing else for threads that is missing:
// the shim implements MPI_Is_thread_main (init.cc).
#include "sidecar/shim/library/thread_level.h"

#include <cstdint>
#include <initializer_list>

#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/message.h"

namespace bsp::shim {
namespace {

// mca_pml_base_module_t of ompi/mca/pml/pml.h, the same from Open MPI 5.0.0 to 6.
struct Pml {
  void* processes_and_progress[4];
  int (*add_comm)(MPI_Comm);
  void* messages_and_dump[16];
  std::uint32_t max_contextid;
  int max_tag;
  int flags;
};
constexpr int kPmlRequiresWorld = 1;

}  // namespace

void set_thread_level(int level) {
  auto* const multiple = static_cast<bool*>(find_in_mpi("ompi_mpi_thread_multiple"));
  if (multiple != nullptr)
    *multiple = level == MPI_THREAD_MULTIPLE;
  else if (level == MPI_THREAD_MULTIPLE && open_mpi_major() < 6)
    refuse(
        "the program requests MPI_THREAD_MULTIPLE, but its MPI library does not export ompi_mpi_thread_multiple, "
        "without which messages of different threads would be mixed up: use Debian's or an unstripped Open MPI 5, or "
        "MPI_THREAD_SERIALIZED");
  for (const char* name :
       {"ompi_mpi_thread_requested", "ompi_mpi_thread_provided"})  // for MPI_INFO_ENV and the ucx pml
    if (auto* const number = static_cast<int*>(find_in_mpi(name))) *number = level;
}

// With MPI_THREAD_MULTIPLE and several interfaces btl/tcp needs the predefined communicators. MPI_Session_init of 5.0
// creates them and marks them as known to the pml, but leaves it to MPI_Init to add them. MPI_Session_finalize then
// removes them from a pml that has never seen them (a null pointer in mca_pml_ob1_del_comm). Open MPI 6 adds them
// itself.
void add_world_to_pml() {
  const auto* const pml = static_cast<const Pml*>(find_in_mpi("mca_pml"));
  if (open_mpi_major() >= 6 || pml == nullptr || (pml->flags & kPmlRequiresWorld) == 0) return;
  must(pml->add_comm(pre.comm_world), "adding MPI_COMM_WORLD to the pml");
  must(pml->add_comm(pre.comm_self), "adding MPI_COMM_SELF to the pml");
}

bool uses_ob1() {
  const auto* const pml = static_cast<const Pml*>(find_in_mpi("mca_pml"));
  void* const of_ob1 = find_in_mpi("mca_pml_ob1_add_comm");
  return pml != nullptr && of_ob1 != nullptr && reinterpret_cast<void*>(pml->add_comm) == of_ob1;
}

}  // namespace bsp::shim
