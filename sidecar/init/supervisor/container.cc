#include "sidecar/init/supervisor/container.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <format>
#include <ranges>
#include <utility>

#include "base/core/fd.h"
#include "base/core/read_file.h"
#include "crds/names.h"
#include "sidecar/init/carry.h"
#include "sidecar/init/user.h"

namespace bsp::init {

Result<void> Container::prepare() {
  BSP_TRY(const std::string spec, user_spec(options.user, options.run_dir + "/user"));
  BSP_TRY(user, resolve_user(spec, options.groups));
  BSP_TRY(carry_paths, parse_carry_paths(options.carry_paths));
  const auto machine = CpuFeatures::of_this_machine_or(options.cpu_features);
  if (!machine)
    return fail(ErrorCode::kInvalid, std::format("{} must be names of CPU features between commas, not \"{}\"",
                                                 names::kEnvCpuFeatures, options.cpu_features));
  cpu = *machine;
  // An emptyDir is writable for every user. The sticky bit prevents the program from renaming the sidecar's files
  // there, above all the control socket: only a file's owner, or root as the directory's, may.
  struct stat shared{};
  if (::stat(options.run_dir.c_str(), &shared) == 0 && (shared.st_mode & S_IWOTH) != 0 &&
      (shared.st_mode & S_ISVTX) == 0)
    (void)::chmod(options.run_dir.c_str(), (shared.st_mode & 07777) | S_ISVTX);
  criu = {.binary = options.criu, .work = options.run_dir + "/criu"};
  return {};
}

Mounts Container::shared_mounts() const {
  std::vector<std::string> own = carry_paths;
  for (const auto part : std::views::split(options.pod_volumes, ':')) own.emplace_back(part.begin(), part.end());
  std::erase(own, "");
  return {read_file("/proc/self/mountinfo").value_or(""), std::move(own)};
}

Result<void> Container::open_output() {
  BSP_CHECK_OK(out.open(user));
  return err.open(user);
}

void Container::close_output() {
  out.close_write_end();
  err.close_write_end();
}

void Container::drain_output() {
  out.drain();
  err.drain();
}

Result<pid_t> Container::start_worker(const User& as, const std::function<Result<int>()>& body) const {
  const std::string log = worker_log();
  ::unlink(log.c_str());
  const Fd errors(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!errors) return fail_errno("opening " + log);
  return fork_as(as, errors.get(), [&body] {
    const auto done = body();
    if (!done) std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return done.value_or(1);
  });
}

std::uint64_t nanoseconds_since(std::chrono::steady_clock::time_point start) {
  const auto took = std::chrono::steady_clock::now() - start;
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count());
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace bsp::init
