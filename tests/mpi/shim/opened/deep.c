/* Not linked with MPI: what uses MPI is a plug-in that prefers the symbols of its own libraries (RTLD_DEEPBIND), and opens libmpi by that.
 * argv: supersteps, plug-in, "now" or "lazy", and "unnoticed" if the plug-in is called without asking for its symbol. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef int Run(int, char**);

/* Called by the plug-in's constructor. */
static Run* offered;
__attribute__((visibility("default"))) void offer(Run* run) { offered = run; }

int main(int argc, char** argv) {
  if (argc < 4) return 9;
  const int when = strcmp(argv[3], "now") == 0 ? RTLD_NOW : RTLD_LAZY;
  void* plugin = dlopen(argv[2], when | RTLD_LOCAL | RTLD_DEEPBIND);
  if (plugin == NULL) {
    puts(dlerror());
    return 9;
  }
  Run* run = offered;
  if (argc < 5) *(void**)&run = dlsym(plugin, "run");
  return run(argc, argv);
}
