/* What the program has changed and MPI's next session reads or resets: the environment that the program has cleared,
 * MPI_INFO_ENV, the names of predefined datatypes. */
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

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  char before[1024], now[1024];
  read_working_directory(before, sizeof before);
  CHECK(chdir("/") == 0);
  clearenv();
  setenv("OWN", "value", 1);

  MPI_Type_set_name(MPI_INT, "number");
  MPI_Type_set_name(MPI_DOUBLE_INT, "place");
  for (int s = 0; going_on(s, n); ++s) {
    has_name(MPI_INT, "number");
    has_name(MPI_DOUBLE_INT, "place");
    has_name(MPI_FLOAT, "MPI_FLOAT");
    read_working_directory(now, sizeof now);
    CHECK(strcmp(now, before) == 0);
    CHECK(getenv("PATH") == NULL && strcmp(getenv("OWN"), "value") == 0);
    edge();
  }
  MPI_Finalize();
  printf("ok surroundings\n");
  return 0;
}
