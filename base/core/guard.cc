#include "base/core/guard.h"

#include <cstdio>
#include <cstdlib>

namespace bsp {
namespace {
thread_local unsigned checks_throw = 0;
}  // namespace

ChecksThrow::ChecksThrow() { ++checks_throw; }
ChecksThrow::~ChecksThrow() { --checks_throw; }

void break_invariant(std::string_view what, std::source_location where) {
  const std::string text = std::format("broken invariant: {} ({}:{})", what, where.file_name(), where.line());
  if (checks_throw > 0) throw BrokenInvariant(text);
  std::fprintf(stderr, "%s\n", text.c_str());
  std::abort();
}

}  // namespace bsp
