#include "base/core/network_namespace.h"

#include <fcntl.h>
#include <sched.h>

#include "base/core/fd.h"

namespace bsp {

Result<void> enter_network_namespace(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno("opening network namespace " + path);
  if (::setns(fd.get(), CLONE_NEWNET) != 0) return fail_errno("entering network namespace " + path);
  return {};
}

}  // namespace bsp
