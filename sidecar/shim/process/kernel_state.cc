#include <linux/keyctl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "sidecar/shim/process/descriptors.h"
#include "sidecar/shim/process/surroundings.h"

namespace bsp::shim {
namespace {

// The user's own keyring, to which that of a login's session has a link, belongs to the machine.
bool is_of_user(std::int32_t key) {
  char what[128] = "";  // type;uid;gid;permissions;name
  ::syscall(SYS_keyctl, KEYCTL_DESCRIBE, key, what, sizeof what - 1);
  const std::string_view text = what;
  return text.starts_with("keyring;") && text.substr(text.rfind(';') + 1).starts_with("_uid");
}

bool holds_keys(int keyring) {
  const long id = ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, keyring, 0);  // one that nobody has made isn't made here
  std::array<std::int32_t, 64> keys{};
  const long bytes = id < 0 ? 0 : ::syscall(SYS_keyctl, KEYCTL_READ, id, keys.data(), sizeof keys);
  const std::size_t count = bytes < 0 ? 0 : static_cast<std::size_t>(bytes) / sizeof keys[0];
  return count > keys.size() || !std::ranges::all_of(std::span(keys).first(count), is_of_user);
}

constexpr int kMostRulesets = 16;  // LANDLOCK_MAX_NUM_LAYERS

// Nothing tells how many rulesets a thread has, but a further one fails once it has the most. So this one takes as many as it can.
void* count_free_rulesets(void* free) {
  landlock_ruleset_attr nothing{};
  nothing.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_BLOCK;
  const int ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &nothing, sizeof nothing, 0));
  int& count = *static_cast<int*>(free);
  count = ruleset < 0 ? kMostRulesets : 0;  // no Landlock
  while (ruleset >= 0 && count < kMostRulesets && ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0) ++count;
  if (ruleset >= 0 && count < kMostRulesets && errno != E2BIG) count = kMostRulesets;
  if (ruleset >= 0) ::close(ruleset);
  return nullptr;
}

}  // namespace

std::string key_blocker() {
  for (const int keyring : {KEY_SPEC_PROCESS_KEYRING, KEY_SPEC_SESSION_KEYRING, KEY_SPEC_THREAD_KEYRING})
    if (holds_keys(keyring)) return "a key in a keyring of the process or its session (add_key; unlink it)";
  return "";
}

std::string landlock_blocker() {
  const InMpi guard;  // the thread isn't the program's
  pthread_t thread{};
  int free = kMostRulesets;
  if (pthread_create(&thread, nullptr, count_free_rulesets, &free) != 0) return "";  // thread_blocker() says why
  pthread_join(thread, nullptr);
  return free == kMostRulesets ? "" : "a Landlock ruleset (landlock_restrict_self), which criu can't carry";
}

}  // namespace bsp::shim
