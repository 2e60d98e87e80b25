/* open() that fails as the program wishes, for the program, the shim and MPI. Before it: #define _GNU_SOURCE. */
#pragma once

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

static int error_of_open(const char* path); /* the program's: an errno, or 0 */

int open(const char* path, int flags, ...) { /* replaces the C library's */
  static int (*next)(const char*, int, ...);
  if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "open");
  va_list more;
  va_start(more, flags);
  const int mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(more, int) : 0;
  va_end(more);
  const int error = error_of_open(path);
  if (error == 0) return next(path, flags, mode);
  errno = error;
  return -1;
}
