#include "tests/integration/checkpoint_harness.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <format>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/core/read_file.h"
#include "sidecar/init/files.h"

namespace bsp::test {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::seconds kPatience{30};
constexpr const char* kPodman = BSP_SOURCE_DIR "/tests/integration/podman";

std::string runtime_dir() { return std::string(BSP_BINARY_DIR) + "/checkpoint/runtime"; }

std::string make_image(std::string* why) {
  const std::string root = std::string(BSP_BINARY_DIR) + "/checkpoint/root.tar";
  std::error_code missing;
  const auto stamp = std::filesystem::last_write_time(root, missing).time_since_epoch().count();
  // One image per build of the programs; removes those of older builds.
  const std::string repository = "localhost/bsp-checkpoint-test";
  const std::string name = repository + ":" + std::to_string(static_cast<std::uint64_t>(stamp));
  if (podman({"image", "exists", name}).status == 0) return name;
  std::istringstream old(podman({"images", "--format", "{{.Tag}}", repository}).output);
  for (std::string tag; std::getline(old, tag);) podman({"rmi", repository + ":" + tag});
  const CommandResult made = podman({"import", "--quiet", root, name});
  if (made.status == 0) return name;
  if (why != nullptr) *why = made.output;
  return "";
}

std::string read_until(std::string_view words, const std::function<std::string()>& read) {
  const auto deadline = Steady::now() + kPatience;
  std::string found;
  while (!(found = read()).contains(words) && Steady::now() < deadline) ::usleep(10'000);
  return found;
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& argv) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(write_end.get(), 1);
    ::dup2(write_end.get(), 2);
    std::vector<char*> args;
    for (const std::string& a : argv) args.push_back(const_cast<char*>(a.c_str()));
    args.push_back(nullptr);
    ::execvp(args[0], args.data());
    ::_exit(127);
  }
  write_end.reset();
  CommandResult result;
  char piece[4096];
  for (;;) {
    const ssize_t n = ::read(read_end.get(), piece, sizeof(piece));
    if (n <= 0) break;
    result.output.append(piece, static_cast<std::size_t>(n));
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

CommandResult podman(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), kPodman);
  return run_command(arguments);
}

std::string test_image(std::string* why) {
  static std::string reason;
  static const std::string name = make_image(&reason);
  if (why != nullptr) *why = reason;
  return name;
}

Pod::Pod(const PodOptions& options) {
  static int serial = 0;
  name_ = "bsp-checkpoint-test-" + std::to_string(::getpid()) + "-" + std::to_string(++serial);
  std::vector<std::string> args{
      "run",        "-d",
      "--name",     name_,
      "--cap-drop", "ALL",
      "--cap-add",  "CHECKPOINT_RESTORE,SYS_PTRACE,SETPCAP,SETUID,SETGID,KILL",
      "--user",     "0",
      "--network",  "none",
      "--tmpfs",    "/tmp",
      "--tmpfs",    "/run",
      "--mount",    "type=tmpfs,destination=/run/bsp,tmpfs-mode=0777,tmpfs-size=" + options.run_size,
      "-v",         runtime_dir() + ":/bsp:ro",
      "-e",         "BSP_USER=" + options.user};
  if (const char* reports = std::getenv("BSP_SANITIZER_REPORTS"); reports != nullptr)  // tests/sanitizers/run.sh
    args.insert(args.end(), {"-v", std::format("{0}:{0}", reports), "-e", "ASAN_OPTIONS", "-e", "UBSAN_OPTIONS"});
  if (!options.seccomp) args.insert(args.end(), {"--security-opt", "seccomp=unconfined"});
  if (!options.carry_paths.empty()) {
    args.insert(args.end(), {"-e", "BSP_CARRY_PATHS=" + options.carry_paths});
  }
  for (const auto& [key, value] : options.env) args.insert(args.end(), {"-e", key + "=" + value});
  args.insert(args.end(), options.more.begin(), options.more.end());
  args.insert(args.end(), {test_image(), "/bsp/bsp-init"});
  if (options.command.empty()) args.emplace_back("--restore");
  args.emplace_back("--");
  args.insert(args.end(), options.command.begin(), options.command.end());
  const CommandResult started = podman(args);
  EXPECT_EQ(started.status, 0) << started.output;
  const CommandResult pid = podman({"inspect", "--format", "{{.State.Pid}}", name_});
  pid_ = std::atoi(pid.output.c_str());
  EXPECT_GT(pid_, 0) << pid.output;

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string control = path("/run/bsp/control");
  control.copy(address.sun_path, sizeof(address.sun_path) - 1);
  listener_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0)
      << control << ": " << std::strerror(errno) << "\n"
      << logs() << errors();
  ::chmod(control.c_str(), 0666);
  ::listen(listener_.get(), 4);
}

Pod::~Pod() { podman({"rm", "-f", "-t", "0", name_}); }

std::string Pod::path(const std::string& inside) const { return "/proc/" + std::to_string(pid_) + "/root" + inside; }

