// Files: how each is closed at a gate and opened again in the next epoch.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>

#include "sidecar/shim/objects/files.h"
#include "sidecar/shim/objects/recipes.h"
#include "sidecar/shim/process/descriptors.h"
#include "sidecar/shim/process/leftovers.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/proc_files.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

// New files inherit it (MPI 4.1, 14.7). Kept while no epoch is open.
MPI_Errhandler handler_of_file_null = nullptr;

bool is_opened_for(const File& file, int mode) { return (file.amode & mode) != 0; }

// The program's error handler of a file is MPI_ERRORS_RETURN while this exists: what the gate does isn't the program's.
class OwnCalls {
 public:
  explicit OwnCalls(MPI_File file) : file_(file) {
    real.File_get_errhandler(file_, &handler_);
    real.File_set_errhandler(file_, pre.errors_return);
  }
  ~OwnCalls() {
    real.File_set_errhandler(file_, handler_);
    real.Errhandler_free(&handler_);
  }
  OwnCalls(const OwnCalls&) = delete;
  OwnCalls& operator=(const OwnCalls&) = delete;

 private:
  MPI_File file_;
  MPI_Errhandler handler_ = nullptr;
};

// Whether the shared pointer may be elsewhere than where MPI puts it when the file is opened again, or than note_end()
// has noted. In MPI_MODE_SEQUENTIAL there is no other pointer to know its place by, and a view may begin where it was.
bool has_moved_shared_pointer(const File& file) {
  if (is_opened_for(file, MPI_MODE_SEQUENTIAL) && (is_opened_for(file, MPI_MODE_APPEND) || file.etype != nullptr))
    return true;
  return file.shared_pointer;
}

// Asks once: MPI prints a message if it can't tell.
bool is_untold(File& file) {
  if (file.untold || !has_moved_shared_pointer(file)) return file.untold;
  return file.untold = told_shared_position(file) < 0;
}

// MPI has made it for MPI_File_get_view.
void free_copy(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = MPI_COMBINER_NAMED;
  real.Type_get_envelope(type, &integers, &addresses, &types, &combiner);
  if (combiner != MPI_COMBINER_NAMED && !is_f90(combiner)) real.Type_free(&type);
}

void read_view(const File& file, FileRecipe& recipe) {
  char representation[MPI_MAX_DATAREP_STRING + 1] = "";
  MPI_Datatype etype = nullptr;
  MPI_Datatype filetype = nullptr;
  must(real.File_get_view(file.real, &recipe.displacement, &etype, &filetype, representation), "saving a file's view");
  free_copy(etype);
  free_copy(filetype);
  recipe.representation = representation;
}

MPI_Errhandler take_handler(MPI_File file) {
  MPI_Errhandler handler = nullptr;
  real.File_get_errhandler(file, &handler);
  real.File_set_errhandler(file, pre.errors_return);
  return keep_errhandler(handler);
}

std::unique_ptr<FileRecipe> read_file(const File& file) {
  auto recipe = std::make_unique<FileRecipe>();
  recipe->errhandler = take_handler(file.real);
  if (file.etype != nullptr) read_view(file, *recipe);
  // In MPI_MODE_SEQUENTIAL there is none.
  if (real.File_get_position(file.real, &recipe->position) != MPI_SUCCESS) recipe->position = -1;
  if (has_moved_shared_pointer(file))
    recipe->shared_position = told_shared_position(file);
  else if (file.etype == nullptr)  // a view moves it to its beginning
    recipe->shared_position = file.appended_at;
  int atomic = 0;
  real.File_get_atomicity(file.real, &atomic);
  recipe->atomic = atomic != 0;
  recipe->hints = current_hints(file.hints, file.real, real.File_get_info);
  return recipe;
}

int access_of(const File& file) {
  return is_opened_for(file, MPI_MODE_RDWR) ? O_RDWR : is_opened_for(file, MPI_MODE_WRONLY) ? O_WRONLY : O_RDONLY;
}

