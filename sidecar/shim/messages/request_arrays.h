// An array of the program's requests, translated for one call that completes some of them.
#pragma once

#include <vector>

#include "sidecar/shim/messages/requests.h"

namespace bsp::shim {

inline Request* object_of_request(MPI_Request handle) {
  return is_ours(handle) ? reinterpret_cast<Request*>(handle) : nullptr;
}

// The call returns `status` and `error` of `request` to the program: counts it and, unless it is persistent, destroys
// it and sets *slot to MPI_REQUEST_NULL.
void settle(MPI_Request* slot, Request* request, const MPI_Status& status, int error);

// Calls the error handler for an error that a request kept since a gate, as MPI does when it completes the request:
// after settle(). `comm`: the request's.
void raise_error(MPI_Comm comm, int error);

// The first error that requests of an array kept since a gate: MPI raises one for all.
struct KeptError {
  MPI_Comm comm = nullptr;
  int error = MPI_SUCCESS;

  void note(const Request& request) {
    if (error == MPI_SUCCESS && request.error != MPI_SUCCESS) *this = {request.comm, request.error};
  }
};

class RequestArray {
 public:
  // Of at least one request.
  RequestArray(int count, MPI_Request* handles) : handles_(handles), count_(count) {
    if (count_ > kInline) {
      heap_real_.resize(static_cast<std::size_t>(count_));
      heap_status_.resize(static_cast<std::size_t>(count_));
      real_ = heap_real_.data();
      statuses_ = heap_status_.data();
    }
    for (int i = 0; i < count_; ++i) {
      Request* r = object_of_request(handles[i]);
      if (r == nullptr) {
        real_[i] = handles[i];
      } else if (r->completed) {
        any_completed_ = true;
        real_[i] = pre.request_null;
      } else if (withheld(*r)) {
        any_withheld_ = true;
        real_[i] = pre.request_null;
      } else {
        real_[i] = r->real;
      }
    }
  }

  [[nodiscard]] MPI_Request* real() { return real_; }
  [[nodiscard]] MPI_Status* statuses() { return statuses_; }
  [[nodiscard]] Request* object(int i) const { return object_of_request(handles_[i]); }
  [[nodiscard]] int count() const { return count_; }
  // Some request had completed before the last gate.
  [[nodiscard]] bool any_completed() const { return any_completed_; }
  // Some request is active but MPI doesn't know of it yet.
  [[nodiscard]] bool any_withheld() const { return any_withheld_; }
  [[nodiscard]] bool completed(int i) const {
    Request* r = object(i);
    return r != nullptr && r->completed;
  }

  // Request i has completed with `status` in a call that returns `rc`; takes over the real handle as MPI left it.
  void settle_one(int i, const MPI_Status& status, int rc) {
    Request* r = object(i);
    if (r == nullptr) {
      handles_[i] = real_[i];
      return;
    }
    if (!r->completed) r->real = real_[i];
    settle(&handles_[i], r, status, rc == MPI_ERR_IN_STATUS ? status.MPI_ERROR : rc);
  }

 private:
  static constexpr int kInline = 32;

  MPI_Request* handles_;
  int count_;
  bool any_completed_ = false;
  bool any_withheld_ = false;
  MPI_Request inline_real_[kInline];
  MPI_Status inline_status_[kInline];
  std::vector<MPI_Request> heap_real_;
  std::vector<MPI_Status> heap_status_;
  MPI_Request* real_ = inline_real_;
  MPI_Status* statuses_ = inline_status_;
};

}  // namespace bsp::shim
