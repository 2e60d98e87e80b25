#include "operator/reconcile/network.h"

#include <fcntl.h>
#include <sched.h>

#include <format>

#include "base/core/fd.h"

namespace bsp::reconcile {

Result<void> enter_network(const std::string& path) {
  const Fd ns(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!ns) return fail_errno(std::format("opening {}", path));
  if (::setns(ns.get(), CLONE_NEWNET) != 0) return fail_errno(std::format("entering {}", path));
  return {};
}

}  // namespace bsp::reconcile
