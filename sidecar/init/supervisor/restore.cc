#include "sidecar/init/supervisor/restore.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/core/build_id.h"
#include "base/core/fault.h"
#include "base/core/read_file.h"
#include "sidecar/control/control.h"
#include "sidecar/control/messages.h"
#include "sidecar/init/carry.h"
#include "sidecar/init/files.h"
#include "sidecar/init/supervisor/moved_program.h"
#include "sidecar/init/user.h"

namespace bsp::init {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds kStopLimit{2};
// Exit statuses of a worker.
constexpr int kFilesAhead = 2;
constexpr int kFilesRefused = 3;
constexpr std::size_t kMostNote = 1000;  // bytes: names may be long

std::unexpected<Error> worker_failed(int status, const std::string& said, std::string_view otherwise) {
  const bool refused = WIFEXITED(status) && WEXITSTATUS(status) == kFilesRefused;
  return fail(refused ? ErrorCode::kRefused : ErrorCode::kFailed, said.empty() ? std::string(otherwise) : said);
}

// The kernel had no room for it.
bool is_full(std::string_view failure) {
  return failure.contains("Cannot allocate memory") || failure.contains("No space left on device");
}

}  // namespace

Result<void> Restore::begin() {
  BSP_TRY(const std::string text, read_file(images_ + "/" + std::string(kStateFile)));
  BSP_TRY(const control::Message packet, control::decode(text));
  const auto moved = control::from_packet<MovedProgram>(packet);
  BSP_CHECK_OK(check_moved(moved, container_.cpu, build_id_of(container_.shim())));
  const User& here = container_.user;
  if (moved.uid != here.uid || moved.gid != here.gid) {
    return fail(ErrorCode::kRefused, "the program ran as " + std::to_string(moved.uid) + ":" +
                                         std::to_string(moved.gid) + ", but this pod is for " +
                                         std::to_string(here.uid) + ":" + std::to_string(here.gid));
  }
  // criu, without CAP_SETGID, can restore only the groups that it has itself.
  user_ = here;
  user_.groups = parse_groups(moved.groups);
  if (!std::ranges::includes(here.groups, user_.groups)) {
    return fail(ErrorCode::kRefused, "the program has the supplementary groups " + moved.groups +
                                         ", this pod has only " + groups_text(here.groups));
  }
  BSP_TRY(const std::string guards, read_file_if_any(images_ + "/" + std::string(kGuardsFile)));
  BSP_TRY(memory_.guards, decode_guards(guards));
  BSP_TRY(const std::string unkept, read_file_if_any(images_ + "/" + std::string(kUnkeptFile)));
  BSP_TRY(memory_.unkept, decode_unkept(unkept));
  program_.pid = moved.pid;
  program_.seen = CpuFeatures(moved.features);
  program_.begun_ns = moved.begun_ns;
  if (program_.pid <= 1) return fail(ErrorCode::kInvalid, "the checkpoint specifies no process");
  const auto taken = process_stat(program_.pid);
  if (taken)
    return fail(ErrorCode::kConflict, "PID " + std::to_string(program_.pid) + " is already in use in this container",
                true);
  if (taken.error().code != ErrorCode::kNotFound) return std::unexpected(taken.error());
  BSP_CHECK_OK(container_.open_output());
  container_.out.set_bytes(moved.out_bytes);
  container_.err.set_bytes(moved.err_bytes);
  BSP_CHECK_OK(prepare_work_dir(container_.criu));
  pipes_ = {{.descriptor = 3, .was = moved.out}, {.descriptor = 4, .was = moved.err}};
  // A pipe without a name had no holder any more: the program has closed its end.
  std::erase_if(pipes_, [](const InheritedPipe& pipe) { return pipe.was.empty(); });
  const std::string archive = images_ + "/" + std::string(kCarryFile),
                    notes = images_ + "/" + std::string(control::kNotesFile);
  if (!ignores_files_ && ::access(notes.c_str(), F_OK) == 0) {
    BSP_TRY(notes_, read_file(notes));
  }
  if (moved.carried == 0 && notes_.empty()) return start_criu();
  const bool carried = moved.carried != 0;
  // What the worker says without failing is a note for people.
  BSP_TRY(worker_, container_.start_worker(user_, [this, &archive, carried]() -> Result<int> {
    BSP_TRY(const int compared, compare(Grown::kTold));
    if (!carried || compared == kFilesRefused) return compared;
    const Age age = age_of("/", container_.changes.since_ns());
    BSP_CHECK_OK(read_carry(archive, age, container_.options.shares_memory ? "/dev/shm" : ""));
    return compared;
  }));
  return {};
}

