/* files SUPERSTEPS DIRECTORY [leave]: MPI files of every kind that stay open over all supersteps, or until
 * MPI_Finalize. What it writes to the directory depends on the number of supersteps and ranks alone. */
#include <sys/stat.h>

#include "check.h"

enum { kBlock = 2, kMany = 100, kPart = 3 };

static int rank, size;
static const char* directory;

static const char* in_directory(const char* format, int number, int index) {
  static char path[512];
  const int used = snprintf(path, sizeof path, "%s/", directory);
  snprintf(path + used, sizeof path - (size_t)used, format, number, index);
  return path;
}

static MPI_File open_file(MPI_Comm comm, const char* path, int amode, MPI_Info info) {
  MPI_File file = MPI_FILE_NULL;
  CHECK(MPI_File_open(comm, path, amode, info, &file) == MPI_SUCCESS && file != MPI_FILE_NULL);
  int now = -1;
  CHECK(MPI_File_get_amode(file, &now) == MPI_SUCCESS && now == amode);
  return file;
}

static MPI_Offset position(MPI_File file) {
  MPI_Offset at = -1;
  CHECK(MPI_File_get_position(file, &at) == MPI_SUCCESS);
  return at;
}

static MPI_Offset shared_position(MPI_File file) {
  MPI_Offset at = -1;
  CHECK(MPI_File_get_position_shared(file, &at) == MPI_SUCCESS);
  return at;
}

/* It never tells where a file of MPI_MODE_SEQUENTIAL is, so such a file postpones every gate. */
static int with_romio(void) {
  const char* io = getenv("OMPI_MCA_io");
  return io != NULL && strncmp(io, "romio", 5) == 0;
}

static int value(int s, int of_rank, int i) { return s * 1009 + of_rank * 101 + i; }

/* --- A view of interleaved blocks, on a communicator and of datatypes that don't last ------------------------ */

static int errors = 0;
static MPI_File erroneous = MPI_FILE_NULL;
static void on_error(MPI_File* file, int* code, ...) {
  (void)code;
  erroneous = *file;
  ++errors;
}

static MPI_File open_interleaved(void) {
  MPI_Comm comm;
  MPI_Info hints;
  MPI_Datatype blocks, each;
  MPI_Errhandler handler;
  MPI_Info_create(&hints);
  MPI_Info_set(hints, "cb_buffer_size", "65536");
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const int amode = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR;
  MPI_File file = open_file(comm, in_directory("interleaved", 0, 0), amode, hints);
  MPI_Comm_free(&comm);
  MPI_Info_free(&hints);
  MPI_Type_vector(1, kBlock, kBlock, MPI_INT, &blocks);
  MPI_Type_create_resized(blocks, 0, (MPI_Aint)(kBlock * size * (int)sizeof(int)), &each);
  MPI_Type_commit(&each);
  const MPI_Offset first = 16 + rank * kBlock * (int)sizeof(int);
  CHECK(MPI_File_set_view(file, first, MPI_INT, each, "native", MPI_INFO_NULL) == MPI_SUCCESS);
  MPI_Type_free(&blocks);
  MPI_Type_free(&each);
  MPI_File_create_errhandler(on_error, &handler);
  MPI_File_set_errhandler(file, handler);
  MPI_Errhandler_free(&handler);
  return file;
}

static void interleave(MPI_File file, int s) {
  int out[kPart], in[kPart];
  for (int i = 0; i < kPart; ++i) out[i] = value(s, rank, i);
  MPI_Status status;
  int count = -1;
  CHECK(position(file) == (MPI_Offset)s * kPart);
  CHECK(MPI_File_write_all(file, out, kPart, MPI_INT, &status) == MPI_SUCCESS);
  MPI_Get_count(&status, MPI_INT, &count);
  CHECK(count == kPart);
  const int earlier = s / 2; /* fcoll/vulcan may still be writing what is new */
  if (earlier < s) {
    CHECK(MPI_File_read_at(file, (MPI_Offset)earlier * kPart, in, kPart, MPI_INT, &status) == MPI_SUCCESS);
    for (int i = 0; i < kPart; ++i) CHECK(in[i] == value(earlier, rank, i));
  }
  CHECK(position(file) == (MPI_Offset)(s + 1) * kPart);
}

