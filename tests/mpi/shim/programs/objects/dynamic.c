/* Dynamic processes aren't supported: they raise an error through the communicator's error handler, in every epoch. */
#include "check.h"

static int handled = 0;
static MPI_Comm handled_on = MPI_COMM_NULL;
static void on_error(MPI_Comm* comm, int* code, ...) {
  MPI_Error_class(*code, &handled);
  handled_on = *comm;
}

#define REFUSED(call, wanted)                         \
  do {                                                \
    handled = 0;                                      \
    handled_on = MPI_COMM_NULL;                       \
    CHECK((call) != MPI_SUCCESS);                     \
    CHECK(handled == (wanted) && handled_on == mine); \
  } while (0)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm mine, inter;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(mine, handler);
  MPI_Errhandler_free(&handler);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  char* commands[2] = {"/bin/true", "/bin/true"};
  int codes[2], most[2] = {1, 1};
  MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
  char port[MPI_MAX_PORT_NAME] = "none";
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    inter = mine;
    REFUSED(MPI_Comm_spawn(commands[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, mine, &inter, codes), MPI_ERR_SPAWN);
    CHECK(inter == MPI_COMM_NULL);
    REFUSED(MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, most, infos, 0, mine, &inter, MPI_ERRCODES_IGNORE),
            MPI_ERR_SPAWN);
    REFUSED(MPI_Comm_accept(port, MPI_INFO_NULL, 0, mine, &inter), MPI_ERR_PORT);
    REFUSED(MPI_Comm_connect(port, MPI_INFO_NULL, 0, mine, &inter), MPI_ERR_PORT);
    CHECK(MPI_Open_port(MPI_INFO_NULL, port) == MPI_ERR_PORT);
    CHECK(MPI_Close_port(port) == MPI_ERR_PORT);
    CHECK(MPI_Comm_join(0, &inter) == MPI_ERR_PORT && inter == MPI_COMM_NULL);
    CHECK(MPI_Publish_name("me", MPI_INFO_NULL, port) == MPI_ERR_SERVICE);
    CHECK(MPI_Unpublish_name("me", MPI_INFO_NULL, port) == MPI_ERR_SERVICE);
    CHECK(MPI_Lookup_name("me", MPI_INFO_NULL, port) == MPI_ERR_NAME);
    MPI_Comm_get_parent(&inter);
    CHECK(inter == MPI_COMM_NULL);
    edge();
  }
  MPI_Comm_free(&mine);
  MPI_Finalize();
  printf("ok dynamic\n");
  return 0;
}
