#include "sidecar/shim/library/server_loss.h"

#include <pmix.h>

#include "sidecar/shim/library/real.h"
#include "sidecar/shim/process/export.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

void on_lost_server(size_t, pmix_status_t, const pmix_proc_t*, pmix_info_t[], size_t, pmix_info_t[], size_t,
                    pmix_event_notification_cbfunc_fn_t done, void* data) {
  if (done != nullptr) done(PMIX_EVENT_ACTION_COMPLETE, nullptr, 0, nullptr, nullptr, data);
}

}  // namespace

void ignore_server_loss() {
  using Register = decltype(&PMIx_Register_event_handler);
  static const auto register_handler = reinterpret_cast<Register>(find_in_mpi("PMIx_Register_event_handler"));
  if (register_handler == nullptr) return;
  pmix_status_t lost = PMIX_ERR_LOST_CONNECTION;
  register_handler(&lost, 1, nullptr, 0, on_lost_server, nullptr, nullptr);
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT

// Open MPI takes a process that can't connect to its PMIx server for one without a server, and then waits for ever for
// an answer of that server.
extern "C" BSP_EXPORT pmix_status_t PMIx_Init(pmix_proc_t* process, pmix_info_t* info, size_t count) {
  static const auto next = reinterpret_cast<decltype(&PMIx_Init)>(find_real("PMIx_Init"));
  if (next == nullptr) return PMIX_ERR_NOT_SUPPORTED;
  const pmix_status_t status = next(process, info, count);
  if (status != PMIX_SUCCESS && state.ring != nullptr)
    die("epoch %llu: can't connect to the sidecar's PMIx server (PMIx status %d)",
        static_cast<unsigned long long>(state.epoch), status);
  return status;
}