static void has_interleaved_view(MPI_File file) {
  MPI_Offset displacement = -1;
  MPI_Datatype etype, filetype;
  MPI_Aint lower = -1, extent = -1;
  int bytes = -1;
  char how[MPI_MAX_DATAREP_STRING];
  CHECK(MPI_File_get_view(file, &displacement, &etype, &filetype, how) == MPI_SUCCESS);
  CHECK(displacement == 16 + rank * kBlock * (int)sizeof(int) && etype == MPI_INT && !strcmp(how, "native"));
  MPI_Type_get_extent(filetype, &lower, &extent);
  MPI_Type_size(filetype, &bytes);
  CHECK(lower == 0 && extent == (MPI_Aint)(kBlock * size) * (int)sizeof(int) && bytes == kBlock * (int)sizeof(int));
  MPI_Type_free(&filetype);
}

static void has_hint_and_group(MPI_File file, char* hint_before) {
  MPI_Info info;
  char hint[32] = "";
  int flag = 0;
  MPI_File_get_info(file, &info);
  MPI_Info_get(info, "cb_buffer_size", sizeof hint - 1, hint, &flag);
  MPI_Info_free(&info);
  if (*hint_before == '\0') strcpy(hint_before, hint); /* ROMIO doesn't report what the program asked for */
  CHECK(flag && !strcmp(hint, hint_before));
  MPI_Group group, all;
  MPI_File_get_group(file, &group);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_compare(group, all, &flag);
  CHECK(flag == MPI_IDENT);
  MPI_Group_free(&group);
  MPI_Group_free(&all);
}

/* --- Error handlers: of a file, and of MPI_FILE_NULL, which new files inherit -------------------------------- */

static void errors_reach_handlers(MPI_File handled, MPI_File readonly) {
  errors = 0;
  MPI_File_call_errhandler(handled, MPI_ERR_IO);
  CHECK(errors == 1 && erroneous == handled);
  MPI_File none = readonly;
  int class = -1;
  const int code = MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &none);
  MPI_Error_class(code, &class);
  CHECK(class == MPI_ERR_NO_SUCH_FILE && none == MPI_FILE_NULL && errors == 2 && erroneous == MPI_FILE_NULL);
  MPI_File inherits = open_file(MPI_COMM_SELF, in_directory("input", 0, 0), MPI_MODE_RDONLY, MPI_INFO_NULL);
  MPI_File_call_errhandler(inherits, MPI_ERR_IO);
  CHECK(errors == 3 && erroneous == inherits);
  MPI_File_close(&inherits);
  CHECK(inherits == MPI_FILE_NULL);
  /* The default is MPI_ERRORS_RETURN. */
  CHECK(MPI_File_write(readonly, &class, 1, MPI_INT, MPI_STATUS_IGNORE) != MPI_SUCCESS && errors == 3);
}

/* --- Pointers that all ranks share --------------------------------------------------------------------------- */

