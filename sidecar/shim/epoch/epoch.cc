#include "sidecar/shim/epoch/epoch.h"

#include <fcntl.h>
#include <pmix.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "crds/names.h"
#include "sidecar/ring/ring_access.h"
#include "sidecar/shim/handles/handles.h"
#include "sidecar/shim/handles/without_object.h"
#include "sidecar/shim/library/file_components.h"
#include "sidecar/shim/library/graceful_close.h"
#include "sidecar/shim/library/predefined_self.h"
#include "sidecar/shim/library/server_loss.h"
#include "sidecar/shim/library/thread_level.h"
#include "sidecar/shim/library/yielding.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/process/descriptors.h"
#include "sidecar/shim/process/leftovers.h"
#include "sidecar/shim/process/loaded_library.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/proc_files.h"
#include "sidecar/shim/process/run_dir.h"
#include "sidecar/shim/process/state.h"
#include "sidecar/shim/process/surroundings.h"

namespace bsp::shim {
namespace {

constexpr int kFirstEpochSeconds = 600;  // where the operator sets no limit (kEnvFirstEpoch)

MPI_Session session = nullptr;

void set_default(const char* name, const char* value) { setenv(name, value, 0); }

bool user_chose_btl = false;

// Where UCX is a part of Open MPI's library, and not of components that are opened with it, it stays registered when a session closes, and
// crashes in the next one (5.0.8 to 5.0.11).
void refuse_ucx_that_opens_once(const char* framework) {
  const char* chosen = std::getenv(framework);
  if (chosen == nullptr || chosen[0] == '^' || std::strstr(chosen, "ucx") == nullptr) return;
  const void* const ucx = find_in_mpi("opal_common_ucx");
  if (ucx != nullptr && file_name_of(ucx).starts_with("libopen-pal."))
    refuse(
        "%s=%s: UCX is a part of this Open MPI's library and can't be opened again after a move; leave the variable "
        "out",
        framework, chosen);
}

// Open MPI's defaults here; the user's own settings take precedence.
void set_mpi_defaults() {
  for (const char* framework : {"OMPI_MCA_pml", "OMPI_MCA_osc"}) refuse_ucx_that_opens_once(framework);
  user_chose_btl = std::getenv("OMPI_MCA_btl") != nullptr;
  set_default("PMIX_MCA_gds", "hash");  // the default store maps one of the sidecar's files
  set_default("OMPI_MCA_btl", "tcp,self");
  set_default("OMPI_MCA_pml", "ob1");
  set_default("OMPI_MCA_osc", "^ucx");
  // Pages that a dynamic window may have, 64 by default. Pieces of MPI_Alloc_mem lie further apart here (memory.cc), between what
  // the shim allocates, so that a program which attaches each of them alone would come to the limit sooner.
  set_default("OMPI_MCA_osc_rdma_max_attach", "1024");
  // With it MPI_BAND and MPI_BXOR of one number of 64 bits give wrong results (5.0.7), on windows that aren't one node's shared memory, as
  // those of MPI_Win_allocate become here.
  set_default("OMPI_MCA_osc_rdma_acc_use_amo", "false");
  set_default("PMIX_MCA_pcompress_base_silence_warning", "1");
}

// Messages to ranks of this pod go through shared memory, all others over TCP, unless the user has chosen otherwise. Where no other pod
// has a rank, MPI opens no socket: it would ask the kernel after every few looks for a message whether anyone has connected. But nobody
// may have single copies (smsc): they read a peer's memory by its PID, which is another process's in this container.
void choose_transports(bool in_one_pod) {
  if (!user_chose_btl)
    Surroundings::replace("OMPI_MCA_btl", !state.shares_memory ? "tcp,self" : in_one_pod ? "sm,self" : "sm,tcp,self");
  if (state.shares_memory) Surroundings::replace("OMPI_MCA_smsc", "^cma,knem,xpmem");
}

MPI_Comm comm_of_set(const char* pset, const char* name) {
  MPI_Group group = nullptr;
  MPI_Comm comm = nullptr;
  must(real.Group_from_session_pset(session, pset, &group), "MPI_Group_from_session_pset");
  const std::string tag = "bsp-" + std::string(pset);
  must(real.Comm_create_from_group(group, tag.c_str(), pre.info_null, pre.errors_are_fatal, &comm),
       "MPI_Comm_create_from_group");
  real.Group_free(&group);
  real.Comm_set_name(comm, name);  // in a later epoch restore_objects() sets the program's own
  return comm;
}

// Waits until all ranks have got here. ob1 of Open MPI 5.0 loses messages that arrive before their communicator
// exists if they carry its number (it searches for the tag where the number is), so no rank may send on the world
// before all ranks have it. Open MPI takes care of this itself when a communicator is derived from another.
void wait_for_all_ranks() {
  using Fence = decltype(&PMIx_Fence);
  static const auto fence = reinterpret_cast<Fence>(find_in_mpi("PMIx_Fence"));
  if (fence == nullptr || fence(nullptr, 0, nullptr, 0) != PMIX_SUCCESS)
    die_between_epochs("MPI_Comm_create_from_group", "the ranks did not meet after it");
}

// "" while there is none. Another thread may have taken the last descriptor of the process, or the machine's, for a moment.
std::string descriptor_text() {
  constexpr int kAttempts = 2500;
  constexpr useconds_t kPauseUs = 2000;
  const std::string path = in_run_dir(names::kEpochFile);
  for (int attempt = 1;; ++attempt) {
    if (auto text = read_text(path)) return *std::move(text);
    if (errno == ENOENT) return "";
    if (attempt == kAttempts) die("%s can't be read: %s", path.c_str(), std::strerror(errno));
    usleep(kPauseUs);
  }
}

// The numbers of "4,5,6", up to what isn't such a list.
std::vector<std::uint32_t> numbers_in_list(const std::string& text) {
  std::vector<std::uint32_t> numbers;
  for (const char* p = text.c_str(); *p != '\0';) {
    char* end = nullptr;
    numbers.push_back(static_cast<std::uint32_t>(std::strtoul(p, &end, 10)));
    p = *end == ',' ? end + 1 : end;
    if (end == p && *p != '\0') break;
  }
  return numbers;
}

std::vector<int> ranks_of_pod;  // in the open epoch, ascending

void init_session() {
  static const char* const kLevels[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED",
                                        "MPI_THREAD_MULTIPLE"};
  set_thread_level(state.thread_level);
  MPI_Info info = nullptr;
  must(real.Info_create(&info), "MPI_Info_create");
  real.Info_set(info, "thread_level", kLevels[state.thread_level]);
  must(real.Session_init(info, pre.errors_are_fatal, &session), "MPI_Session_init");
  choose_yielding(ranks_of_pod.size());
  add_world_to_pml();
  ignore_server_loss();
  real.Info_free(&info);
  route_errors_without_object();
}

}  // namespace

bool read_descriptor(EpochDescriptor& out) {
  std::istringstream file(descriptor_text());
  out = {};
  bool numbered = false;
  for (std::string line; std::getline(file, line);) {
    const auto equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = line.substr(0, equals);
    const std::string value = line.substr(equals + 1);
    if (key == names::kEpochNumber) {
      out.epoch = std::strtoull(value.c_str(), nullptr, 10);
      numbered = true;
    } else if (key == names::kEpochRank) {
      out.rank = std::atoi(value.c_str());
    } else if (key == names::kEpochRanks) {
      out.ranks = std::atoi(value.c_str());
    } else if (key == names::kEpochRankSets) {
      out.sets = numbers_in_list(value);
    } else if (key == names::kEpochLocalRanks) {
      for (const std::uint32_t rank : numbers_in_list(value)) out.local_ranks.push_back(static_cast<int>(rank));
    } else {
      out.pmix[key] = value;
    }
  }
  return numbered && out.rank >= 0 && out.ranks > out.rank;
}

void map_ring() {
  if (state.ring != nullptr) return;
  const std::string path = in_run_dir(names::kRingFile);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) die("can't open %s: %s", path.c_str(), std::strerror(errno));
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size < static_cast<off_t>(sizeof(bsp_ring)))
    die("%s is too small for the ring", path.c_str());
  void* address = mmap(nullptr, sizeof(bsp_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (address == MAP_FAILED) die("can't map %s: %s", path.c_str(), std::strerror(errno));
  state.ring = static_cast<bsp_ring*>(address);
  if (!bsp_ring_valid(state.ring))
    die("%s has a different version from this libbspmpi.so (%u)", path.c_str(), BSP_RING_VERSION);
}

void unmap_ring() {
  if (state.ring != nullptr) munmap(state.ring, sizeof(bsp_ring));
  state.ring = nullptr;
}

bool parts_from(int rank) {
  const auto at = static_cast<std::size_t>(std::ranges::lower_bound(ranks_of_pod, rank) - ranks_of_pod.begin());
  return at < ranks_of_pod.size() && at < BSP_RING_SEATS && ranks_of_pod[at] == rank &&
         (BSP_RING_LOAD(state.ring->parting[at / 64]) >> at % 64 & 1) != 0;
}

void open_first_epoch(int thread_level) {
  state.thread_level = thread_level;
  state.multiple = thread_level == MPI_THREAD_MULTIPLE;
  if (const char* init = std::getenv(names::kEnvInitPid.data())) state.started_by_init = std::atoi(init) == getppid();
  set_mpi_defaults();
  Surroundings::note();
  const char* limit = std::getenv(names::kEnvFirstEpoch.data());
  const int seconds = limit != nullptr ? std::atoi(limit) : kFirstEpochSeconds;
  const std::uint64_t began = clock_ns(CLOCK_MONOTONIC);
  EpochDescriptor descriptor;
  while (!read_descriptor(descriptor)) {
    const std::uint64_t waited = clock_ns(CLOCK_MONOTONIC) - began;
    if (waited > static_cast<std::uint64_t>(seconds) * 1000000000u)
      die("MPI_Init: no epoch was opened within %d s (%s did not appear): is the sidecar running?", seconds,
          in_run_dir(names::kEpochFile).c_str());
    // Many ranks may wait for a last one: their looks must not take the core from its start.
    usleep(static_cast<useconds_t>(std::clamp<std::uint64_t>(waited / 32 / 1000, 2000, 100000)));
  }
  open_epoch(descriptor);
}

void open_epoch(const EpochDescriptor& descriptor) {
  state.epoch = descriptor.epoch;
  state.rank = descriptor.rank;
  state.size = descriptor.ranks;
  state.shares_memory = descriptor.local_ranks.size() > 1;
  ranks_of_pod = descriptor.local_ranks;
  choose_transports(static_cast<int>(ranks_of_pod.size()) == descriptor.ranks);
  map_ring();
  BSP_RING_STORE(state.ring->state, static_cast<std::uint32_t>(BSP_RANK_OPENING));
  BSP_RING_STORE(state.ring->epoch, descriptor.epoch);
  const Surroundings surroundings(descriptor.pmix);

  const InMpi in_mpi;
  leftovers_before_open();
  init_session();
  world.real = comm_of_set("mpi://WORLD", "MPI_COMM_WORLD");
  self.real = comm_of_set("mpi://SELF", "MPI_COMM_SELF");
  wait_for_all_ranks();
  must(real.Comm_dup(world.real, &private_world), "MPI_Comm_dup");
  real.Comm_set_errhandler(private_world, pre.errors_return);
  fill_predefined_self(self.real);
  leftovers_after_open();

  int size = 0;
  real.Comm_size(world.real, &size);
  real.Comm_rank(world.real, &state.rank);
  if (size != descriptor.ranks || state.rank != descriptor.rank)
    die("epoch %llu: MPI says rank %d of %d, the descriptor %d of %d", static_cast<unsigned long long>(state.epoch),
        state.rank, size, descriptor.rank, descriptor.ranks);
  measure.begin_epoch(descriptor.sets);
}

void close_epoch() {
  const InMpi in_mpi;
  measure.end_epoch();
  end_romio();
  clear_predefined_self();
  real.Comm_free(&private_world);
  real.Comm_free(&world.real);
  real.Comm_free(&self.real);
  // Open MPI 5.0 opens its `if` framework twice and closes it once. Without this call the next epoch would advertise
  // this pod's addresses even after a move.
  using Close = int (*)(void*);
  static const auto close_framework = reinterpret_cast<Close>(find_in_mpi("mca_base_framework_close"));
  static void* const interfaces = find_in_mpi("opal_if_base_framework");
  if (close_framework != nullptr && interfaces != nullptr) close_framework(interfaces);
  {
    GracefulClose graceful_close;
    must(real.Session_finalize(&session), "MPI_Session_finalize");
  }
  reset_ompio_progress();
  stop_ignoring_link_errors();
  leftovers_after_close();
}

}  // namespace bsp::shim
