// Dump at the source, restore at the target, and the ways back from both. See supervisor.h.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <format>
#include <ranges>
#include <utility>

#include "base/core/build_id.h"
#include "base/core/fault.h"
#include "base/core/read_file.h"
#include "base/core/write_all.h"
#include "sidecar/init/carry.h"
#include "sidecar/init/files.h"
#include "sidecar/init/inspect.h"
#include "sidecar/init/supervisor.h"
#include "sidecar/init/user.h"
#include "sidecar/ring/ring.h"

namespace bsp::init {
namespace {

// When the sidecar closes the capture socket, criu exits by itself and leaves the program clean; a killed criu leaves
// its traces in it. So it gets this much time.
constexpr std::chrono::seconds kAbandonGrace{2};
constexpr std::chrono::seconds kStopLimit{2};
constexpr int kLastOutputMs = 2000;
constexpr std::size_t kMostNote = 1000;  // bytes: names may be long

std::uint64_t nanoseconds_since(std::chrono::steady_clock::time_point start) {
  const auto took = std::chrono::steady_clock::now() - start;
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// What a worker has found to carry.
constexpr char kNothing = '0', kFiles = '1', kSessions = '2';

// Runs `body` in a worker under the program's uid; a returned error goes to `log`.
Result<pid_t> start_worker(const User& user, const std::string& log, const std::function<Result<void>()>& body) {
  ::unlink(log.c_str());
  const Fd errors(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!errors) return fail_errno("opening " + log);
  return fork_as(user, errors.get(), [&body] {
    const auto done = body();
    if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return done ? 0 : 1;
  });
}

}  // namespace

void Supervisor::warm_up() {
  warm_up_at_.reset();
  if (::access(options_.run_dir.c_str(), F_OK) != 0) return;
  if (auto pid = start_criu(criu_paths_, "check", warm_up_arguments(criu_paths_), user_, {})) {
    warm_ = *pid;
  }
  // A missing criu must not keep the program from running; the first dump will report it.
}

void Supervisor::end_warm_up() {
  warm_up_at_.reset();
  if (warm_ == 0) return;
  kill_session(warm_);
  ::waitpid(warm_, nullptr, 0);
  while (::waitpid(-warm_, nullptr, 0) > 0) {
  }
  warm_ = 0;
}

// --- Source -----------------------------------------------------------------------------------------

void Supervisor::begin_dump(const control::Dump& asked) {
  const std::string& migration = asked.migration;
  const auto refuse = [&](const std::string& why) {
    report(control::DumpFailed{.migration = migration, .message = why});
  };
  if (state_ == State::kDumping) {
    if (migration != migration_) refuse("another dump is in progress, for " + migration_);
    return;
  }
  if (state_ != State::kStopped && state_ != State::kDumped) {
    refuse("the program is not stopped at a gate (it is " + std::string(to_string(state_)) + ")");
    return;
  }
  migration_ = migration;
  notes_ = asked.notes;
  failure_.clear();
  state_ = State::kDumping;
  if (auto begun = try_dump(); !begun) {
    if (worker_ > 0) ::kill(worker_, SIGKILL);
    failure_ = begun.error().message;
    end_dump_if_ready();
  }
}

Result<void> Supervisor::try_dump() {
  end_warm_up();
  out_.drain();
  err_.drain();
  action_start_ = Steady::now();
  BSP_TRY(const ProcessStat stat, process_stat(program_));
  if (stat.state != 'T') return fail(ErrorCode::kRefused, "the program is not stopped", true);
  BSP_CHECK_OK(check_movable(program_, user_));
  BSP_CHECK_OK(prepare_work_dir(criu_paths_));

  BSP_TRY(capture_, transfer::CaptureClient::connect(options_.run_dir + "/images"));
  BSP_TRY(const Fd archive, capture_->open_file(kCarryFile));
  Fd notes;
  if (notes_) {
    BSP_TRY(notes, capture_->open_file(kNotesFile));
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno("making a pipe");
  found_ = Fd(ends[0]);
  const Fd found(ends[1]);
  BSP_TRY(worker_, start_packing(archive.get(), found.get(), notes.get()));
  return {};
}

// What ends with the pod is not shared, and what moves with the rank is in its image.
Mounts Supervisor::shared_mounts() const {
  std::vector<std::string> own = carry_paths_;
  for (const auto part : std::views::split(options_.pod_volumes, ':')) own.emplace_back(part.begin(), part.end());
  std::erase(own, "");
  return {read_file("/proc/self/mountinfo").value_or(""), std::move(own)};
}

// A worker that writes to `found` what there is to carry, once it knows that all of it can be carried. It then fills the
// archive while criu is running.
Result<pid_t> Supervisor::start_packing(int archive, int found, int notes_file) {
  return start_worker(user_, worker_log(), [this, archive, found, notes_file]() -> Result<void> {
    Notes notes;
    const Mounts mounts = shared_mounts();
    if (notes_) BSP_CHECK_OK(note_open_files(program_, mounts, notes));  // before criu adds descriptors of its own
    BSP_TRY(const Changes changes, find_pod_changes(options_.pod_volumes, changes_.since_ns()));
    BSP_TRY(const std::string status, read_file("/proc/" + std::to_string(program_) + "/status"));
    BSP_CHECK_OK(check_fits(changes, dumped_memory(status), checkpoint_capacity(options_.run_dir)));
    BSP_TRY(std::vector<std::string> trees,
            options_.shares_memory ? shared_memory_files_of(program_, user_.uid) : shared_memory_files(user_.uid));
    for (const std::string& path : carry_paths_) {
      struct stat info{};
      if (::lstat(path.c_str(), &info) == 0 || (errno != ENOENT && errno != ENOTDIR)) trees.push_back(path);
    }
    const bool carries = !trees.empty() || !changes.paths.empty() || !changes.directories.empty();
    const char answer = !carries ? kNothing : holds_only_sessions(trees, changes) ? kSessions : kFiles;
    if (::write(found, &answer, 1) != 1) return fail_errno("starting the dump");
    if (notes_ == control::NotedFiles::kWritten) BSP_CHECK_OK(note_written_files(mounts, begun_ns_, notes));
    if (notes_ && !write_all(notes_file, encode(notes))) return fail_errno("writing to the capture socket");
    return carries ? write_carry(trees, changes, archive) : Result<void>();
  });
}

void Supervisor::on_found() {
  char answer = 0;
  if (const ssize_t n = ::read(found_.get(), &answer, 1); n < 0 && (errno == EINTR || errno == EAGAIN)) return;
  found_.reset();
  left_files_ = left_files_ || (answer != kNothing && answer != kSessions);
  // Otherwise the worker has ended without one, and the reason is in its log.
  if (answer != 0 && failure_.empty())
    if (auto begun = start_dump_criu(answer != kNothing); !begun) {
      failure_ = begun.error().message;
      if (worker_ > 0) ::kill(worker_, SIGKILL);
    }
  capture_.reset();
  end_dump_if_ready();
}

Result<void> Supervisor::start_dump_criu(bool carries) {
  const MovedProgram moved{.version = kMovedVersion,
                           .pid = program_,
                           .uid = user_.uid,
                           .gid = user_.gid,
                           .groups = groups_text(user_.groups),
                           .out = out_.pipe_name(),
                           .err = err_.pipe_name(),
                           .out_bytes = out_.bytes(),
                           .err_bytes = err_.bytes(),
                           .carried = carries ? 1 : 0,
                           .features = cpu_.seen.bits(),
                           .runtime = build_id_of(options_.runtime_dir + "/libbspmpi.so"),
                           .ring = BSP_RING_VERSION,
                           .begun_ns = begun_ns_};
  BSP_CHECK_OK(capture_->send_file(kStateFile, control::encode(control::packet_of(moved))));
  const std::string images = options_.run_dir + "/images";
  BSP_TRY(criu_, start_criu(criu_paths_, "dump", dump_arguments(criu_paths_, program_, images), user_, {}));
  report(control::Dumping{.migration = migration_, .pid = criu_});
  fault_point("init.dumping", criu_);
  return {};
}

void Supervisor::end_dump_if_ready() {
  if (state_ != State::kDumping || criu_ > 0 || worker_ > 0) return;
  if (found_ && failure_.empty()) return;  // the worker was faster
  found_.reset();
  capture_.reset();
  kill_criu_at_.reset();
  if (!failure_.empty()) {
    fail_dump(failure_);
  } else {
    fault_point("init.dumped", program_);
    state_ = State::kDumped;
    report(control::Dumped{.migration = migration_, .ns = nanoseconds_since(action_start_)});
  }
  if (std::exchange(continue_after_dump_, false)) continue_program();
}

void Supervisor::fail_dump(const std::string& why) {
  state_ = State::kStopped;
  report(control::DumpFailed{.migration = migration_, .message = trimmed(why)});
}

void Supervisor::abandon() {
  if (state_ == State::kDumping) {
    if (failure_.empty()) failure_ = "the dump was abandoned";
    if (criu_ == 0 && worker_ > 0) ::kill(worker_, SIGKILL);
    if (!kill_criu_at_) kill_criu_at_ = Steady::now() + kAbandonGrace;
  } else if (state_ == State::kRestoring) {
    if (criu_ > 0) ::kill(criu_, SIGKILL);
    if (worker_ > 0) ::kill(worker_, SIGKILL);
  }
}

// --- Target -----------------------------------------------------------------------------------------

Result<void> check_moved(const MovedProgram& moved, CpuFeatures machine, const std::string& runtime) {
  if (moved.version != kMovedVersion || (moved.ring != 0 && moved.ring != BSP_RING_VERSION))
    return fail(
        ErrorCode::kRefused,
        std::format("RuntimeDiffers: the checkpoint has version {}, and its shim version {} of the ring, while this "
                    "pod's runtime has {} and {}; all pods of a job need the same runtime image",
                    moved.version, moved.ring, kMovedVersion, BSP_RING_VERSION));
  if (!moved.runtime.empty() && !runtime.empty() && moved.runtime != runtime)
    return fail(
        ErrorCode::kRefused,
        std::format("RuntimeDiffers: the program runs with libbspmpi.so {}, and this pod has {}; all pods of a job "
                    "need the same runtime image",
                    moved.runtime.substr(0, 12), runtime.substr(0, 12)));
  if (const CpuFeatures lacks = machine.lacks(CpuFeatures(moved.features)); lacks.known())
    return fail(
        ErrorCode::kRefused,
        std::format("CPUFeaturesDiffer: this node's CPU lacks {}, which the program's libraries have seen and may "
                    "use; spec.cpu: Common keeps them to what the CPUs of all Sets have",
                    lacks.text()));
  return {};
}

void Supervisor::begin_restore(const control::Restore& asked) {
  const std::string& migration = asked.migration;
  if (state_ == State::kRestored && migration == migration_) {
    report(control::Restored{
        .migration = migration_, .pid = program_, .features = cpu_.seen.bits(), .note = restoring_.note});
    return;
  }
  if (state_ == State::kRestoring && migration == migration_) return;
  if (state_ != State::kWaiting || (!options_.restore && options_.awaits_start)) {
    report(control::RestoreFailed{
        .migration = migration, .message = "this pod already has a program (" + std::string(to_string(state_)) + ")"});
    return;
  }
  migration_ = migration;
  restoring_.ignores_files = asked.ignore_files != 0;
  restoring_.note.clear();
  state_ = State::kRestoring;
  if (auto begun = try_restore(); !begun) fail_restore(begun.error().message);
}

Result<void> Supervisor::try_restore() {
  end_warm_up();
  action_start_ = Steady::now();
  const std::string images = options_.run_dir + "/images/" + migration_;
  BSP_TRY(const std::string text, read_file(images + "/" + std::string(kStateFile)));
  BSP_TRY(const control::Message packet, control::decode(text));
  const auto moved = control::from_packet<MovedProgram>(packet);
  BSP_CHECK_OK(check_moved(moved, cpu_.of_machine, build_id_of(options_.runtime_dir + "/libbspmpi.so")));
  if (moved.uid != user_.uid || moved.gid != user_.gid) {
    return fail(ErrorCode::kRefused, "the program ran as " + std::to_string(moved.uid) + ":" +
                                         std::to_string(moved.gid) + ", but this pod is for " +
                                         std::to_string(user_.uid) + ":" + std::to_string(user_.gid));
  }
  // criu, without CAP_SETGID, can restore only the groups that it has itself.
  restoring_.user = user_;
  restoring_.user.groups = parse_groups(moved.groups);
  if (!std::ranges::includes(user_.groups, restoring_.user.groups)) {
    return fail(ErrorCode::kRefused, "the program has the supplementary groups " + moved.groups +
                                         ", this pod has only " + groups_text(user_.groups));
  }
  restoring_.pid = moved.pid;
  restoring_.seen = CpuFeatures(moved.features);
  restoring_.begun_ns = moved.begun_ns;
  if (restoring_.pid <= 1) return fail(ErrorCode::kInvalid, "the checkpoint specifies no process");
  const auto taken = process_stat(restoring_.pid);
  if (taken)
    return fail(ErrorCode::kConflict, "PID " + std::to_string(restoring_.pid) + " is already in use in this container",
                true);
  if (taken.error().code != ErrorCode::kNotFound) return std::unexpected(taken.error());
  BSP_CHECK_OK(out_.open(user_));
  BSP_CHECK_OK(err_.open(user_));
  out_.set_bytes(moved.out_bytes);
  err_.set_bytes(moved.err_bytes);
  BSP_CHECK_OK(prepare_work_dir(criu_paths_));
  restore_pipes_ = {{.descriptor = 3, .was = moved.out}, {.descriptor = 4, .was = moved.err}};
  // A pipe without a name had no holder any more: the program has closed its end.
  std::erase_if(restore_pipes_, [](const InheritedPipe& pipe) { return pipe.was.empty(); });
  const std::string archive = images + "/" + std::string(kCarryFile), notes = images + "/" + std::string(kNotesFile);
  const bool compares = !restoring_.ignores_files && ::access(notes.c_str(), F_OK) == 0;
  if (moved.carried == 0 && !compares) return start_restore_criu();
  const bool carried = moved.carried != 0;
  // What the worker says and doesn't fail for is a note for people.
  BSP_TRY(worker_,
          start_worker(restoring_.user, worker_log(), [this, &archive, &notes, compares, carried]() -> Result<void> {
            if (compares) {
              BSP_TRY(const std::string noted, read_file(notes));
              BSP_TRY(const Notes files, decode_notes(noted));
              BSP_TRY(const std::string said, check_shared_files(files, shared_mounts()));
              std::fprintf(stderr, "%s\n", said.c_str());
            }
            if (!carried) return {};
            const Age age = age_of("/", changes_.since_ns());
            return read_carry(archive, age, options_.shares_memory ? "/dev/shm" : "");
          }));
  return {};
}

Result<void> Supervisor::start_restore_criu() {
  const std::string images = options_.run_dir + "/images/" + migration_;
  BSP_TRY(criu_, start_criu(criu_paths_, "restore", restore_arguments(criu_paths_, images, restore_pipes_),
                            restoring_.user, {out_.write_end(), err_.write_end()}));
  fault_point("init.restoring", criu_);
  return {};
}

// The carried files are in place, so everything the process maps or has open exists now.
void Supervisor::on_unpacked(int status) {
  std::string said = trimmed(read_file(worker_log()).value_or(""));
  if (said.size() > kMostNote) said.resize(kMostNote);
  restoring_.note = said;
  if (status != 0) {
    fail_restore(said.empty() ? "unpacking the carried files was interrupted" : said);
  } else if (auto begun = start_restore_criu(); !begun) {
    fail_restore(begun.error().message);
  }
}

void Supervisor::on_restore_criu(int status) {
  if (status != 0) {
    fail_restore(criu_failure(criu_paths_, "restore", user_, status));
    return;
  }
  // criu leaves a SIGSTOP pending: the process stops before its first own instruction, but perhaps after criu has
  // exited.
  const auto deadline = Steady::now() + kStopLimit;
  auto stat = process_stat(restoring_.pid);
  while (stat && stat->state != 'T' && stat->state != 'Z' && Steady::now() < deadline) {
    ::usleep(200);
    stat = process_stat(restoring_.pid);
  }
  if (!stat || stat->parent != ::getpid() || stat->state != 'T') {
    fail_restore(!stat || stat->state == 'Z' ? "the restored process exited immediately"
                                             : "the restored process is not stopped");
    return;
  }
  program_ = restoring_.pid;
  cpu_.seen = restoring_.seen;
  begun_ns_ = restoring_.begun_ns != 0 ? restoring_.begun_ns : changes_.since_ns();
  out_.close_write_end();
  err_.close_write_end();
  state_ = State::kRestored;
  fault_point("init.restored", program_);
  report(control::Restored{.migration = migration_,
                           .pid = program_,
                           .ns = nanoseconds_since(action_start_),
                           .features = cpu_.seen.bits(),
                           .note = restoring_.note});
  // After the answer, so that it doesn't prolong the pause. Threads that the program starts from now on must not get
  // numbers that criu will need in the next pod.
  advance_pid_cursor(kFirstProgramPid);
}

void Supervisor::fail_restore(const std::string& why) {
  kill_descendants();
  out_.close_write_end();
  err_.close_write_end();
  program_ = 0;
  criu_ = 0;
  worker_ = 0;
  state_ = State::kWaiting;
  report(control::RestoreFailed{.migration = migration_, .message = trimmed(why)});
}

void Supervisor::discard(const std::string& migration) {
  if (migration == migration_ && state_ == State::kRestoring) {
    abandon();  // answered by restore-failed
    return;
  }
  if (migration == migration_ && state_ == State::kRestored && program_ > 0) {
    leaving_ = Leaving::kDiscarded;  // answered when it was reaped
    ::kill(program_, SIGKILL);
    return;
  }
  if (state_ == State::kWaiting) {
    report(control::Discarded{.migration = migration});
  }
}

// Another program must find this container as the image made it, so one with files of the last program ends.
void Supervisor::vacate() {
  if (state_ == State::kWaiting) report(control::Vacated{});
  if (program_ <= 0) return;
  if (state_ == State::kDumped && !left_files_) leaving_ = Leaving::kVacated;
  kill_program("");
}

bool Supervisor::become_vacant() {
  kill_descendants();
  int status = -1;
  const auto cleans = start_worker(user_, worker_log(), [] { return remove_sessions(); });
  if (!cleans || ::waitpid(*cleans, &status, 0) != *cleans || status != 0) return false;
  for (OutputRelay* relay : {&out_, &err_}) {
    relay->drain();
    relay->flush(kLastOutputMs);
  }
  options_.restore = vacated_ = true;
  held_ = false;
  held_processes_.clear();
  fresh_.reset();
  kill_reason_.clear();
  state_ = State::kWaiting;
  report(control::Vacated{});
  return true;
}

// In a waiting pod every descendant is criu or a half-restored process.
void Supervisor::kill_descendants() {
  for (int round = 0; round < 1000; ++round) {
    const auto all = descendants_of_init();
    bool alive = !all;  // or it can't be known
    for (const ProcessStat& process : all.value_or(std::vector<ProcessStat>())) {
      if (process.pid == warm_) continue;
      ::kill(process.pid, SIGKILL);
      alive = true;
    }
    if (!alive) return;
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    ::usleep(1000);
  }
}

}  // namespace bsp::init