bool is_regular(const File& file) {
  struct stat info{};
  return ::stat(file.path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

// A descriptor that the program seems to hold until the next epoch (files.h).
int hold(const File& file) {
  const InProgram guard;
  return note_created(::open(file.path.c_str(), access_of(file) | O_CLOEXEC | O_NONBLOCK));
}

bool is_held_file(const std::string& name, int held) {
  struct stat found{};
  struct stat same{};
  return ::stat(name.c_str(), &found) == 0 && ::fstat(held, &same) == 0 && found.st_dev == same.st_dev &&
         found.st_ino == same.st_ino;
}

void close(File& file) {
  if (is_regular(file)) file.held = hold(file);
  must(real.File_close(&file.real), "closing a file");
  if (file.comm != nullptr) real.Comm_free(&file.comm);
}

// A communicator of its own: Open MPI names what it shares between the ranks by the communicator and the last part of
// the file's name (sharedfp/sm).
void open(File& file, const InfoRecipe& recipe) {
  file.comm = comm_of_ranks(file.peers->world);
  MPI_Info hints = make_info(recipe);
  constexpr int kOnlyOnce = MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_APPEND | MPI_MODE_DELETE_ON_CLOSE;
  // The program's name for it may be shorter, or lead elsewhere since the program has changed its working directory.
  const std::string& name = is_held_file(file.name, file.held) ? file.name : file.path;
  const int rc = real.File_open(file.comm, name.c_str(), file.amode & ~kOnlyOnce, hints, &file.real);
  if (rc != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;
    real.Error_string(rc, text, &length);
    die("epoch %llu: MPI file %s can't be opened again (%s); keep it on a volume that the pods of all ranks mount",
        static_cast<unsigned long long>(state.epoch), file.path.c_str(), text);
  }
  real.Info_free(&hints);
}

// The ranks that have used it tell the others where it is. That is nowhere before the end at which the file was opened:
// only collective calls move it back, and then all ranks have used it or set a view.
MPI_Offset agreed_shared_position(const File& file) {
  std::int64_t mine = file.recipe->shared_position;
  std::int64_t all = -1;
  must(real.Allreduce(&mine, &all, 1, pre.int64, pre.max, file.comm), "finding a file's shared pointer");
  return all;
}

// Reads it back, since Open MPI may have chosen another implementation for it on this node, such as sharedfp/individual, which
// reports success and stores nothing. All ranks have read it before any of them may use it.
void put_back_shared_pointer(File& file, MPI_Offset at) {
  const bool back =
      real.File_seek_shared(file.real, at, MPI_SEEK_SET) == MPI_SUCCESS && told_shared_position(file) == at;
  std::int64_t lost = back ? 0 : 1;
  must(real.Allreduce(MPI_IN_PLACE, &lost, 1, pre.int64, pre.max, file.comm), "finding a file's shared pointer");
  file.pointer_lost = lost != 0;
  // A program that hasn't used it may never do so, and need not run where files have one.
  if (has_moved_shared_pointer(file)) require_shared_pointer(file);
}

void reopen(File& file) {
  const FileRecipe& recipe = *file.recipe;
  open(file, recipe.hints);
  if (file.etype != nullptr)
    must(real.File_set_view(file.real, recipe.displacement, to_real(file.etype), to_real(file.filetype),
                            recipe.representation.c_str(), pre.info_null),
         "restoring a file's view");
  if (recipe.position >= 0)
    must(real.File_seek(file.real, recipe.position, MPI_SEEK_SET), "restoring a file's individual pointer");
  if (const MPI_Offset at = agreed_shared_position(file); at >= 0) put_back_shared_pointer(file, at);
  if (recipe.atomic) must(real.File_set_atomicity(file.real, 1), "restoring a file's atomic mode");
  real.File_set_errhandler(file.real, to_real(recipe.errhandler));
  note_identity(file);
  if (file.held >= 0) ::close(std::exchange(file.held, -1));
  file.recipe.reset();
}

// One number of both, the same on all ranks. It wraps: ids of rank 9 and above exceed the range otherwise.
constexpr std::int64_t number_of_both(std::int64_t id, std::int64_t started) {
  constexpr std::uint64_t kFactor = 1'000'003;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(id) * kFactor + static_cast<std::uint64_t>(started));
}
// A constant expression has no overflow.
static_assert(number_of_both(std::int64_t{9} << 40, 1) != number_of_both(std::int64_t{9} << 40, 2));

constexpr const char* kUnsaved = "whose data couldn't be written to its storage";
bool is_unsaved(const File& file) { return file.unsaved != MPI_SUCCESS; }

std::string named(const File& file, const std::string& what) { return "an MPI file " + what + ": " + file.path; }

// Whether a POSIX lock was taken by a descriptor, by its fdinfo. MPI itself holds none at an edge.
bool has_posix_lock(const std::string& fdinfo) {
  std::istringstream info(fdinfo);
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("lock:") && line.contains("POSIX")) return true;
  return false;
}

