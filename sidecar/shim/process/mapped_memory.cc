#include "sidecar/shim/process/mapped_memory.h"

#include "crds/names.h"
#include "sidecar/shim/process/proc_files.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {
namespace {

constexpr std::string_view kDirectory = " /dev/shm/";

// Of MPI's libraries, as osc_rdma.… of a window: they last as long as an epoch.
bool is_of_mpi(std::string_view path) {
  if (path.starts_with("/dev/shm/" + std::string(names::kSharedSegment))) return true;
  for (const std::string_view name : {"open_mpi", "ompi", "osc_", "pmix", "prte"})
    if (path.contains(name)) return true;
  return false;
}

// "7f0000000000-7f0001000000 rw-s 00000000 00:2f 12   /dev/shm/name", "" of every other line.
std::string_view file_of(std::string_view line) {
  const std::size_t at = line.find(kDirectory), mode = line.find(' ');
  if (at == std::string_view::npos || line.substr(mode + 1, 4).back() != 's') return {};
  const std::string_view path = line.substr(at + 1);
  return is_of_mpi(path) ? std::string_view() : path;
}

// "Shared_Dirty:          4 kB"
bool counts_pages(std::string_view line) {
  const std::size_t digits = line.find_first_of("123456789");
  return (line.starts_with("Shared_Clean:") || line.starts_with("Shared_Dirty:")) && digits != std::string_view::npos;
}

template <class Visit>
void for_lines(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    visit(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

bool has_file(std::string_view maps) {
  bool found = false;
  for_lines(maps, [&](std::string_view line) { found = found || !file_of(line).empty(); });
  return found;
}

}  // namespace

std::string mapped_twice(std::string_view smaps) {
  std::string_view file;
  std::string found;
  for_lines(smaps, [&](std::string_view line) {
    // A mapping's first line begins with its address, the others with a name and a colon.
    const std::size_t word = line.find(' ');
    if (word != std::string_view::npos && word > 0 && line[word - 1] != ':') file = file_of(line);
    if (found.empty() && !file.empty() && counts_pages(line)) found = file;
  });
  return found;
}

std::string shared_mapping_blocker() {
  if (!state.shares_memory) return "";
  // smaps walks through all of the process's pages, maps through none.
  const auto maps = read_text("/proc/self/maps");
  if (!maps || !has_file(*maps)) return "";
  const auto smaps = read_text("/proc/self/smaps");
  const std::string file = smaps ? mapped_twice(*smaps) : "";
  if (file.empty()) return "";
  return file +
         ", memory that another rank of this pod has mapped, too; let the program unmap it, or run one rank a pod "
         "(ranksPerPod: 1)";
}

}  // namespace bsp::shim
