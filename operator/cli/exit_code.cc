#include "operator/cli/exit_code.h"

#include <cstdio>

namespace bsp::cli {

int report_error(const Error& error, const char* program) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program, error.message.c_str());
  return error.code == ErrorCode::kInvalid ? kUsage : kFailed;
}

}  // namespace bsp::cli
