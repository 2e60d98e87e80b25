/* MPI as ctypes or Julia use it: every function comes from libmpi's own handle, whether the program is linked with MPI
 * or not. Beside it a plug-in that prefers the symbols of the libraries it is linked with. argv: supersteps, plug-in. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(what)                                                     \
  do {                                                                  \
    if (!(what)) {                                                      \
      printf("wrong %s:%d %s\n", __FILE__, __LINE__, #what);            \
      fprintf(stderr, "%s:%d: wrong: %s\n", __FILE__, __LINE__, #what); \
      fflush(stdout);                                                   \
      _exit(3);                                                         \
    }                                                                   \
  } while (0)

static void* library;

static void* take(const char* name) {
  void* symbol = dlsym(library, name);
  CHECK(symbol != NULL);
  return symbol;
}
#define TAKE(name)                     \
  __typeof__(&name) own_##name = NULL; \
  *(void**)&own_##name = take(#name)

static volatile sig_atomic_t got_enough = 0;
static void on_enough(int number) { got_enough = number; }

int main(int argc, char** argv) {
  const int n = atoi(argv[argc > 1 ? 1 : 0]);
  CHECK(dlsym(RTLD_DEFAULT, "no_such_symbol") == NULL && dlerror() != NULL);
  library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_LOCAL);
  CHECK(library != NULL);
  TAKE(MPI_Init);
  TAKE(MPI_Finalize);
  TAKE(MPI_Comm_size);
  TAKE(MPI_Comm_dup);
  TAKE(PMPI_Comm_free);
  TAKE(MPI_Allreduce);
  TAKE(PMPI_Barrier);
  TAKE(MPI_Type_contiguous);
  TAKE(MPI_Type_size);
  const MPI_Comm world = take("ompi_mpi_comm_world");
  const MPI_Datatype integer = take("ompi_mpi_int");
  const MPI_Op greatest = take("ompi_mpi_op_max");

  CHECK(own_MPI_Init(&argc, &argv) == MPI_SUCCESS);
  signal(SIGUSR1, on_enough);
  int size = 0, (*sum)(MPI_Comm) = NULL;
  own_MPI_Comm_size(world, &size);
  CHECK(size == 2);
  MPI_Comm others = NULL;
  MPI_Datatype pair = NULL;
  own_MPI_Comm_dup(world, &others);
  own_MPI_Type_contiguous(2, integer, &pair);
  for (int s = 0, any = 0; s < n && !any; ++s) {
    int mine = got_enough, bytes = 0;
    CHECK(own_MPI_Allreduce(&mine, &any, 1, integer, greatest, others) == MPI_SUCCESS);
    own_MPI_Type_size(pair, &bytes);
    CHECK(bytes == 2 * (int)sizeof(int));
    void* plugin = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    CHECK(plugin != NULL);
    *(void**)&sum = dlsym(plugin, "sum_of_ones");
    CHECK(sum(others) == size);
    dlclose(plugin);
    usleep(1000);
    own_PMPI_Barrier(world);
  }
  own_PMPI_Comm_free(&others);
  own_MPI_Finalize();
  printf("ok opened\n");
  return 0;
}
