#include "sidecar/shim/server_loss.h"

#include <pmix.h>

#include "sidecar/shim/real.h"

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
