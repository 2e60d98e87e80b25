#include "sidecar/shim/process/surroundings.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "crds/names.h"
#include "sidecar/shim/process/descriptors.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/proc_files.h"
#include "sidecar/shim/process/run_dir.h"

namespace bsp::shim {
namespace {

std::vector<std::pair<std::string, std::string>> at_start;
std::set<std::string> names_at_start;
bool has_opened = false;

constexpr mode_t kOwner = 0700;

bool is_for_mpi(std::string_view name) {
  for (const std::string_view prefix : {"PMIX_", "OMPI_", "OPAL_", "PRTE_", "HWLOC_", "HFI_", "IPATH_"})
    if (name.starts_with(prefix)) return true;
  return false;
}

std::vector<std::string> names_now() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (const char* equals = std::strchr(*entry, '='))
      names.emplace_back(*entry, static_cast<std::size_t>(equals - *entry));
  return names;
}

std::optional<std::string> value_now(const std::string& name) {
  const char* now = std::getenv(name.c_str());
  return now != nullptr ? std::optional<std::string>(now) : std::nullopt;
}

// Without setting it, as umask() does: other threads may make files meanwhile.
std::optional<mode_t> mask_now() {
  const auto status = read_text("/proc/self/status");
  const std::size_t at = status ? status->find("\nUmask:\t") : std::string::npos;
  if (at == std::string::npos) return {};
  return static_cast<mode_t>(std::strtoul(status->c_str() + at + std::strlen("\nUmask:\t"), nullptr, 8));
}

// The program may have lowered them since MPI_Init: threads, the size of files (ranks share memory in files), memory, timers.
// Not the limit of descriptors: below it are those that MPI has closed at the gate.
constexpr int kForMpi[] = {RLIMIT_NPROC, RLIMIT_FSIZE, RLIMIT_AS, RLIMIT_DATA, RLIMIT_MEMLOCK, RLIMIT_SIGPENDING};
// As large as the largest file that Open MPI makes by itself (a segment of btl/sm) may be, and room for more peers.
constexpr rlim_t kLeastFile = 64U << 20U;

// As far as the process may; returns them as they were.
std::map<int, rlimit> raise_limits() {
  std::map<int, rlimit> before;
  for (const int resource : kForMpi) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == limit.rlim_max) continue;
    const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    if (setrlimit(resource, &raised) == 0) before.emplace(resource, limit);
  }
  return before;
}

void set_limits(const std::map<int, rlimit>& limits) {
  for (const auto& [resource, limit] : limits) setrlimit(resource, &limit);
}

// Where mlockall(MCL_FUTURE) locks what is mapped, a mapping fails as a thread does. Else memory is given only when it is used.
bool can_map_stack() {
  pthread_attr_t of_threads{};
  std::size_t size = 0;
  if (pthread_getattr_default_np(&of_threads) != 0) return true;
  pthread_attr_getstacksize(&of_threads, &size);
  pthread_attr_destroy(&of_threads);
  void* const stack = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return errno != EAGAIN;
  munmap(stack, size);
  return true;
}

bool is_usable(const std::string& directory) {
  struct stat info{};
  return !directory.empty() && ::stat(directory.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         ::faccessat(AT_FDCWD, directory.c_str(), W_OK | X_OK, AT_EACCESS) == 0;
}

}  // namespace

std::string directory_for_mpi() {
  std::string tried;
  const auto usable = [&](const std::string& directory) {
    if (is_usable(directory)) return true;
    tried += (tried.empty() ? "" : ", ") + directory;
    return false;
  };
  for (const char* name : {"TMPDIR", "TEMP", "TMP"})
    for (const auto& [known, value] : at_start)
      if (known == name && !value.empty() && usable(value)) return value;
  for (const std::string& directory : {std::string("/tmp"), std::string("/dev/shm"), in_run_dir(names::kRunDir)})
    if (usable(directory)) return directory;
  die("MPI needs a directory for temporary files, and the program may write to none of %s; mount an emptyDir volume at "
      "/tmp",
      tried.c_str());
}

