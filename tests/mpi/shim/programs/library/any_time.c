/* Calls that MPI 4 allows at any time: before MPI is opened, while it is open, across epochs, and after it was closed. */
#include "check.h"

static int errors_seen = 0;
static void on_error(MPI_Session* session, int* code, ...) { (void)session, (void)code, ++errors_seen; }

static void expect_text(MPI_Info info, const char* key, const char* wanted) {
  char text[64] = "";
  int length = sizeof text, flag = 0;
  MPI_Info_get_string(info, key, &length, text, &flag);
  CHECK(flag && strcmp(text, wanted) == 0);
}

/* All calls on infos. */
static void infos(void) {
  MPI_Info info, copy;
  char key[MPI_MAX_INFO_KEY];
  int count = -1, length = 0, flag = 0;
  CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
  MPI_Info_set(info, "colour", "blue");
  MPI_Info_dup(info, &copy);
  MPI_Info_delete(info, "colour");
  MPI_Info_get_nkeys(info, &count);
  CHECK(count == 0);
  MPI_Info_get_nkeys(copy, &count);
  MPI_Info_get_nthkey(copy, 0, key);
  MPI_Info_get_valuelen(copy, "colour", &length, &flag);
  CHECK(count == 1 && strcmp(key, "colour") == 0 && flag && length == 4);
  expect_text(copy, "colour", "blue");
  CHECK(MPI_Info_f2c(MPI_Info_c2f(copy)) == copy);
  MPI_Info_free(&info);
  MPI_Info_free(&copy);
  CHECK(copy == MPI_INFO_NULL);
}

static void errors(void) {
  char text[MPI_MAX_ERROR_STRING];
  int length, class = -1;
  MPI_Error_class(MPI_ERR_RANK, &class);
  CHECK(class == MPI_ERR_RANK && MPI_Error_string(MPI_ERR_RANK, text, &length) == MPI_SUCCESS && length > 0);
  MPI_Errhandler handler;
  MPI_Session_create_errhandler(on_error, &handler);
  CHECK(MPI_Errhandler_f2c(MPI_Errhandler_c2f(handler)) == handler);
  MPI_Errhandler_free(&handler);
}

static void versions(void) {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int major, minor, length;
  MPI_Get_version(&major, &minor);
  MPI_Get_library_version(text, &length);
  CHECK(major >= 3 && length > 0);
}

int main(int argc, char** argv) {
  MPI_Info kept[100];
  MPI_Errhandler kept_handler;
  int flag = -1;
  MPI_Initialized(&flag);
  CHECK(!flag);
  for (int i = 0; i < 100; ++i) MPI_Info_create(&kept[i]), MPI_Info_set(kept[i], "made", "before");
  MPI_Session_create_errhandler(on_error, &kept_handler);
  infos(), errors(), versions();
  int class_added, code_added;
  MPI_Add_error_class(&class_added);
  MPI_Add_error_code(class_added, &code_added);
  MPI_Add_error_string(code_added, "early");

  MPI_Init(&argc, &argv);
  for (int s = 0, n = supersteps(argc, argv); going_on(s, n); ++s) {
    infos(), errors(), versions();
    char text[MPI_MAX_ERROR_STRING];
    int length, class = -1;
    MPI_Error_string(code_added, text, &length);
    MPI_Error_class(code_added, &class);
    CHECK(strcmp(text, "early") == 0 && class == class_added);
    for (int i = 0; i < 100; ++i) expect_text(kept[i], "made", "before");
    edge();
  }
  for (int i = 0; i < 100; ++i) MPI_Info_set(kept[i], "changed", "while it was open");
  MPI_Finalize();

  MPI_Finalized(&flag);
  CHECK(flag);
  for (int i = 0; i < 100; ++i) {
    expect_text(kept[i], "made", "before");
    expect_text(kept[i], "changed", "while it was open");
    MPI_Info_free(&kept[i]);
  }
  MPI_Errhandler_free(&kept_handler);
  infos(), errors(), versions();
  printf("ok any_time\n");
  return 0;
}
