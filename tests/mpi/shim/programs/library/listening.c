/* listening SUPERSTEPS: MPI listens for connections, and nobody waits until such a socket hears something when MPI closes. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/socket.h>
#include <sys/syscall.h>

#include "check.h"

static int waited;

ssize_t recv(int fd, void* bytes, size_t most, int flags) { /* replaces the C library's, for the shim too */
  int listens = 0;
  socklen_t size = sizeof listens;
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens) ++waited;
  return syscall(SYS_recvfrom, fd, bytes, most, flags, NULL, NULL);
}

int main(int argc, char** argv) {
  int n = supersteps(argc, argv);
  MPI_Init(&argc, &argv);
  for (int s = 0; going_on(s, n); ++s) edge();
  CHECK(waited == 0);
  MPI_Finalize();
  CHECK(waited == 0);
  printf("ok listening\n");
  return 0;
}
