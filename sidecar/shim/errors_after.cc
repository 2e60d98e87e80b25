#include "sidecar/shim/errors_after.h"

#include <string_view>

#include "sidecar/shim/without_object.h"

namespace bsp::shim {

constinit thread_local ErrorsAfter* ErrorsAfter::latest_ = nullptr;

namespace {

bool is_receive(std::string_view call) { return call.contains("ecv"); }

}  // namespace

bool ErrorsAfter::keep(MPI_Errhandler handler, void* object, int kind, int code, const char* where) {
  if (latest_ == nullptr || latest_->where_ != nullptr || where == nullptr) return false;
  const std::string_view call(where);
  if (!call.starts_with("MPI_Wait") && !call.starts_with("MPI_Test") && !is_receive(call)) return false;
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

}  // namespace bsp::shim
