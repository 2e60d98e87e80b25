#include "base/core/fault.h"

#if BSP_FAULT_POINTS

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "base/core/fd.h"
#include "base/core/read_file.h"

namespace bsp {
namespace {

struct Faults {
  std::mutex mutex;
  std::map<std::string, std::string, std::less<>> actions;
  std::string directory;
  bool any = false;  // set by the constructor only

  Faults() {
    const char* text = std::getenv("BSP_FAULTS");
    std::string_view rest = text ? text : "";
    while (!rest.empty()) {
      std::string_view item = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), item.size() + 1));
      if (auto equals = item.find('='); equals != std::string_view::npos)
        actions.emplace(item.substr(0, equals), item.substr(equals + 1));
    }
    if (const char* path = std::getenv("BSP_FAULT_DIRECTORY")) directory = path;
    any = !actions.empty() || !directory.empty();
  }

  // This point's action, or "". Removes it, so that it fires once.
  std::string take(std::string_view name, bool want_fail) {
    if (!any) return {};
    std::lock_guard lock(mutex);
    if (std::string action = want_fail ? "" : take_file(name); !action.empty()) return action;
    auto it = actions.find(name);
    if (it == actions.end() || (it->second == "fail") != want_fail) return {};
    std::string action = it->second;
    actions.erase(it);
    return action;
  }

  [[nodiscard]] std::string take_file(std::string_view name) const {
    if (directory.empty()) return {};
    const std::string path = directory + "/" + std::string(name);
    std::string action = read_file(path).value_or("");
    const std::string fired = path + ".fired";
    if (std::rename(path.c_str(), fired.c_str()) == 0) return action;
    if (errno != EPERM && errno != EACCES) return {};  // not armed, or another process took it first
    // The file belongs to another user and the directory is sticky: mark it as fired instead.
    const Fd mark(::open(fired.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    return mark ? action : std::string();
  }
};

Faults& faults() {
  static Faults instance;
  return instance;
}

int number_after_colon(std::string_view action) {
  int value = 0;
  if (auto colon = action.find(':'); colon != std::string_view::npos)
    std::from_chars(action.data() + colon + 1, action.data() + action.size(), value);
  return value;
}

}  // namespace

void fault_point(std::string_view name, pid_t child) {
  std::string action = faults().take(name, false);
  if (action.empty()) return;
  if (action == "kill") {
    ::kill(::getpid(), SIGKILL);
    ::_exit(128 + SIGKILL);  // only PID 1 of a container survives SIGKILL; its exit ends the whole container
  }
  if (action == "kill-child" && child > 0) ::kill(child, SIGKILL);
  if (action.starts_with("stop")) std::this_thread::sleep_for(std::chrono::milliseconds(number_after_colon(action)));
  if (action.starts_with("exit")) ::_exit(number_after_colon(action));
}

bool fault_fails(std::string_view name) { return !faults().take(name, true).empty(); }

}  // namespace bsp

#endif
