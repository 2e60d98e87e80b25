// The errors of calls that receive a message or complete requests, and of collectives. MPI calls the program's error handler before such
// a call returns, and the handler may come to an edge, or leave the call by longjmp or an exception. So the handler waits until the shim
// has counted the message, or a gate would wait for it for ever; and until it has counted the collective, as the other ranks do.
#pragma once

#include <cstdint>

#include "sidecar/shim/library/real.h"

namespace bsp::shim {

class ErrorsAfter {
 public:
  enum class Of { kMessages, kCollective };
  explicit ErrorsAfter(Of of = Of::kMessages) : outer_(latest_), of_(of) { latest_ = this; }
  ~ErrorsAfter() { latest_ = outer_; }
  ErrorsAfter(const ErrorsAfter&) = delete;
  ErrorsAfter& operator=(const ErrorsAfter&) = delete;

  // Of a call that is to return `rc`: calls the handler, if there is an error, and returns what the call returns then.
  int raised(int rc) { return where_ == nullptr ? rc : raise(rc); }
  // The same of a collective on `comm`, which may have been the end of an epoch.
  int raised(int rc, MPI_Comm comm) { return where_ == nullptr ? rc : raise_on(comm, rc); }

  // Whether an error, as Open MPI raises it, waits.
  static bool keep(MPI_Errhandler handler, void* object, int kind, int code, const char* where);

  // While a handler of the program runs, which may never return.
  class Suspended {
   public:
    Suspended() : before_(latest_) { latest_ = nullptr; }
    ~Suspended() { latest_ = before_; }
    Suspended(const Suspended&) = delete;
    Suspended& operator=(const Suspended&) = delete;

   private:
    ErrorsAfter* before_;
  };

 private:
  int raise(int rc);
  int raise_on(MPI_Comm comm, int rc);
  [[nodiscard]] bool concerns(MPI_Errhandler handler, const char* where) const;

  static constinit thread_local ErrorsAfter* latest_ __attribute__((tls_model("initial-exec")));
  ErrorsAfter* const outer_;
  const Of of_;
  MPI_Errhandler handler_ = nullptr;
  void* object_ = nullptr;
  int kind_ = 0;
  int code_ = 0;
  std::uint64_t epoch_ = 0;      // in which it was raised
  const char* where_ = nullptr;  // nullptr: no error waits
};

}  // namespace bsp::shim
