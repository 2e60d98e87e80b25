#include "sidecar/init/program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/core/fd.h"

namespace bsp::init {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
constexpr const char* kMachineName = "x86-64";
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
constexpr const char* kMachineName = "aarch64";
#endif

bool runnable(const std::string& file, const User& user, const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return false;
  // Checks this user's mode bits, because faccessat with the effective ids would check root's access.
  if (user.uid == 0) return (info.st_mode & 0111) != 0;
  if (info.st_uid == user.uid) return (info.st_mode & 0100) != 0;
  if (info.st_gid == user.gid || std::ranges::contains(user.groups, info.st_gid)) return (info.st_mode & 0010) != 0;
  (void)file;
  return (info.st_mode & 0001) != 0;
}

Result<void> check_elf(const std::string& file, int fd) {
  Elf64_Ehdr header{};
  if (::pread(fd, &header, sizeof(header), 0) != sizeof(header)) {
    return fail(ErrorCode::kInvalid, file + " is too short to be a program");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != kMachine) {
    return fail(ErrorCode::kInvalid,
                file + " is built for a different architecture than this node's (" + kMachineName + ")");
  }
  for (Elf64_Half i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr program{};
    const auto at = static_cast<off_t>(header.e_phoff + std::size_t{i} * header.e_phentsize);
    if (::pread(fd, &program, sizeof(program), at) != sizeof(program)) break;
    if (program.p_type == PT_INTERP) return {};
  }
  return fail(ErrorCode::kInvalid,
              file +
                  " is statically linked: libbspmpi.so cannot be loaded into it; link MPI and libc "
                  "dynamically (no -static)");
}

}  // namespace

std::vector<std::string> without_init(std::vector<std::string> command) {
  struct Init {
    std::string_view name;
    std::string_view flags;  // without a value, and without a meaning where bsp-init is PID 1
  };
  constexpr Init kInits[] = {
      {"tini", "gsvw"}, {"tini-static", "gsvw"}, {"docker-init", "gsvw"}, {"dumb-init", "cv"}, {"catatonit", "g"}};
  if (command.empty()) return command;
  const std::string_view path = command.front();
  const auto* const init = std::ranges::find(kInits, path.substr(path.rfind('/') + 1), &Init::name);
  if (init == std::end(kInits)) return command;
  std::size_t at = 1;
  for (; at < command.size() && command[at].starts_with('-'); ++at) {
    if (command[at] == "--") {
      ++at;
      break;
    }
    const bool known = command[at].size() > 1 && command[at].find_first_not_of(init->flags, 1) == std::string::npos;
    if (!known) return command;
  }
  if (at == command.size()) return command;
  command.erase(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(at));
  return command;
}

Result<std::string> find_command(const std::string& command, std::string_view path, const User& user) {
  if (command.empty()) return fail(ErrorCode::kNotFound, "the command is empty");
  const FsIdentity as_program(user);
  std::string not_executable;
  const auto usable = [&](const std::string& file) {
    struct stat info{};
    if (::stat(file.c_str(), &info) != 0) {
      if (errno == EACCES) not_executable = file;
      return false;
    }
    if (runnable(file, user, info)) return true;
    not_executable = file;
    return false;
  };
  if (command.find('/') != std::string::npos) {
    if (usable(command)) return command;
  } else {
    if (path.empty()) path = "/usr/local/bin:/usr/bin:/bin";
    for (std::string_view rest = path;;) {
      const std::size_t colon = rest.find(':');
      const std::string_view dir = rest.substr(0, colon);
      std::string file = (dir.empty() ? std::string(".") : std::string(dir)) + "/" + command;
      if (usable(file)) return file;
      if (colon == std::string_view::npos) break;
      rest.remove_prefix(colon + 1);
    }
  }
  if (!not_executable.empty()) {
    return fail(ErrorCode::kInvalid, not_executable + " is not executable for uid " + std::to_string(user.uid));
  }
  const bool has_slash = command.find('/') != std::string::npos;
  return fail(ErrorCode::kNotFound,
              "command not found in the image: " + command + (has_slash ? "" : " (PATH is " + std::string(path) + ")"));
}

std::vector<std::string> program_environment(const char* const* environment, const std::string& shim,
                                             const User& user) {
  constexpr std::string_view kPreload = "LD_PRELOAD=";
  std::vector<std::string> env;
  std::string preload;
  bool has_home = false;
  for (const char* const* at = environment; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    if (entry.starts_with(kPreload)) {
      preload = entry.substr(kPreload.size());
      continue;
    }
    // The container runs as root, so the engine has set root's home.
    if (entry.starts_with("HOME=")) {
      if (user.uid != 0 && entry == "HOME=/root") continue;
      has_home = true;
    }
    env.emplace_back(entry);
  }
  if (!shim.empty()) preload += (preload.empty() ? "" : ":") + shim;
  if (!preload.empty()) env.push_back(std::string(kPreload) + preload);
  if (!has_home) env.push_back("HOME=" + (user.home.empty() ? std::string("/") : user.home));
  return env;
}

Result<void> check_preloadable(const std::string& file) {
  std::string at = file;
  for (int depth = 0; depth < 4; ++depth) {
    const Fd fd(::open(at.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) {
      if (depth == 0) return {};
      return fail(ErrorCode::kInvalid, file + " requires the interpreter " + at + ", which is missing");
    }
    char head[256] = {};
    const ssize_t n = ::pread(fd.get(), head, sizeof(head) - 1, 0);
    if (n >= 4 && std::memcmp(head, ELFMAG, SELFMAG) == 0) return check_elf(at, fd.get());
    if (n < 3 || head[0] != '#' || head[1] != '!') {
      return fail(ErrorCode::kInvalid, at + " is neither an ELF program nor a #! script");
    }
    // "#! /usr/bin/env sh": env itself is dynamically linked, so the preload passes through it.
    std::string_view line(head + 2);
    line = line.substr(0, line.find('\n'));
    const std::size_t start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos) {
      return fail(ErrorCode::kInvalid, at + " has an empty #! line");
    }
    line.remove_prefix(start);
    at = line.substr(0, line.find_first_of(" \t\r"));
  }
  return fail(ErrorCode::kInvalid, file + ": interpreters nested too deeply");
}

}  // namespace bsp::init
