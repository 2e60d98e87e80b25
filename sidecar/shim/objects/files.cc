// The calls that open and close files, and what the generated ones note about them.
#include "sidecar/shim/objects/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/objects/recipes.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

// Without what a name for ROMIO may begin with: the kind of file system, as in "nfs:/data".
std::string without_kind(const std::string& name) {
  struct stat info{};
  const auto colon = name.find(':');
  const bool has_kind = colon != std::string::npos && colon < name.find('/') && ::stat(name.c_str(), &info) != 0;
  return has_kind ? name.substr(colon + 1) : name;
}

void keep(MPI_Datatype& kept, MPI_Datatype type) {
  if (Datatype* object = object_of<Datatype>(type)) ++object->references;
  if (Datatype* before = object_of<Datatype>(std::exchange(kept, type))) release(before);
}

bool is_to_be_deleted(const File& file) { return state.epochs && (file.amode & MPI_MODE_DELETE_ON_CLOSE) != 0; }

// MPI_MODE_APPEND moves all of the file's pointers. Its first rank notes where the shared one is until somebody uses it,
// as its own pointer tells; where MPI can't tell the shared one it can't put it back either, or somebody has already moved
// it. In MPI_MODE_SEQUENTIAL there is no pointer of its own.
void note_end(File& file) {
  if ((file.amode & MPI_MODE_APPEND) == 0 || (file.amode & MPI_MODE_SEQUENTIAL) != 0) return;
  if (file.peers->world.front() != state.rank) return;
  if (real.File_get_position(file.real, &file.appended_at) != MPI_SUCCESS ||
      told_shared_position(file) != file.appended_at)
    file.appended_at = -1;
}

// Fills in the virtual file of MPI's new one.
void describe(File& file, const char* name, int amode, MPI_Info info, MPI_Comm comm) {
  file.name = name;
  file.amode = amode;
  std::error_code failed;
  file.path = std::filesystem::absolute(without_kind(file.name), failed).string();
  note_identity(file);
  if (info != pre.info_null) file.hints = read_info(to_real(info));
  if (const Comm* members = comm_of(comm); members != nullptr && state.epochs) {
    file.peers = members->peers;
    file.id = agree_on_id(*members, file.seq);
    note_end(file);
  }
}

// Frees the virtual file and what belongs to it.
int close_for_good(File* file) {
  const std::string path = is_to_be_deleted(*file) ? file->path : "";
  MPI_Comm own = file->comm;
  MPI_Datatype types[] = {file->etype, file->filetype};
  if (const int rc = files.free(file, real.File_close); rc != MPI_SUCCESS) return rc;
  for (MPI_Datatype& type : types) keep(type, nullptr);
  if (own != nullptr) real.Comm_free(&own);
  // Every rank does so, as it may have a file of its own under this name. Open MPI doesn't report errors of this either.
  if (!path.empty()) ::unlink(path.c_str());
  return MPI_SUCCESS;
}

}  // namespace

void close_files_left_open() {
  std::int64_t share = share_of_files();
  if (real.Allreduce(MPI_IN_PLACE, &share, 1, pre.int64, pre.sum, private_world) != MPI_SUCCESS || share != 0) return;
  for (File* file : in_order(files)) close_for_good(file);
}

void note_identity(File& file) {
  struct stat info{};
  file.identity = {};
  if (::stat(file.path.c_str(), &info) == 0) file.identity = {info.st_dev, info.st_ino};
}

void note_view(MPI_File handle, MPI_Datatype etype, MPI_Datatype filetype) {
  File* file = object_of<File>(handle);
  if (file == nullptr) return;
  keep(file->etype, etype);
  keep(file->filetype, filetype);
  file->pointer_lost = false;  // it begins anew
}

void note_committed(MPI_Datatype copy) {
  if (Datatype* type = object_of<Datatype>(copy)) type->committed = true;
}

void note_shared_pointer(MPI_File handle) {
  if (File* file = object_of<File>(handle)) file->shared_pointer.store(true, std::memory_order_relaxed);
}

void before_shared_pointer(MPI_File handle) {
  if (const File* file = object_of<File>(handle)) require_shared_pointer(*file);
}

void note_started(MPI_File handle) {
  if (File* file = object_of<File>(handle)) file->started.fetch_add(1, std::memory_order_relaxed);
}

void note_split(MPI_File handle, const char* call) {
  if (File* file = object_of<File>(handle)) file->split.store(call, std::memory_order_relaxed);
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this file speaks MPI

extern "C" {

int MPI_File_open(MPI_Comm comm, const char* filename, int amode, MPI_Info info, MPI_File* fh) {
  Call call;
  // A close at a gate must not remove the file.
  const int real_amode = state.epochs ? amode & ~MPI_MODE_DELETE_ON_CLOSE : amode;
  const int rc = real.File_open(to_real(comm), filename, real_amode, to_real(info), fh);
  if (rc != MPI_SUCCESS) return rc;
  File* file = files.create(*fh);
  describe(*file, filename, amode, info, comm);
  *fh = reinterpret_cast<MPI_File>(file);
  return rc;
}

int MPI_File_close(MPI_File* fh) {
  Call call;
  File* file = fh != nullptr ? object_of<File>(*fh) : nullptr;
  if (file == nullptr) return real.File_close(fh);
  const int rc = close_for_good(file);
  if (rc == MPI_SUCCESS) *fh = pre.file_null;
  return rc;
}

int MPI_File_sync(MPI_File fh) {
  Call call;
  const int rc = real.File_sync(to_real(fh));
  File* file = object_of<File>(fh);
  if (file == nullptr) return rc;
  const int before = file->unsaved.exchange(MPI_SUCCESS);
  if (rc != MPI_SUCCESS || before == MPI_SUCCESS) return rc;
  real.File_call_errhandler(file->real, before);
  return before;
}

int MPI_File_get_amode(MPI_File fh, int* amode) {
  Call call;
  const File* file = object_of<File>(fh);
  if (file == nullptr || amode == nullptr) return real.File_get_amode(to_real(fh), amode);
  *amode = file->amode;
  return MPI_SUCCESS;
}

}  // extern "C"
