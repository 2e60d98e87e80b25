/* What the program has changed and MPI's next session reads or resets: the environment that the program has cleared,
 * MPI_INFO_ENV, the names of predefined datatypes, the standard input that it has closed. And the signal that continues the program after a stop, which it has a
 * handler for and blocks now and then. */
#include <fcntl.h>

#include "check.h"

static void has_name(MPI_Datatype type, const char* wanted) {
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  MPI_Type_get_name(type, name, &length);
  CHECK(strcmp(name, wanted) == 0);
}

static void read_working_directory(char* text, int length) {
  int found = 0;
  text[0] = '\0';
  MPI_Info_get_string(MPI_INFO_ENV, "wdir", &length, text, &found);
}

static volatile sig_atomic_t continued = 0;
static void on_continue(int number) { continued += number == SIGCONT; }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  char before[1024], now[1024];
  read_working_directory(before, sizeof before);
  CHECK(chdir("/") == 0);
  clearenv();
  close(0);
  setenv("OWN", "value", 1);

  struct sigaction counting = {.sa_handler = on_continue, .sa_flags = SA_RESTART}, found;
  sigset_t of_continue;
  sigemptyset(&of_continue);
  sigaddset(&of_continue, SIGCONT);
  sigaction(SIGCONT, &counting, NULL);

  MPI_Type_set_name(MPI_INT, "number");
  MPI_Type_set_name(MPI_DOUBLE_INT, "place");
  for (int s = 0; going_on(s, n); ++s) {
    has_name(MPI_INT, "number");
    has_name(MPI_DOUBLE_INT, "place");
    has_name(MPI_FLOAT, "MPI_FLOAT");
    read_working_directory(now, sizeof now);
    CHECK(strcmp(now, before) == 0);
    CHECK(getenv("PATH") == NULL && strcmp(getenv("OWN"), "value") == 0);
    sigprocmask(s % 4 < 2 ? SIG_BLOCK : SIG_UNBLOCK, &of_continue, NULL);
    edge();
    CHECK(continued == 0);
    CHECK(open("/dev/null", O_RDONLY) == 0 && close(0) == 0);
    CHECK(sigaction(SIGCONT, NULL, &found) == 0 && found.sa_handler == on_continue && found.sa_flags & SA_RESTART);
  }
  sigprocmask(SIG_UNBLOCK, &of_continue, NULL);
  kill(getpid(), SIGCONT);
  CHECK(continued == 1);
  MPI_Finalize();
  printf("ok surroundings\n");
  return 0;
}
