/* Stands in for libbspmpi.so where only bsp-init is tested: reports whether it was loaded. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((constructor)) static void loaded(void) {
  if (getenv("STUB_SHIM_SPEAKS")) fprintf(stderr, "stub shim loaded by LD_PRELOAD=%s\n", getenv("LD_PRELOAD"));
}
