/* blocked SUPERSTEPS THING: holds something that can't be carried over an epoch until some rank gets SIGUSR1, and works
 * with it all the time; then it lets go of it and does so many supersteps more. */
#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>

#include "check.h"

static volatile sig_atomic_t enough = 0;
static void on_signal(int number) { enough = number; }

int main(int argc, char** argv) {
  signal(SIGUSR1, on_signal);
  MPI_Init(&argc, &argv);
  int rank, size, n = supersteps(argc, argv);
  const char* thing = argc > 2 ? argv[2] : "";
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;

  int memory = -1, out = -1, in = -1, fd = -1;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Request persistent[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL}, pending = MPI_REQUEST_NULL;
  MPI_File file = MPI_FILE_NULL;
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Message message = MPI_MESSAGE_NULL;
  int unreceived = 0;

  if (!strcmp(thing, "window"))
    MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  if (!strcmp(thing, "persistent")) {
    MPI_Send_init(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &persistent[0]);
    MPI_Recv_init(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &persistent[1]);
  }
  if (!strcmp(thing, "pending")) MPI_Irecv(&memory, 1, MPI_INT, left, 2, MPI_COMM_WORLD, &pending);
  if (!strcmp(thing, "file")) {
    char path[64] = "/tmp/bsp-shim-blocked-XXXXXX";
    close(mkstemp(path));
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  }
  if (!strcmp(thing, "session")) MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
  if (!strcmp(thing, "probed")) {
    MPI_Send(&rank, 1, MPI_INT, right, 3, MPI_COMM_WORLD);
    MPI_Mprobe(left, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  }
  if (!strcmp(thing, "unreceived")) {
    MPI_Send(&rank, 1, MPI_INT, right, 4, MPI_COMM_WORLD);
    unreceived = 1;
  }
  if (!strcmp(thing, "socket")) fd = socket(AF_INET, SOCK_STREAM, 0);

  for (int s = 0, left_over = -1; left_over != 0; ++s) {
    if (window != MPI_WIN_NULL) {
      int value = rank + s;
      MPI_Win_fence(0, window);
      MPI_Put(&value, 1, MPI_INT, right, 0, 1, MPI_INT, window);
      MPI_Win_fence(0, window);
      CHECK(memory == left + s);
    }
    if (persistent[0] != MPI_REQUEST_NULL) {
      out = rank + s;
      MPI_Startall(2, persistent);
      MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
      CHECK(in == left + s && persistent[0] != MPI_REQUEST_NULL);
    }
    if (file != MPI_FILE_NULL) {
      MPI_File_write_at(file, 4 * s, &s, 1, MPI_INT, MPI_STATUS_IGNORE);
      MPI_File_read_at(file, 4 * s, &in, 1, MPI_INT, MPI_STATUS_IGNORE);
      CHECK(in == s);
    }
    int release = enough, any = 0;
    MPI_Allreduce(&release, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (left_over > 0) --left_over;
    if (any && left_over == -1) { /* away with it */
      left_over = n;
      if (window != MPI_WIN_NULL) MPI_Win_free(&window);
      for (int i = 0; i < 2; ++i)
        if (persistent[i] != MPI_REQUEST_NULL) MPI_Request_free(&persistent[i]);
      if (pending != MPI_REQUEST_NULL) {
        MPI_Send(&rank, 1, MPI_INT, right, 2, MPI_COMM_WORLD);
        MPI_Wait(&pending, MPI_STATUS_IGNORE);
        CHECK(memory == left);
      }
      if (file != MPI_FILE_NULL) MPI_File_close(&file);
      if (session != MPI_SESSION_NULL) MPI_Session_finalize(&session);
      if (message != MPI_MESSAGE_NULL) {
        MPI_Mrecv(&in, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        CHECK(in == left);
      }
      if (unreceived) {
        MPI_Recv(&in, 1, MPI_INT, left, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in == left);
      }
      if (fd >= 0) close(fd);
    }
    edge();
  }
  MPI_Finalize();
  printf("ok blocked %s\n", thing);
  return 0;
}
