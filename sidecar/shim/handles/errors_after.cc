#include "sidecar/shim/handles/errors_after.h"

#include <string_view>

#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/handles/without_object.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {

constinit thread_local ErrorsAfter* ErrorsAfter::latest_ = nullptr;

namespace {

bool is_receive(std::string_view call) { return call.contains("ecv"); }

}  // namespace

// MPI's own handlers of a collective needn't wait: they end the program, or do nothing.
bool ErrorsAfter::concerns(MPI_Errhandler handler, const char* where) const {
  if (of_ == Of::kCollective)
    return handler != pre.errors_are_fatal && handler != pre.errors_abort && handler != pre.errors_return;
  const std::string_view call(where);
  return call.starts_with("MPI_Wait") || call.starts_with("MPI_Test") || is_receive(call);
}

bool ErrorsAfter::keep(MPI_Errhandler handler, void* object, int kind, int code, const char* where) {
  if (latest_ == nullptr || latest_->where_ != nullptr || where == nullptr) return false;
  if (!latest_->concerns(handler, where)) return false;
  latest_->epoch_ = state.epoch;
  latest_->handler_ = handler;
  latest_->object_ = object;
  latest_->kind_ = kind;
  latest_->code_ = code;
  latest_->where_ = where;
  return true;
}

int ErrorsAfter::raise(int rc) {
  const Suspended guard;
  const int returned = ompi_errhandler_invoke(handler_, object_, kind_, code_, where_);
  // A handler may change the code. Open MPI then ignores it in a receive, and returns MPI_ERR_IN_STATUS or nothing of several requests.
  return !is_receive(where_) && (returned == MPI_SUCCESS || rc == code_) ? returned : rc;
}

int ErrorsAfter::raise_on(MPI_Comm comm, int rc) {
  if (epoch_ == state.epoch) return raise(rc);
  const Suspended guard;  // MPI's handles of that epoch are gone
  real.Comm_call_errhandler(to_real(comm), code_);
  return rc;
}

}  // namespace bsp::shim
