#include "sidecar/init/memory/borrowed_thread.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <format>
#include <string>
#include <utility>

#include "sidecar/init/files.h"

namespace bsp::init {
namespace {

constexpr int kAtCall = SIGTRAP | 0x80;                   // PTRACE_O_TRACESYSGOOD
constexpr int kStopped = PTRACE_EVENT_STOP;               // by PTRACE_INTERRUPT, or with the process
constexpr std::uint64_t kAllSignals = ~std::uint64_t{0};  // but those that can't be blocked
constexpr std::uint16_t kCallInstruction = 0x050f;        // syscall
constexpr std::uint64_t kCallBytes = sizeof kCallInstruction;
constexpr std::chrono::seconds kStopLimit{2};

std::unexpected<Error> failed(const char* what) {
  if (errno == ESRCH) return fail(ErrorCode::kUnavailable, "the program has ended");
  return fail_errno(std::string("borrowing a thread of the program: ") + what);
}

bool is_call(pid_t thread, std::uint64_t address) {
  errno = 0;
  const long word = ::ptrace(PTRACE_PEEKTEXT, thread, address, nullptr);
  return errno == 0 && static_cast<std::uint16_t>(word) == kCallInstruction;
}

}  // namespace

// One that is about to make a system call, or has just made one, is outside of any restartable sequence (rseq(2)), which the detour would
// break. The thread that stopped the process always is.
Result<BorrowedThread> BorrowedThread::of(pid_t process) {
  BSP_TRY(const auto threads, list_dir("/proc/" + std::to_string(process) + "/task"));
  for (const std::string& thread : threads) {
    BorrowedThread borrowed(process, std::atoi(thread.c_str()));
    BSP_TRY(const bool usable, borrowed.stop());
    if (usable) return borrowed;
  }
  return fail(ErrorCode::kFailed, "no thread of the stopped program is at a system call");
}

BorrowedThread::BorrowedThread(BorrowedThread&& other) noexcept
    : process_(other.process_),
      thread_(std::exchange(other.thread_, 0)),
      before_(other.before_),
      signals_before_(other.signals_before_),
      instruction_(other.instruction_),
      called_(other.called_),
      held_stop_(other.held_stop_) {}

BorrowedThread::~BorrowedThread() {
  if (thread_ > 0) give_back();
}

Result<bool> BorrowedThread::stop() {
  const pid_t thread = std::exchange(thread_, 0);  // unless it can be had
  if (::ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACESYSGOOD) != 0) {
    const int why = errno;
    const auto stat = process_stat(process_);
    errno = !stat || stat->state == 'Z' ? ESRCH : why;
    return failed("PTRACE_SEIZE");
  }
  thread_ = thread;
  if (::ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) != 0) return failed("PTRACE_INTERRUPT");
  BSP_TRY(int at, next_stop());
  while (at != kStopped) {
    held_stop_ = held_stop_ || at == SIGSTOP;
    if (::ptrace(PTRACE_CONT, thread, nullptr, nullptr) != 0) return failed("PTRACE_CONT");
    BSP_TRY(at, next_stop());
  }
  if (::ptrace(PTRACE_GETREGS, thread, nullptr, &before_) != 0) return failed("PTRACE_GETREGS");
  if (::ptrace(PTRACE_GETSIGMASK, thread, sizeof signals_before_, &signals_before_) != 0)
    return failed("PTRACE_GETSIGMASK");
  const std::uint64_t next = before_.rip;
  for (const std::uint64_t address : {next - kCallBytes, next})
    if (is_call(thread, address)) instruction_ = address;
  return instruction_ != 0;
}

Result<std::int64_t> BorrowedThread::call(std::uint64_t number, const std::array<std::uint64_t, 6>& arguments) {
  user_regs_struct registers = before_;
  registers.rip = instruction_;
  registers.orig_rax =
      static_cast<std::uint64_t>(-1);  // it returns from no system call, which might have to be restarted
  registers.rax = number;
  registers.rdi = arguments[0];
  registers.rsi = arguments[1];
  registers.rdx = arguments[2];
  registers.r10 = arguments[3];
  registers.r8 = arguments[4];
  registers.r9 = arguments[5];
  if (!std::exchange(called_, true) &&
      ::ptrace(PTRACE_SETSIGMASK, thread_, sizeof kAllSignals, &kAllSignals) != 0)  // pending ones stay so
    return failed("PTRACE_SETSIGMASK");
  if (::ptrace(PTRACE_SETREGS, thread_, nullptr, &registers) != 0) return failed("PTRACE_SETREGS");
  BSP_CHECK_OK(run_to(kAtCall));  // before it
  BSP_CHECK_OK(run_to(kAtCall));  // after it
  if (::ptrace(PTRACE_GETREGS, thread_, nullptr, &registers) != 0) return failed("PTRACE_GETREGS");
  return static_cast<std::int64_t>(registers.rax);
}

// A SIGSTOP, which can't be blocked, is kept for give_back().
Result<void> BorrowedThread::run_to(int wanted) {
  for (;;) {
    if (::ptrace(wanted == kAtCall ? PTRACE_SYSCALL : PTRACE_CONT, thread_, nullptr, nullptr) != 0)
      return failed("PTRACE_SYSCALL");
    BSP_TRY(const int at, next_stop());
    if (at == wanted) return {};
    held_stop_ = held_stop_ || at == SIGSTOP;
  }
}

// Leaves an end for the supervisor to reap.
Result<int> BorrowedThread::next_stop() const {
  siginfo_t info{};
  int failure = 0;
  do {
    failure = ::waitid(P_PID, static_cast<id_t>(thread_), &info, WSTOPPED | WEXITED | WNOWAIT | __WALL);
  } while (failure != 0 && errno == EINTR);
  if (failure != 0 || info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
    return fail(ErrorCode::kUnavailable, "the program has ended");
  (void)::waitid(P_PID, static_cast<id_t>(thread_), &info, WSTOPPED | __WALL);
  const int event = info.si_status >> 8;
  return event != 0 ? event : info.si_status;
}

void BorrowedThread::give_back() {
  // Where it takes notice of stops and signals, so that the call that it may wait in is restarted from there.
  if (called_ && ::ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) == 0 && run_to(kStopped)) {
    (void)::ptrace(PTRACE_SETREGS, thread_, nullptr, &before_);
    (void)::ptrace(PTRACE_SETSIGMASK, thread_, sizeof signals_before_, &signals_before_);
  }
  if (held_stop_) ::kill(process_, SIGSTOP);
  (void)::ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  const auto deadline = std::chrono::steady_clock::now() + kStopLimit;
  for (auto stat = process_stat(process_); stat && stat->state != 'T' && stat->state != 'Z';
       stat = process_stat(process_)) {
    if (std::chrono::steady_clock::now() >= deadline) break;
    ::usleep(50);
  }
}

}  // namespace bsp::init
