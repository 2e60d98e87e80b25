// The program's C library may be older than the one that the shim was built with: what has another name there, or is missing.
// Nothing of this is visible outside the shim. Needed is glibc 2.35, for the unwinder (_dl_find_object).
#include <errno.h>
#include <sys/random.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

extern "C" {

long bsp_strtol(const char*, char**, int) asm("strtol");
unsigned long bsp_strtoul(const char*, char**, int) asm("strtoul");
unsigned long long bsp_strtoull(const char*, char**, int) asm("strtoull");
int bsp_vsscanf(const char*, const char*, va_list) asm("vsscanf");

// glibc 2.38's, which also read binary numbers.
long __isoc23_strtol(const char* text, char** end, int base) { return bsp_strtol(text, end, base); }
unsigned long __isoc23_strtoul(const char* text, char** end, int base) { return bsp_strtoul(text, end, base); }
unsigned long long __isoc23_strtoull(const char* text, char** end, int base) { return bsp_strtoull(text, end, base); }
int __isoc23_sscanf(const char* text, const char* format, ...) {
  va_list list;
  va_start(list, format);
  const int read = bsp_vsscanf(text, format, list);
  va_end(list);
  return read;
}

// glibc 2.36's, for std::random_device.
unsigned arc4random() {
  unsigned value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value)
    if (errno != EINTR) std::abort();  // as glibc does
  return value;
}

}  // extern "C"