void Surroundings::note() {
  for (const std::string& name : names_now()) {
    at_start.emplace_back(name, *value_now(name));
    names_at_start.insert(name);
  }
}

void Surroundings::replace(const std::string& name, const std::string& value) {
  std::erase_if(at_start, [&](const auto& setting) { return setting.first == name; });
  at_start.emplace_back(name, value);
  names_at_start.insert(name);
}

void Surroundings::set(const std::string& name, const std::string& value) {
  const auto now = value_now(name);
  if (now == value) return;
  of_program_.emplace(name, now);
  setenv(name.c_str(), value.c_str(), 1);
}

Surroundings::Surroundings(const std::map<std::string, std::string>& of_epoch) {
  for (std::string& name : names_now()) names_of_program_.insert(std::move(name));
  for (const auto& [name, value] : at_start) set(name, value);
  set("TMPDIR", directory_for_mpi());
  for (const std::string& name : names_now())
    if (is_for_mpi(name) && !names_at_start.contains(name) && !of_epoch.contains(name)) {
      of_program_.emplace(name, value_now(name));  // MPI reads such a variable only in MPI_Init
      unsetenv(name.c_str());
    }
  for (const auto& [name, value] : of_epoch) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  if (const auto mask = mask_now(); mask && (*mask & kOwner) != 0) mask_ = umask(*mask & ~kOwner);
  limits_ = raise_limits();
}

Surroundings::~Surroundings() {
  set_limits(limits_);
  if (mask_) umask(*mask_);
  if (has_opened)
    for (const std::string& name : names_now())
      if (is_for_mpi(name) && !names_of_program_.contains(name)) unsetenv(name.c_str());
  for (const auto& [name, value] : of_program_) {
    if (value)
      setenv(name.c_str(), value->c_str(), 1);
    else
      unsetenv(name.c_str());
  }
  has_opened = true;
}

std::string thread_blocker() {
  const InMpi guard;  // the thread isn't the program's
  const auto before = raise_limits();
  pthread_t thread{};
  const int error = pthread_create(&thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
  if (error == 0) pthread_join(thread, nullptr);
  const bool must_lock = error == EAGAIN && !can_map_stack();
  set_limits(before);
  if (error == 0) return "";
  rlimit limit{};
  getrlimit(must_lock ? RLIMIT_MEMLOCK : RLIMIT_NPROC, &limit);
  return "no thread can be started (" + std::string(std::strerror(error)) + "; " +
         (must_lock ? "mlockall(MCL_FUTURE) would lock its stack, and RLIMIT_MEMLOCK is " : "RLIMIT_NPROC is ") +
         std::to_string(limit.rlim_max) + ")";
}

std::string limit_blocker() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_max >= kLeastFile) return "";
  return "a hard RLIMIT_FSIZE of " + std::to_string(limit.rlim_max) +
         " bytes, too few for MPI's files (64 MiB; lower only the soft limit)";
}

std::string directory_blocker() {
  char* const name = getcwd(nullptr, 0);
  if (name == nullptr) {
    if (errno == ENOENT) return "";  // it was removed: criu makes it again
    return "a working directory that can't be told (" + std::string(std::strerror(errno)) + ")";
  }
  const std::string path = name;
  std::free(name);
  if (path.size() >= PATH_MAX)
    return "a working directory whose name has " + std::to_string(path.size()) + " characters, more than open() takes";
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK | X_OK, AT_EACCESS) == 0 || errno != EACCES) return "";
  return "a working directory that the program's user may not read and enter (" + path +
         "; change its mode, or chdir() to another)";
}

Untouchable::Untouchable() {
  prctl(PR_GET_PDEATHSIG, &death_signal_);
  if (death_signal_ != 0) prctl(PR_SET_PDEATHSIG, 0);
  dumpable_ = prctl(PR_GET_DUMPABLE);
  if (dumpable_ == 0) prctl(PR_SET_DUMPABLE, 1);
}

Untouchable::~Untouchable() {
  if (death_signal_ != 0) prctl(PR_SET_PDEATHSIG, death_signal_);
  if (dumpable_ == 0) prctl(PR_SET_DUMPABLE, 0);
}

}  // namespace bsp::shim