static void expect_shared_position(MPI_File file, MPI_Offset expected) {
  int here = shared_position(file) == expected, everywhere = 0;
  MPI_Allreduce(&here, &everywhere, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  CHECK(everywhere);
}

static void share(MPI_File file, int s) {
  MPI_Status status;
  expect_shared_position(file, (MPI_Offset)s * 2 * size);
  int out = value(s, 0, 7), done = 0;
  CHECK(MPI_File_write_shared(file, &out, 1, MPI_INT, &status) == MPI_SUCCESS); /* equal on all ranks */
  MPI_Allreduce(&out, &done, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  out = value(s, rank, 8);
  CHECK(MPI_File_write_ordered(file, &out, 1, MPI_INT, &status) == MPI_SUCCESS);
}

/* --- Files opened at their end, whose shared pointer is first used after the last superstep ------------------- */

typedef struct {
  MPI_File plain; /* its communicator's first rank isn't the world's; the end of the file moves, the pointer doesn't */
  MPI_File viewed;
  MPI_File sequence; /* MPI_FILE_NULL with ROMIO */
} Late;

static MPI_File open_late(MPI_Comm comm, const char* name, int more) {
  if (rank == 0) {
    FILE* before = fopen(in_directory(name, 0, 0), "w");
    for (int i = 0; i < 25; ++i) fputs("what is there before", before);
    fclose(before);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return open_file(comm, in_directory(name, 0, 0), MPI_MODE_WRONLY | MPI_MODE_APPEND | more, MPI_INFO_NULL);
}

static Late open_all_late(void) {
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &reversed);
  Late late = {open_late(reversed, "late", 0), open_late(MPI_COMM_WORLD, "late-viewed", 0), MPI_FILE_NULL};
  MPI_Comm_free(&reversed);
  MPI_File_set_view(late.viewed, 4, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  if (!with_romio()) late.sequence = open_late(MPI_COMM_WORLD, "late-sequence", MPI_MODE_SEQUENTIAL);
  if (rank == 0) MPI_File_write_at(late.plain, 900, "end", 3, MPI_CHAR, MPI_STATUS_IGNORE);
  CHECK(position(late.plain) == 500 && position(late.viewed) == 0);
  return late;
}

static void use_late(const Late* late) {
  const int own = value(1, rank, 1);
  MPI_File_write_ordered(late->plain, &own, 1, MPI_INT, MPI_STATUS_IGNORE);
  expect_shared_position(late->plain, 500 + size * (int)sizeof own);
  MPI_File_write_ordered(late->viewed, &own, 1, MPI_INT, MPI_STATUS_IGNORE);
  expect_shared_position(late->viewed, size);
  if (late->sequence != MPI_FILE_NULL) MPI_File_write_ordered(late->sequence, &own, 1, MPI_INT, MPI_STATUS_IGNORE);
}

/* --- Many files, and files that come and go -------------------------------------------------------------------- */

static MPI_File many[kMany];

static void open_many(void) {
  for (int i = 0; i < kMany; ++i) {
    const char* path = in_directory("many-%d-%d", rank, i);
    many[i] = open_file(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
    MPI_File_seek(many[i], i, MPI_SEEK_SET);
  }
}

static void use_one_of_many(int s) {
  const int i = s % kMany;
  const char byte = (char)s;
  CHECK(position(many[i]) == i + s / kMany);
  MPI_File_write(many[i], &byte, 1, MPI_CHAR, MPI_STATUS_IGNORE);
}

static void come_and_go(int s) {
  const int amode = MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE;
  MPI_File brief = open_file(MPI_COMM_WORLD, in_directory("brief-%d", s % 2, 0), amode, MPI_INFO_NULL);
  int out = value(s, rank, 0), in = -1;
  MPI_File_write_at_all(brief, rank * (int)sizeof out, &out, 1, MPI_INT, MPI_STATUS_IGNORE);
  MPI_File_read_at_all(brief, rank * (int)sizeof out, &in, 1, MPI_INT, MPI_STATUS_IGNORE);
  CHECK(in == out);
  MPI_File_close(&brief);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(access(in_directory("brief-%d", s % 2, 0), F_OK) != 0);
}

static int end(int s) {
  MPI_Finalize();
  printf("ok files %d\n", s);
  return 0;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n = supersteps(argc, argv);
  CHECK(argc > 2);
  directory = argv[2];
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  if (rank == 0) { /* what is there before */
    FILE* input = fopen(in_directory("input", 0, 0), "w");
    for (int i = 0; i < 4096; ++i) fputc(i * 7 & 0xff, input);
    fclose(input);
  }
  FILE* header = fopen(in_directory("appended-%d", rank, 0), "w");
  fputs("header", header);
  fclose(header);
  MPI_Barrier(MPI_COMM_WORLD);

  MPI_File interleaved = open_interleaved();
  MPI_File readonly = open_file(MPI_COMM_WORLD, in_directory("input", 0, 0), MPI_MODE_RDONLY, MPI_INFO_NULL);
  MPI_File again = open_file(MPI_COMM_WORLD, in_directory("input", 0, 0), MPI_MODE_RDONLY, MPI_INFO_NULL);
  MPI_File_seek(again, 1000, MPI_SEEK_SET);
  MPI_File appended =
      open_file(MPI_COMM_SELF, in_directory("appended-%d", rank, 0), MPI_MODE_WRONLY | MPI_MODE_APPEND, MPI_INFO_NULL);
  CHECK(position(appended) == 6);
  MPI_File shared =
      open_file(MPI_COMM_WORLD, in_directory("shared", 0, 0), MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
  MPI_File_set_view(shared, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  CHECK(chdir(directory) == 0);
  MPI_File portable = open_file(MPI_COMM_WORLD, "portable", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL);
  CHECK(chdir("/") == 0); /* where the name leads nowhere */
  MPI_File_set_view(portable, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL);
  CHECK(MPI_File_set_atomicity(portable, 1) == MPI_SUCCESS);
  MPI_File passing = open_file(MPI_COMM_WORLD, in_directory("passing", 0, 0),
                               MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL);
  MPI_File sequence = MPI_FILE_NULL;
  if (!with_romio())
    sequence = open_file(MPI_COMM_WORLD, in_directory("sequence", 0, 0),
                         MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL, MPI_INFO_NULL);
  MPI_File sink = open_file(MPI_COMM_SELF, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL);
  Late late_used = open_all_late();
  open_many();
  MPI_Errhandler of_null;
  MPI_File_create_errhandler(on_error, &of_null);
  MPI_File_set_errhandler(MPI_FILE_NULL, of_null);
  MPI_Errhandler_free(&of_null);
  const MPI_Fint number = MPI_File_c2f(interleaved);

  MPI_Request request = MPI_REQUEST_NULL;
  char hint[32] = "";
  int late = -1, s = 0;
  for (; going_on(s, n); ++s) {
    CHECK(MPI_File_f2c(number) == interleaved && MPI_File_c2f(interleaved) == number);
    interleave(interleaved, s);
    has_interleaved_view(interleaved);
    has_hint_and_group(interleaved, hint);
    errors_reach_handlers(interleaved, readonly);

    unsigned char byte = 0;
    CHECK(position(readonly) == s % 4096 && position(again) == 1000 - s % 1000);
    MPI_File_read(readonly, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    CHECK(byte == (s % 4096 * 7 & 0xff));
    if (s % 4096 == 4095) MPI_File_seek(readonly, 0, MPI_SEEK_SET);
    MPI_File_seek(again, s % 1000 == 999 ? 999 : -1, MPI_SEEK_CUR);

    byte = (unsigned char)s;
    CHECK(position(appended) == 6 + s);
    MPI_File_write(appended, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE);
    share(shared, s);
    if (sequence != MPI_FILE_NULL) MPI_File_write_ordered(sequence, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);

    int out = value(s, rank, 0), in = -1, atomic = -1;
    MPI_File_get_atomicity(portable, &atomic);
    CHECK(atomic == 1);
    MPI_File_write_at(portable, (MPI_Offset)s * size + rank, &out, 1, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at(portable, (MPI_Offset)s * size + rank, &in, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(in == out);
    const MPI_Offset place = (MPI_Offset)((s % 16 * size + rank) * (int)sizeof out);
    MPI_File_write_at(passing, place, &out, 1, MPI_INT, MPI_STATUS_IGNORE);
    CHECK(access(in_directory("passing", 0, 0), F_OK) == 0);
    CHECK(MPI_File_write(sink, &out, 1, MPI_INT, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    use_one_of_many(s);
    if (s % 5 == 0) come_and_go(s);

    /* Started before the edge, seen to have completed after it. */
    MPI_Status status;
    int count = -1;
    MPI_File_iread_at(passing, place, &late, 1, MPI_INT, &request);
    edge();
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(late == out && count == 1 && request == MPI_REQUEST_NULL);
  }
  use_late(&late_used);
  if (argc > 3) return end(s);
  MPI_File* open[] = {&interleaved, &readonly, &again, &appended,        &shared,
                      &portable,    &passing,  &sink,  &late_used.plain, &late_used.viewed};
  for (size_t i = 0; i < sizeof open / sizeof *open; ++i)
    CHECK(MPI_File_close(open[i]) == MPI_SUCCESS && *open[i] == MPI_FILE_NULL);
  if (sequence != MPI_FILE_NULL) MPI_File_close(&sequence);
  if (late_used.sequence != MPI_FILE_NULL) MPI_File_close(&late_used.sequence);
  for (int i = 0; i < kMany; ++i) CHECK(MPI_File_close(&many[i]) == MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(access(in_directory("passing", 0, 0), F_OK) != 0);
  return end(s);
}
