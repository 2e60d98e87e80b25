// Open MPI passes its messages to the user (such as a fatal error) to its PMIx server, as mpirun would print them.
// Here the server is the sidecar, but the message belongs on the program's own stderr.
#include <dlfcn.h>
#include <pmix.h>

#include <cstdio>
#include <cstring>

#include "sidecar/shim/process/state.h"

using namespace bsp::shim;  // NOLINT

namespace {

void print_texts(const pmix_info_t* data, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (data[i].value.type == PMIX_STRING && std::strstr(data[i].key, "std") != nullptr)
      std::fputs(data[i].value.data.string, stderr);  // PMIX_LOG_STDERR, PMIX_LOG_LOCAL_STDERR, ..._STDOUT
  std::fflush(stderr);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) pmix_status_t PMIx_Log_nb(const pmix_info_t data[], size_t ndata,
                                                                 const pmix_info_t directives[], size_t ndirs,
                                                                 pmix_op_cbfunc_t done, void* done_argument) {
  static const auto next = reinterpret_cast<decltype(&PMIx_Log_nb)>(dlsym(RTLD_NEXT, "PMIx_Log_nb"));
  if (!state.epochs)
    return next != nullptr ? next(data, ndata, directives, ndirs, done, done_argument) : PMIX_ERR_NOT_SUPPORTED;
  print_texts(data, ndata);
  if (done != nullptr) done(PMIX_SUCCESS, done_argument);
  return PMIX_SUCCESS;
}

}  // extern "C"
