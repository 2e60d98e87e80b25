// A move (criu streaming while it dumps, checksums, reception on the target's tmpfs, restore) compared with raw `criu
// dump` to a tmpfs + raw `criu restore` of the same stopped process in the same kind of container. The raw time
// includes no transfer; the ratio is what a move costs beyond criu.
//
// Prints a table and writes BSP_BENCH_JSON. Arguments: sizes in MiB (default 8 64 256 1024).
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "sidecar/init/criu.h"
#include "sidecar/init/files.h"
#include "tests/integration/checkpoint_harness.h"

namespace bsp::test {
namespace {

using Steady = std::chrono::steady_clock;
constexpr int kRounds = 3;
const init::User kUser{.uid = 1000, .gid = 1000, .home = ""};
const init::CriuPaths kRaw{.binary = "/bsp/bin/criu", .work = "/run/bsp/raw"};

double ms_since(Steady::time_point start) {
  return std::chrono::duration<double, std::milli>(Steady::now() - start).count();
}

// Runs `action` inside the container's namespaces and returns the milliseconds that criu took; < 0: failed.
double raw_criu(const Pod& pod, std::string_view action, const std::vector<std::string>& argv,
                const std::vector<int>& more) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return -1;
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  const pid_t entered = ::fork();
  if (entered == 0) {
    for (const char* space : {"uts", "ipc", "net", "cgroup", "pid", "mnt"}) {
      const std::string path = "/proc/" + std::to_string(pod.init_pid()) + "/ns/" + space;
      const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      if (::setns(fd.get(), 0) != 0) ::_exit(1);
    }
    // Only a child of this process is in the PID namespace.
    const pid_t inner = ::fork();
    if (inner == 0) {
      double took = -1;
      const auto start = Steady::now();
      if (auto criu = init::start_criu(kRaw, action, argv, kUser, more)) {
        int status = 0;
        ::waitpid(*criu, &status, 0);
        if (status == 0) took = ms_since(start);
        if (status != 0) {
          std::fprintf(stderr, "%s\n", init::criu_failure(kRaw, action, kUser, status).c_str());
        }
      }
      [[maybe_unused]] const ssize_t n = ::write(write_end.get(), &took, sizeof(took));
      ::_exit(0);
    }
    ::waitpid(inner, nullptr, 0);
    ::_exit(0);
  }
  ::waitpid(entered, nullptr, 0);
  double took = -1;
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  if (::read(read_end.get(), &took, sizeof(took)) != sizeof(took)) return -1;
  return took;
}

struct Sample {
  double dump = 0;     // the move's: requested -> verified at the target
  double restore = 0;  // the move's: requested -> restored
  double raw_dump = 0;
  double raw_restore = 0;
};

bool measure(int mib, Sample& sample) {
  const std::vector<std::string> command{"/gated", "steps=4", "mb=" + std::to_string(mib)};
  const std::string size = std::to_string(mib + 100) + "m";
  {
    Pod source({.command = command, .user = "1000:1000", .run_size = size});
    Pod target({.user = "1000:1000", .run_size = size});
    if (!source.expect(control::Stopped::kVerb) || !target.expect(to_string(control::ProgramState::kWaiting)))
      return false;
    const MoveResult moved = dump_into(source, target, "bench");
    if (moved.verdict.verb != control::Dumped::kVerb) return false;
    sample.dump = moved.ms;
    const auto start = Steady::now();
    target.send(control::Restore::kVerb, {{"migration", "bench"}});
    if (!target.expect(control::Restored::kVerb)) return false;
    sample.restore = ms_since(start);
  }
  Pod source({.command = command, .user = "1000:1000", .run_size = size});
  Pod target({.user = "1000:1000", .run_size = size});
  const auto stopped = source.expect(control::Stopped::kVerb);
  if (!stopped || !target.expect(to_string(control::ProgramState::kWaiting))) return false;
  const auto pid = static_cast<pid_t>(stopped->number("pid"));
  std::vector<init::InheritedPipe> pipes;
  Fd sinks[2];
  for (int i = 0; i < 2; ++i) {
    const auto host_pid = source.find("gated").front();
    pipes.push_back(
        {.descriptor = 3 + i,
         .was = init::read_link("/proc/" + std::to_string(host_pid) + "/fd/" + std::to_string(1 + i)).value_or("")});
    const init::FsIdentity as_program(kUser);  // criu reopens the pipe as that user
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    sinks[i] = Fd(ends[1]);
    const Fd unread(ends[0]);
  }
  for (const Pod* pod : {&source, &target}) {
    std::filesystem::create_directories(pod->path(kRaw.work));
    ::chmod(pod->path(kRaw.work).c_str(), 0777);
  }
  // Not streamed: criu writes its files itself.
  auto dump = init::dump_arguments(kRaw, pid, kRaw.work);
  std::erase(dump, "--stream");
  sample.raw_dump = raw_criu(source, "dump", dump, {});
  if (sample.raw_dump < 0) return false;
  std::filesystem::copy(source.path(kRaw.work), target.path(kRaw.work),
                        std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
  const std::vector<std::string> names = init::list_dir(target.path(kRaw.work)).value();
  for (const std::string& name : names) {
    ::chmod(target.path(kRaw.work + "/" + name).c_str(), 0644);
    if (name.ends_with(".log") || name.ends_with(".out")) {
      std::filesystem::remove(target.path(kRaw.work + "/" + name));
    }
  }
  sample.raw_restore =
      raw_criu(target, "restore", init::restore_arguments(kRaw, kRaw.work, pipes), {sinks[0].get(), sinks[1].get()});
  return sample.raw_restore >= 0;
}

double total(const Sample& s) { return s.dump + s.restore; }
double raw_total(const Sample& s) { return s.raw_dump + s.raw_restore; }

int run(const std::vector<int>& sizes) {
  std::string why;
  if (test_image(&why).empty()) {
    std::fprintf(stderr, "no Podman: %s\n", why.c_str());
    return 1;
  }
  std::printf("%8s %28s %28s %8s\n", "MiB", "dump+stream+verify, restore", "raw dump, restore", "ratio");
  std::string json;
  for (const int mib : sizes) {
    std::vector<Sample> samples;
    for (int round = 0; round < kRounds; ++round) {
      Sample sample;
      if (!measure(mib, sample)) return 1;
      samples.push_back(sample);
    }
    // The round with the median ratio: both halves of a ratio come from one round.
    std::ranges::sort(samples, {}, [](const Sample& s) { return total(s) / raw_total(s); });
    const Sample& s = samples[kRounds / 2];
    const double ratio = total(s) / raw_total(s);
    std::printf("%8d %12.1f ms %10.1f ms %12.1f ms %10.1f ms %8.2f\n", mib, s.dump, s.restore, s.raw_dump,
                s.raw_restore, ratio);
    std::fflush(stdout);
    char line[256];
    std::snprintf(line, sizeof(line),
                  "%s{\"mib\": %d, \"dump_stream_verify_ms\": %.1f, \"restore_ms\": %.1f, "
                  "\"raw_dump_ms\": %.1f, \"raw_restore_ms\": %.1f, \"ratio\": %.3f}",
                  json.empty() ? "" : ", ", mib, s.dump, s.restore, s.raw_dump, s.raw_restore, ratio);
    json += line;
  }
  if (const char* file = std::getenv("BSP_BENCH_JSON")) {
    std::ofstream(file) << "{\"checkpoint\": [" << json << "]}\n";
  }
  return 0;
}

}  // namespace
}  // namespace bsp::test

int main(int argc, char** argv) {
  std::vector<int> sizes;
  for (int i = 1; i < argc; ++i) sizes.push_back(std::atoi(argv[i]));
  if (sizes.empty()) sizes = {8, 64, 256, 1024};
  return bsp::test::run(sizes);
}
