#include "sidecar/init/supervisor/dump.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/core/build_id.h"
#include "base/core/fault.h"
#include "base/core/read_file.h"
#include "base/core/write_all.h"
#include "sidecar/init/carry.h"
#include "sidecar/init/files.h"
#include "sidecar/init/inspect.h"
#include "sidecar/init/supervisor/moved_program.h"
#include "sidecar/init/user.h"
#include "sidecar/ring/ring.h"

namespace bsp::init {
namespace {

// When the sidecar closes the capture socket, criu exits by itself and leaves the program clean; a killed criu leaves
// its traces in it. So it gets this much time.
constexpr std::chrono::seconds kAbandonGrace{2};

// What a worker has found to carry.
constexpr char kNothing = '0', kFiles = '1', kSessions = '2';

}  // namespace

void Dump::begin() {
  if (auto begun = try_to_begin(); !begun) {
    if (worker_ > 0) ::kill(worker_, SIGKILL);
    failure_ = begun.error().message;
  }
}

Result<void> Dump::try_to_begin() {
  BSP_TRY(const ProcessStat stat, process_stat(program_.pid));
  if (stat.state != 'T') return fail(ErrorCode::kRefused, "the program is not stopped", true);
  BSP_CHECK_OK(check_movable(program_.pid, container_.user));
  BSP_TRY(guards_, find_guards(program_.pid, container_.user));
  BSP_TRY(unkept_, find_unkept(program_.pid, container_.user));
  BSP_CHECK_OK(prepare_work_dir(container_.criu));

  BSP_TRY(capture_, transfer::CaptureClient::connect(container_.images()));
  BSP_TRY(const Fd archive, capture_->open_file(kCarryFile));
  Fd notes;
  if (notes_) {
    BSP_TRY(notes, capture_->open_file(control::kNotesFile));
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("making a pipe");
  found_ = Fd(ends[0]);
  const Fd found(ends[1]);
  BSP_TRY(worker_, start_packing(archive.get(), found.get(), notes.get()));
  return {};
}

// A worker that writes to `found` what there is to carry, once it knows that all of it can be carried. It then fills the
// archive while criu is running.
Result<pid_t> Dump::start_packing(int archive, int found, int notes_file) {
  return container_.start_worker(container_.user, [this, archive, found, notes_file]() -> Result<int> {
    const Options& options = container_.options;
    Notes notes;
    const Mounts mounts = container_.shared_mounts();
    if (notes_) BSP_CHECK_OK(note_open_files(program_.pid, mounts, notes));  // before criu adds descriptors of its own
    BSP_TRY(const Changes changes, find_pod_changes(options.pod_volumes, container_.changes.since_ns()));
    BSP_TRY(const std::string status, read_file("/proc/" + std::to_string(program_.pid) + "/status"));
    BSP_CHECK_OK(check_fits(changes, dumped_memory(status), checkpoint_capacity(options.run_dir)));
    BSP_TRY(std::vector<std::string> trees, options.shares_memory
                                                ? shared_memory_files_of(program_.pid, container_.user.uid)
                                                : shared_memory_files(container_.user.uid));
    for (const std::string& path : container_.carry_paths) {
      struct stat info{};
      if (::lstat(path.c_str(), &info) == 0 || (errno != ENOENT && errno != ENOTDIR)) trees.push_back(path);
    }
    const bool carries = !trees.empty() || !changes.paths.empty() || !changes.directories.empty();
    const char answer = !carries ? kNothing : holds_only_sessions(trees, changes) ? kSessions : kFiles;
    if (::write(found, &answer, 1) != 1) return fail_errno("starting the dump");
    if (notes_ == control::NotedFiles::kWritten) BSP_CHECK_OK(note_written_files(mounts, program_.begun_ns, notes));
    if (notes_ && !write_all(notes_file, encode(notes))) return fail_errno("writing to the capture socket");
    if (carries) BSP_CHECK_OK(write_carry(trees, changes, archive));
    return 0;
  });
}

void Dump::on_found() {
  char answer = 0;
  if (const ssize_t n = ::read(found_.get(), &answer, 1); n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  found_.reset();
  found_files_ = answer != kNothing && answer != kSessions;
  // Otherwise the worker has ended without one, and the reason is in its log.
  if (answer != 0 && failure_.empty())
    if (auto begun = start_criu(answer != kNothing); !begun) {
      failure_ = begun.error().message;
      if (worker_ > 0) ::kill(worker_, SIGKILL);
    }
  capture_.reset();
}

Result<void> Dump::start_criu(bool carries) {
  const MovedProgram moved{.version = kMovedVersion,
                           .pid = program_.pid,
                           .uid = container_.user.uid,
                           .gid = container_.user.gid,
                           .groups = groups_text(container_.user.groups),
                           .out = container_.out.pipe_name(),
                           .err = container_.err.pipe_name(),
                           .out_bytes = container_.out.bytes(),
                           .err_bytes = container_.err.bytes(),
                           .carried = carries ? 1 : 0,
                           .features = program_.seen.bits(),
                           .runtime = build_id_of(container_.shim()),
                           .ring = BSP_RING_VERSION,
                           .begun_ns = program_.begun_ns};
  BSP_CHECK_OK(capture_->send_file(kStateFile, control::encode(control::packet_of(moved))));
  if (!guards_.empty()) BSP_CHECK_OK(capture_->send_file(kGuardsFile, encode(guards_)));
  if (!unkept_.empty()) BSP_CHECK_OK(capture_->send_file(kUnkeptFile, encode(unkept_)));
  const auto started = take_off(program_.pid, guards_).and_then([this] {
    return init::start_criu(container_.criu, "dump", dump_arguments(container_.criu, program_.pid, container_.images()),
                            container_.user, {});
  });
  if (!started) {
    put_guards_on();
    return std::unexpected(started.error());
  }
  criu_ = *started;
  criu_runs_(criu_);
  fault_point("init.dumping", criu_);
  return {};
}

void Dump::on_child(pid_t pid, int status) {
  if (pid == criu_) {
    criu_ = 0;
    // criu may have been killed from outside: stop what it leaves behind before anything else.
    if (status != 0) ::kill(program_.pid, SIGSTOP);
    put_guards_on();
    if (status == 0) return;
    fail_with(criu_failure(container_.criu, "dump", container_.user, status));
    if (worker_ > 0) ::kill(worker_, SIGKILL);
  } else if (pid == worker_) {
    worker_ = 0;
    if (status == 0) return;
    const std::string said = read_file(container_.worker_log()).value_or("");
    fail_with(said.empty() ? "archiving the carried files was interrupted" : said);
  }
}

// One without them would find no end of its stack. If it has ended meanwhile, nothing is missing.
void Dump::put_guards_on() {
  if (const auto back = put_on(program_.pid, guards_); !back && back.error().code != ErrorCode::kUnavailable)
    damage_ = back.error().message;
}

void Dump::fail_with(const std::string& why) {
  if (failure_.empty()) failure_ = trimmed(why);
}

void Dump::abandon() {
  fail_with("the dump was abandoned");
  if (criu_ == 0 && worker_ > 0) ::kill(worker_, SIGKILL);
  if (!kill_at_) kill_at_ = Steady::now() + kAbandonGrace;
}

void Dump::kill_if_due() {
  if (!kill_at_ || Steady::now() < *kill_at_) return;
  kill_at_.reset();
  // criu lifts the stop to run its code inside the program. A stop that is pending when criu dies takes effect
  // before the program's next instruction.
  if (criu_ > 0) {
    ::kill(program_.pid, SIGSTOP);
    kill_session(criu_);
  }
  if (worker_ > 0) ::kill(worker_, SIGKILL);
}

void Dump::program_ended() {
  if (criu_ > 0) kill_session(criu_);
}

bool Dump::over() const {
  const bool worker_was_faster = found_ && failure_.empty();
  return criu_ == 0 && worker_ == 0 && !worker_was_faster;
}

}  // namespace bsp::init