void Pod::accept() {
  pollfd ready{listener_.get(), POLLIN, 0};
  if (::poll(&ready, 1, 10'000) != 1) return;
  socket_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

std::optional<control::Message> Pod::expect_any(std::initializer_list<std::string_view> verbs) {
  const auto deadline = Steady::now() + kPatience;
  while (Steady::now() < deadline) {
    if (!socket_) accept();
    if (!socket_) break;
    pollfd ready{socket_.get(), POLLIN, 0};
    if (::poll(&ready, 1, 1000) != 1) continue;
    auto message = control::receive(socket_.get());
    if (!message) {
      socket_.reset();
      continue;
    }
    heard_ += control::encode(*message) + "\n";
    // Events without a connected sidecar are part of the state in the next hello.
    const std::string what = message->verb == control::Hello::kVerb ? message->text("state") : message->verb;
    if (std::ranges::find(verbs, message->verb) != verbs.end() || std::ranges::find(verbs, what) != verbs.end()) {
      return *message;
    }
    if (message->verb.ends_with("-failed")) {
      ADD_FAILURE() << "waiting for " << *verbs.begin() << ": " << control::encode(*message);
      return std::nullopt;
    }
  }
  ADD_FAILURE() << "no message '" << *verbs.begin() << "' from " << name_ << "\n"
                << logs() << errors() << "heard:\n"
                << heard_;
  return std::nullopt;
}

void Pod::send(std::string_view verb, std::map<std::string, std::string, std::less<>> fields) {
  if (verb == control::Continue::kVerb) open_epoch();
  if (!socket_) accept();
  const auto sent = control::send(socket_.get(), {std::string(verb), std::move(fields)});
  EXPECT_TRUE(sent) << sent.error().message;
}

void Pod::open_epoch() {
  static std::atomic<int> epoch = 0;
  std::ofstream(path("/run/bsp/epoch")) << ++epoch;
}

void Pod::disconnect() { socket_.reset(); }

std::string Pod::logs() { return run_command({"sh", "-c", "\"$0\" logs \"$1\" 2>/dev/null", kPodman, name_}).output; }

std::string Pod::errors() {
  return run_command({"sh", "-c", "\"$0\" logs \"$1\" 2>&1 >/dev/null", kPodman, name_}).output;
}

std::string Pod::logs_with(std::string_view words) {
  return read_until(words, [this] { return logs(); });
}

std::string Pod::errors_with(std::string_view words) {
  return read_until(words, [this] { return errors(); });
}

int Pod::wait() {
  const CommandResult waited = podman({"wait", name_});
  return std::atoi(waited.output.c_str());
}

std::string Pod::exec(const std::vector<std::string>& argv) {
  std::vector<std::string> args{"exec", name_};
  args.insert(args.end(), argv.begin(), argv.end());
  return podman(args).output;
}

std::vector<int> Pod::find(const std::string& name) const {
  const auto space = [](const std::string& pid) { return init::read_link("/proc/" + pid + "/ns/pid").value_or(""); };
  const std::string own_space = space(std::to_string(pid_));
  std::vector<int> found;
  const std::vector<std::string> entries = init::list_dir("/proc").value();
  for (const std::string& entry : entries) {
    const int pid = std::atoi(entry.c_str());
    if (pid <= 0 || space(entry) != own_space) continue;
    const auto stat = init::process_stat(pid);
    if (stat && stat->name == name) found.push_back(pid);
  }
  return found;
}

char Pod::program_state() {
  for (const int pid : find("gated")) {
    if (const auto stat = init::process_stat(pid)) return stat->state;
  }
  return '-';
}

std::vector<std::string> Pod::program_identity() const {
  const std::vector<int> programs = find("gated");
  if (programs.size() != 1) return {"expected one program, found " + std::to_string(programs.size())};
  const std::string dir = "/proc/" + std::to_string(programs.front()) + "/";
  std::vector<std::string> lines;
  const auto add_lines = [&](const std::string& file, std::initializer_list<std::string_view> starts) {
    std::istringstream text(read_file(dir + file).value_or(file + " can't be read"));
    for (std::string line; std::getline(text, line);)
      if (starts.size() == 0 || std::ranges::any_of(starts, [&](auto start) { return line.starts_with(start); }))
        lines.push_back(file + " " + line);
  };
  add_lines("status", {"Name:", "Umask:", "Uid:", "Gid:", "Groups:", "Threads:", "SigBlk:", "SigIgn:", "SigCgt:", "Cap",
                       "NoNewPrivs:", "Seccomp"});
  for (const char* file : {"limits", "oom_score_adj", "coredump_filter", "timerslack_ns", "loginuid"})
    add_lines(file, {});
  for (const char* link : {"cwd", "root", "exe"})
    lines.push_back(std::string(link) + " " + init::read_link(dir + link).value_or("can't be read"));
  lines.push_back("nice " + std::to_string(::getpriority(PRIO_PROCESS, static_cast<id_t>(programs.front()))));
  lines.push_back("scheduler " + std::to_string(::sched_getscheduler(programs.front())));
  return lines;
}

MoveResult dump_into(Pod& source, Pod& target, const std::string& migration, const transfer::Sink& interfere) {
  MoveResult result;
  auto session = transfer::CaptureSession::open(source.images(), migration);
  auto receiver = transfer::Receiver::open(target.images(), migration);
  if (!session || !receiver) {
    ADD_FAILURE() << (session ? receiver.error() : session.error()).message;
    return result;
  }
  std::thread relay([&] {
    result.sent = (*session)->run([&](std::span<const std::byte> bytes) -> Result<void> {
      if (interfere) BSP_CHECK_OK(interfere(bytes));
      if (auto fed = (*receiver)->feed(bytes); !fed) {
        result.receive_error = fed.error();
        return std::unexpected(fed.error());
      }
      return {};
    });
  });
  const auto start = Steady::now();
  source.send(control::Dump::kVerb, {{"migration", migration}});
  const auto verdict = source.expect_any({control::Dumped::kVerb, control::DumpFailed::kVerb});
  if (verdict && verdict->verb == control::Dumped::kVerb) {
    (*session)->finish();
  } else {
    (*session)->abort(verdict ? verdict->text("message") : "no verdict");
  }
  relay.join();
  result.ms = std::chrono::duration<double, std::milli>(Steady::now() - start).count();
  if (verdict) result.verdict = *verdict;
  return result;
}

void move(Pod& source, Pod& target, const std::string& migration) {
  const MoveResult moved = dump_into(source, target, migration);
  ASSERT_EQ(moved.verdict.verb, control::Dumped::kVerb) << moved.verdict.text("message");
  ASSERT_TRUE(moved.sent) << moved.sent.error().message;
  target.send(control::Restore::kVerb, {{"migration", migration}});
  ASSERT_TRUE(target.expect(control::Restored::kVerb));
  // As the sidecars do: the source copy ends before the target's runs.
  source.send(control::Kill::kVerb);
  ASSERT_TRUE(source.expect(control::Exited::kVerb));
  source.send(control::Bye::kVerb);
  target.send(control::Continue::kVerb);
  ASSERT_TRUE(target.expect(control::Running::kVerb));
}

void move_twice(const PodOptions& program, const PodOptions& target) {
  Pod first(program);
  ASSERT_TRUE(first.expect(control::Stopped::kVerb)) << first.errors();
  Pod second(target);
  move(first, second, "move-1");
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  const auto at_second = second.expect_any({control::Stopped::kVerb, control::Exited::kVerb});
  EXPECT_EQ(second.errors(), "");
  ASSERT_TRUE(at_second && at_second->verb == control::Stopped::kVerb);
  Pod third(target);
  move(second, third, "move-2");
  ASSERT_FALSE(::testing::Test::HasFatalFailure());
  const auto exited = third.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(third.errors(), "");
  EXPECT_EQ(exited->number("code"), 0);
}

void fail_twice(const PodOptions& program) {
  Pod pod(program);
  for (const bool killed : {false, true}) {
    ASSERT_TRUE(pod.expect(control::Stopped::kVerb)) << pod.errors();
    auto session = transfer::CaptureSession::open(pod.images(), "broken");
    ASSERT_TRUE(session);
    // The capture socket is not read: criu hangs in the middle of its first larger file.
    pod.send(control::Dump::kVerb, {{"migration", "broken"}});
    ASSERT_TRUE(pod.expect(control::Dumping::kVerb));
    if (!killed) pod.send(control::Abandon::kVerb, {{"migration", "broken"}});
    for (const int criu : killed ? pod.find("criu") : std::vector<int>()) ::kill(criu, SIGKILL);
    ASSERT_TRUE(pod.expect(control::DumpFailed::kVerb));
    session->reset();
    pod.send(control::Continue::kVerb);
  }
  const auto exited = pod.expect(control::Exited::kVerb);
  ASSERT_TRUE(exited);
  EXPECT_EQ(pod.errors(), "");
  EXPECT_EQ(exited->number("code"), 0);
}

void stay_for(const std::string& reason, const PodOptions& program, const PodOptions& target) {
  Pod source(program);
  ASSERT_TRUE(source.expect(control::Stopped::kVerb)) << source.errors();
  Pod waiting(target);
  const MoveResult moved = dump_into(source, waiting, "held");
  EXPECT_EQ(moved.verdict.verb, control::DumpFailed::kVerb);
  EXPECT_THAT(moved.verdict.text("message"), ::testing::HasSubstr("not migratable now: "));
  EXPECT_THAT(moved.verdict.text("message"), ::testing::HasSubstr(reason));
  source.send(control::Continue::kVerb);
  EXPECT_TRUE(source.expect(control::Stopped::kVerb));
  EXPECT_EQ(source.errors(), "");
}

}  // namespace bsp::test
