#include "sidecar/shim/epoch/blockers.h"

#include "sidecar/shim/epoch/epoch.h"
#include "sidecar/shim/messages/matched_messages.h"
#include "sidecar/shim/messages/requests.h"
#include "sidecar/shim/messages/undelivered.h"
#include "sidecar/shim/objects/extensions.h"
#include "sidecar/shim/objects/files.h"
#include "sidecar/shim/objects/tool_interface.h"
#include "sidecar/shim/objects/windows.h"
#include "sidecar/shim/process/leftovers.h"
#include "sidecar/shim/process/mapped_memory.h"
#include "sidecar/shim/process/proc_files.h"
#include "sidecar/shim/process/state.h"
#include "sidecar/shim/process/surroundings.h"

namespace bsp::shim {

std::atomic<int> program_sessions{0};

namespace {

// CRIU takes such a process for a dead one, and /proc/self lists none of its descriptors.
bool has_main_thread_ended() {
  const auto stat = read_text("/proc/self/stat");
  return stat && stat->substr(stat->rfind(')') + 1).starts_with(" Z");  // npos + 1 is 0
}

std::string name_of(const Request& request) {
  const bool pending = request.active && !request.completed;
  return std::string(pending ? "a pending request (" : "a persistent request (") + request.what + ")";
}

}  // namespace

Blocker blocker() {
  const auto lasting = [](std::string reason) { return Blocker{.reason = std::move(reason)}; };
  const auto for_good = [](std::string reason) { return Blocker{.reason = std::move(reason), .for_good = true}; };
  // bsp-init wouldn't notice that it stops, nor continue it.
  if (!state.started_by_init)
    return for_good("a program that a shell or another process started (a shell: start it by exec)");
  if (has_main_thread_ended()) return for_good("a main thread that has ended (pthread_exit)");
  if (std::string of_limit = limit_blocker(); !of_limit.empty()) return for_good(of_limit);
  if (std::string of_window = window_blocker(); !of_window.empty()) return lasting(of_window);
  if (std::string of_ranks = parting_blocker(parts_from); !of_ranks.empty()) return lasting(of_ranks);
  if (std::string of_memory = shared_mapping_blocker(); !of_memory.empty()) return lasting(of_memory);
  if (std::string of_file = file_blocker(); !of_file.empty()) return lasting(of_file);
  if (std::string of_comm = revoked_blocker(); !of_comm.empty()) return lasting(of_comm);
  if (std::string of_tools = tools_blocker(); !of_tools.empty()) return lasting(of_tools);
  if (program_sessions > 0) return lasting("an MPI session of the program's own");
  if (std::string of_message = matched_blocker(); !of_message.empty()) return lasting(of_message);
  if (std::string of_thread = thread_blocker(); !of_thread.empty()) return lasting(of_thread);
  if (std::string of_rules = landlock_blocker(); !of_rules.empty()) return for_good(of_rules);
  if (std::string of_keys = key_blocker(); !of_keys.empty()) return lasting(of_keys);
  if (std::string of_directory = directory_blocker(); !of_directory.empty()) return lasting(of_directory);
  const auto [request, passing, makes_comm] = pending_request();
  if (request != nullptr && !passing) return lasting(name_of(*request));
  if (std::string of_socket = program_socket(); !of_socket.empty()) return lasting(of_socket);
  if (request != nullptr) return {.reason = name_of(*request), .passing = true, .makes_comm = makes_comm};
  if (is_sending_again()) return {.reason = "a message that this rank sends again", .passing = true};
  return {};
}

}  // namespace bsp::shim
