/* Files. */
#include "fixtures.h"

static int file_errors = 0;
static void on_file_error(MPI_File* file, int* code, ...) { (void)file, (void)code, ++file_errors; }

/* In io/romio341 of Open MPI 5.0.7 nonblocking collectives crash, even without the shim. */
static int with_romio(void) {
  const char* io = getenv("OMPI_MCA_io");
  return io != NULL && strncmp(io, "romio", 5) == 0;
}

static void file_as_object(MPI_File file) {
  MPI_Errhandler handler;
  MPI_Info info;
  MPI_Group all;
  MPI_Aint extent;
  MPI_Offset offset;
  MPI_Datatype element, view;
  MPI_File_create_errhandler(on_file_error, &handler);
  MPI_File_set_errhandler(file, handler);
  MPI_Errhandler_free(&handler);
  MPI_File_get_errhandler(file, &handler);
  MPI_Errhandler_free(&handler);
  MPI_File_call_errhandler(file, MPI_ERR_OTHER);
  CHECK(file_errors == 1);
  file_errors = 0;
  MPI_File_set_errhandler(file, MPI_ERRORS_ARE_FATAL);
  CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);
  MPI_File_get_info(file, &info);
  MPI_File_set_info(file, info);
  MPI_Info_free(&info);
  MPI_File_get_group(file, &all);
  MPI_Group_free(&all);
  MPI_File_get_amode(file, &number);
  MPI_File_set_size(file, 4096);
  MPI_File_preallocate(file, 8192);
  MPI_File_get_size(file, &offset);
  CHECK(offset == 8192);
  MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_File_get_view(file, &offset, &element, &view, text);
  if (element != MPI_INT) MPI_Type_free(&element);
  if (view != MPI_INT) MPI_Type_free(&view);
  MPI_File_get_type_extent(file, MPI_INT, &extent);
  CHECK(extent == 4);
  MPI_File_set_atomicity(file, 0);
  MPI_File_get_atomicity(file, &flag);
  MPI_File_sync(file);
}

static void explicit_offsets(MPI_File file) {
  given[0] = 100 + rank;
  MPI_File_write_at(file, rank, given, 1, MPI_INT, &status);
  MPI_File_read_at(file, rank, taken, 1, MPI_INT, &status);
  CHECK(taken[0] == given[0]);
  MPI_File_write_at_all(file, rank, given, 1, MPI_INT, &status);
  MPI_File_read_at_all(file, rank, taken, 1, MPI_INT, &status);
  MPI_File_iwrite_at(file, rank, given, 1, MPI_INT, &request), finish(&request, 0);
  MPI_File_iread_at(file, rank, taken, 1, MPI_INT, &request), finish(&request, 0);
  if (!with_romio()) {
    MPI_File_iwrite_at_all(file, rank, given, 1, MPI_INT, &request), finish(&request, 0);
    MPI_File_iread_at_all(file, rank, taken, 1, MPI_INT, &request), finish(&request, 0);
  }
  MPI_File_write_at_all_begin(file, rank, given, 1, MPI_INT);
  MPI_File_write_at_all_end(file, given, &status);
  MPI_File_read_at_all_begin(file, rank, taken, 1, MPI_INT);
  MPI_File_read_at_all_end(file, taken, &status);
  CHECK(taken[0] == given[0]);
}

static void own_pointers(MPI_File file) {
  MPI_Offset offset, bytes;
#define REWIND() MPI_File_seek(file, 16 * rank, MPI_SEEK_SET)
  REWIND(), MPI_File_write(file, given, 1, MPI_INT, &status);
  MPI_File_get_position(file, &offset);
  MPI_File_get_byte_offset(file, offset, &bytes);
  CHECK(offset == 16 * rank + 1 && bytes == 4 * offset);
  REWIND(), MPI_File_read(file, taken, 1, MPI_INT, &status);
  REWIND(), MPI_File_write_all(file, given, 1, MPI_INT, &status);
  REWIND(), MPI_File_read_all(file, taken, 1, MPI_INT, &status);
  REWIND(), MPI_File_iwrite(file, given, 1, MPI_INT, &request), finish(&request, 0);
  REWIND(), MPI_File_iread(file, taken, 1, MPI_INT, &request), finish(&request, 0);
  if (!with_romio()) {
    REWIND(), MPI_File_iwrite_all(file, given, 1, MPI_INT, &request), finish(&request, 0);
    REWIND(), MPI_File_iread_all(file, taken, 1, MPI_INT, &request), finish(&request, 0);
  }
  REWIND(), MPI_File_write_all_begin(file, given, 1, MPI_INT), MPI_File_write_all_end(file, given, &status);
  REWIND(), MPI_File_read_all_begin(file, taken, 1, MPI_INT), MPI_File_read_all_end(file, taken, &status);
  CHECK(taken[0] == given[0]);
#undef REWIND
}

static void shared_pointer(MPI_File file) {
  MPI_Offset offset;
#define REWIND() MPI_Barrier(MPI_COMM_WORLD), MPI_File_seek_shared(file, 0, MPI_SEEK_SET)
  REWIND(), MPI_File_write_shared(file, given, 1, MPI_INT, &status);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_get_position_shared(file, &offset);
  CHECK(offset == size);
  REWIND(), MPI_File_read_shared(file, taken, 1, MPI_INT, &status);
  REWIND(), MPI_File_iwrite_shared(file, given, 1, MPI_INT, &request), finish(&request, 0);
  REWIND(), MPI_File_iread_shared(file, taken, 1, MPI_INT, &request), finish(&request, 0);
  REWIND(), MPI_File_write_ordered(file, given, 1, MPI_INT, &status);
  REWIND(), MPI_File_read_ordered(file, taken, 1, MPI_INT, &status);
  CHECK(taken[0] == given[0]);
  REWIND(), MPI_File_write_ordered_begin(file, given, 1, MPI_INT), MPI_File_write_ordered_end(file, given, &status);
  REWIND(), MPI_File_read_ordered_begin(file, taken, 1, MPI_INT), MPI_File_read_ordered_end(file, taken, &status);
#undef REWIND
}

static void files(void) {
  MPI_File file;
  char path[64];
  int pid = (int)getpid();
  MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
  snprintf(path, sizeof path, "/tmp/every-procedure-%d", pid);
  MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
  file_as_object(file);
  explicit_offsets(file);
  own_pointers(file);
  shared_pointer(file);
  MPI_File_close(&file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_delete(path, MPI_INFO_NULL); /* one does; the others get an error back, as is usual with files */
  MPI_Barrier(MPI_COMM_WORLD);
}