// What the program has locked by a descriptor of its own, as a blocker. Such locks end as soon as the process closes any
// descriptor of the file, MPI's included.
std::string lock_blocker() {
  const std::vector<File*> all = files.live();
  if (all.empty()) return "";
  const auto descriptors = regular_files();
  if (!descriptors) return why_unlisted();
  for (const auto& [fd, identity] : *descriptors) {
    const auto found = std::ranges::find(all, identity, &File::identity);
    if (found == all.end()) continue;
    const auto info = read_text("/proc/self/fdinfo/" + std::to_string(fd));
    if (!info && errno != ENOENT)
      return named(**found, "whose locks can't be read (" + std::string(std::strerror(errno)) + ")");
    if (info && has_posix_lock(*info)) return named(**found, "with an fcntl lock of the program");
  }
  return "";
}

// Why the file's path doesn't lead to it, or "".
std::string unreachable(const File& file) {
  File now;
  now.path = file.path;
  note_identity(now);
  if (now.identity == FileIdentity{} || now.identity != file.identity) return "that was removed, renamed or replaced";
  const int mode = is_opened_for(file, MPI_MODE_RDONLY)                         ? R_OK
                   : is_opened_for(file, MPI_MODE_WRONLY | MPI_MODE_SEQUENTIAL) ? W_OK
                                                                                : R_OK | W_OK;
  if (::faccessat(AT_FDCWD, file.path.c_str(), mode, AT_EACCESS) == 0) return "";
  return "open with access that its mode no longer permits";
}

}  // namespace

MPI_Offset told_shared_position(const File& file) {
  constexpr MPI_Offset kUntold = -(MPI_Offset{1} << 60);  // remains negative if divided by the size of an etype
  const OwnCalls guard(file.real);
  MPI_Offset told = kUntold;
  return real.File_get_position_shared(file.real, &told) == MPI_SUCCESS ? told : kUntold;
}

void require_shared_pointer(const File& file) {
  if (!file.pointer_lost) return;
  die("epoch %llu: the shared pointer of MPI file %s is lost, because Open MPI has no such pointer here, or another "
      "implementation of it (sharedfp) than before; keep the file on a volume on which the pods of all ranks can lock "
      "files",
      static_cast<unsigned long long>(state.epoch), file.path.c_str());
}

std::string file_blocker() {
  for (File* file : files.live()) {
    if (const char* split = file->split) return named(*file, "in a split collective (" + std::string(split) + ")");
    if (std::string why = unreachable(*file); !why.empty()) return named(*file, why);
    if (is_untold(*file)) return named(*file, "whose shared pointer Open MPI can't tell");
    if (is_unsaved(*file)) return named(*file, kUnsaved);
  }
  return lock_blocker();
}

std::string save_files() {
  std::string why;
  for (File* file : in_order(files)) {  // also after a failure, as the other ranks take part
    if (!is_regular(*file)) continue;   // a device, as /dev/null, has nothing to lose
    if (!is_opened_for(*file, MPI_MODE_RDONLY)) {
      const OwnCalls guard(file->real);
      file->unsaved = real.File_sync(file->real);  // Open MPI's close doesn't do it (MPI 4.1, 14.2.2)
    }
    if (is_unsaved(*file)) why = named(*file, kUnsaved);
    const int trial = hold(*file);
    if (trial < 0)
      why = named(*file, "that can't be opened a second time (" + std::string(std::strerror(errno)) + ")");
    else
      ::close(trial);
  }
  return why;
}

std::int64_t share_of_files() {
  std::int64_t sum = 0;
  for (const File* file : files.live())
    sum += share_of_object(file->peers->world, number_of_both(file->id, file->started));
  return sum;
}

void close_files() {
  const std::vector<File*> all = in_order(files);
  for (File* file : all) file->recipe = read_file(*file);
  for (File* file : all) close(*file);
  handler_of_file_null = take_handler(pre.file_null);
}

void reopen_files() {
  for (File* file : in_order(files)) reopen(*file);
  real.File_set_errhandler(pre.file_null, to_real(handler_of_file_null));
}

}  // namespace bsp::shim