Result<int> Restore::compare(Grown grown) const {
  if (notes_.empty()) return 0;
  BSP_TRY(const Notes files, control::decode_notes(notes_));
  const auto compared = check_shared_files(files, container_.shared_mounts(), grown);
  if (!compared && compared.error().code != ErrorCode::kRefused) return std::unexpected(compared.error());
  std::fprintf(stderr, "%s\n", (compared ? compared->said : compared.error().message).c_str());
  if (!compared) return kFilesRefused;
  return compared->ahead ? kFilesAhead : 0;
}

Result<void> Restore::cut() {
  if (worker_ > 0) return {};
  BSP_TRY(worker_, container_.start_worker(user_, [this] { return compare(Grown::kCut); }));
  return {};
}

Result<void> Restore::on_cut(int status) {
  worker_ = 0;
  note_ = note_of_worker();
  if (status != 0) return worker_failed(status, note_, "cutting off shared files was interrupted");
  found_.ahead = false;
  return {};
}

std::string Restore::note_of_worker() const {
  std::string note = trimmed(read_file(container_.worker_log()).value_or(""));
  if (note.size() > kMostNote) note.resize(kMostNote);
  return note;
}

Result<void> Restore::start_criu() {
  BSP_TRY(criu_, init::start_criu(container_.criu, "restore", restore_arguments(container_.criu, images_, pipes_),
                                  user_, {container_.out.write_end(), container_.err.write_end()}));
  fault_point("init.restoring", criu_);
  return {};
}

std::optional<Result<Program>> Restore::on_child(pid_t pid, int status) {
  if (pid == worker_) {
    worker_ = 0;
    if (auto begun = on_unpacked(status); !begun) return std::unexpected(begun.error());
  } else if (pid == criu_) {
    criu_ = 0;
    if (status == 0) return restored();
    const std::string failure = criu_failure(container_.criu, "restore", container_.user, status);
    found_.blames_image = !WIFSIGNALED(status) && !is_full(failure);
    return fail(ErrorCode::kFailed, failure);
  }
  return std::nullopt;
}

// The carried files are in place, so everything the process maps or has open exists now.
Result<void> Restore::on_unpacked(int status) {
  note_ = note_of_worker();
  found_.ahead = WIFEXITED(status) && WEXITSTATUS(status) == kFilesAhead;
  if (found_.ahead || status == 0) return start_criu();
  return worker_failed(status, note_, "unpacking the carried files was interrupted");
}

std::optional<control::RestoreCause> Restore::cause_of(const Error& error) const {
  if (error.code == ErrorCode::kRefused || error.code == ErrorCode::kInvalid) return control::RestoreCause::kRefused;
  return found_.blames_image ? std::optional(control::RestoreCause::kImage) : std::nullopt;
}

Result<Program> Restore::restored() {
  // criu leaves a SIGSTOP pending: the process stops before its first own instruction, but perhaps after criu has
  // exited.
  const auto deadline = Steady::now() + kStopLimit;
  auto stat = process_stat(program_.pid);
  while (stat && stat->state != 'T' && stat->state != 'Z' && Steady::now() < deadline) {
    ::usleep(200);
    stat = process_stat(program_.pid);
  }
  found_.blames_image = true;
  if (!stat || stat->state == 'Z') return fail(ErrorCode::kFailed, "the restored process exited immediately");
  if (stat->parent != ::getpid() || stat->state != 'T')
    return fail(ErrorCode::kFailed, "the restored process is not stopped");
  BSP_CHECK_OK(put_on(program_.pid, memory_.guards));
  BSP_CHECK_OK(give_back(program_.pid, memory_.unkept));
  found_.blames_image = false;
  Program program = program_;
  if (program.begun_ns == 0) program.begun_ns = container_.changes.since_ns();
  return program;
}

void Restore::abandon() {
  for (const pid_t pid : {criu_, worker_})
    if (pid > 0) ::kill(pid, SIGKILL);
}

}  // namespace bsp::init
