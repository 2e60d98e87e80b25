// A system call without the C library: no cancellation point, no errno.
#pragma once

#include <errno.h>

#include "sidecar/shim/process/export.h"

namespace bsp::shim {

// The result, or minus an error number.
BSP_UNSANITIZED __attribute__((always_inline)) inline long raw_syscall(long number, const long (&arguments)[6]) {
#if defined(__x86_64__)
  long result = 0;
  register long r10 asm("r10") = arguments[3];
  register long r8 asm("r8") = arguments[4];
  register long r9 asm("r9") = arguments[5];
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = arguments[0];
  register long x1 asm("x1") = arguments[1];
  register long x2 asm("x2") = arguments[2];
  register long x3 asm("x3") = arguments[3];
  register long x4 asm("x4") = arguments[4];
  register long x5 asm("x5") = arguments[5];
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#endif
}

// What the C library's function returns: -1 with errno for an error.
BSP_UNSANITIZED __attribute__((always_inline)) inline long as_libc(long result) {
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace bsp::shim
