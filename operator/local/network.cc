#include "operator/local/network.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <format>
#include <set>
#include <thread>
#include <vector>

#include "base/core/fd.h"
#include "base/core/network_namespace.h"
#include "base/core/read_file.h"
#include "operator/local/command.h"
#include "operator/local/files.h"

namespace bsp::local {
namespace fs = std::filesystem;
namespace {

constexpr unsigned kBridge = 1;
constexpr unsigned kFirstPod = 2;
constexpr unsigned kLastPod = 0xfffe;  // 10.88.255.254

std::string address_text(unsigned host) { return std::format("10.88.{}.{}", host >> 8, host & 0xff); }

// Derived from the address, so that the neighbours' ARP caches stay correct when an address is reused.
std::string hardware_address(unsigned host) { return std::format("02:42:0a:58:{:02x}:{:02x}", host >> 8, host & 0xff); }

unsigned host_of(const std::string& address) {
  unsigned a = 0;
  unsigned b = 0;
  if (std::sscanf(address.c_str(), "10.88.%u.%u", &a, &b) != 2) return 0;
  return a << 8 | b;
}

bool is_namespace(const std::string& path) {
  struct statfs st{};
  return ::statfs(path.c_str(), &st) == 0 && st.f_type == NSFS_MAGIC;
}

// Creates an empty network namespace that lives as long as it is bound to `path`.
Result<void> create_namespace(const std::string& path) {
  if (is_namespace(path)) return {};
  const Fd file(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return fail_errno(path);
  Result<void> result;
  std::thread([&] {
    if (::unshare(CLONE_NEWNET) != 0)
      result = fail_errno("creating a network namespace");
    else if (::mount("/proc/thread-self/ns/net", path.c_str(), nullptr, MS_BIND, nullptr) != 0)
      result = fail_errno("binding " + path);
  }).join();
  return result;
}

Result<void> remove_namespace(const std::string& path) {
  // After a crash, several binds may be stacked on the path.
  while (is_namespace(path))
    if (::umount2(path.c_str(), MNT_DETACH) != 0) return fail_errno("unbinding " + path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno("removing " + path);
  return {};
}

// Runs several `ip` commands. -force continues after a failure, because after a crash some things already exist. The
// caller checks the result.
Result<std::string> ip_batch(const std::string& path, const std::string& commands) {
  CommandResult done;
  BSP_CHECK_OK(run_inside(path, [&]() -> Result<void> {
    BSP_TRY(done, run_command({"ip", "-force", "-batch", "-"}, commands));
    return {};
  }));
  return done.err;
}

Result<bool> has_address(const std::string& path, const std::string& device, const std::string& address) {
  CommandResult shown;
  BSP_CHECK_OK(run_inside(path, [&]() -> Result<void> {
    BSP_TRY(shown, run_command({"ip", "-4", "-o", "addr", "show", "dev", device, "up"}));
    return {};
  }));
  return shown.out.find(" " + address + "/") != std::string::npos;
}

}  // namespace

Result<void> run_inside(const std::string& path, const std::function<Result<void>()>& work) {
  Result<void> result;
  std::thread([&] {
    result = enter_network_namespace(path);
    if (result) result = work();
  }).join();
  return result;
}

std::string Network::path_of(const std::string& name) const { return std::format("{}/netns/{}", dir_, name); }

Result<std::string> Network::hub() const {
  BSP_CHECK_OK(make_directories(dir_ + "/netns"));
  BSP_TRY(const Fd lock, lock_file(dir_ + "/.network.lock"));
  BSP_CHECK_OK(create_namespace(hub_path()));
  BSP_TRY(const bool exists, has_address(hub_path(), "br0", "10.88.0.1"));
  if (!exists) {
    // A bridge without a hardware address of its own takes the lowest of its ports', and changes it when a pod comes or
    // goes: the other pods would send to the former one until their ARP entries expire.
    const std::string commands = std::format(
        "link set lo up\n"
        "link add br0 address {} type bridge\n"
        "addr add 10.88.0.1/16 dev br0\n"
        "link set br0 up\n",
        hardware_address(kBridge));
    BSP_TRY(const std::string errors, ip_batch(hub_path(), commands));
    BSP_TRY(const bool created, has_address(hub_path(), "br0", "10.88.0.1"));
    if (!created) return fail(ErrorCode::kFailed, "creating the pods' bridge: " + errors);
  }
  return hub_path();
}

// The pod's address from <dir>/netns/<pod>.address, or the smallest free one. Call it with the lock held.
Result<std::string> Network::address_for(const std::string& pod) const {
  const std::string file = path_of(pod) + ".address";
  if (auto known = read_file(file); known && host_of(*known) != 0) return *known;
  std::set<unsigned> taken;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir_ + "/netns", error))
    if (entry.path().extension() == ".address")
      if (auto text = read_file(entry.path().string())) taken.insert(host_of(*text));
  unsigned host = kFirstPod;
  while (taken.contains(host)) ++host;
  if (host > kLastPod) return fail(ErrorCode::kNoSpace, "no free pod address in 10.88.0.0/16");
  BSP_CHECK_OK(replace_file(file, file + ".tmp", address_text(host)));
  return address_text(host);
}

Result<PodNetwork> Network::attach(const std::string& pod) const {
  BSP_CHECK_OK(hub());
  BSP_TRY(const Fd lock, lock_file(dir_ + "/.network.lock"));
  const std::string path = path_of(pod);
  BSP_TRY(const std::string address, address_for(pod));
  BSP_CHECK_OK(create_namespace(path));
  BSP_TRY(const bool exists, has_address(path, "eth0", address));
  if (!exists) {
    const std::string link = std::format("veth{:x}", host_of(address));
    // `link del` first, because a crash may have left half of an earlier pair.
    const std::string outside = std::format(
        "link del {0}\n"
        "link add {0} type veth peer name eth0 address {2} netns {1}\n"
        "link set {0} master br0 up\n",
        link, path, hardware_address(host_of(address)));
    const std::string inside = std::format(
        "link set lo up\n"
        "addr add {}/16 dev eth0\n"
        "link set eth0 up\n",
        address);
    BSP_TRY(const std::string errors, ip_batch(hub_path(), outside));
    BSP_TRY(const std::string more, ip_batch(path, inside));
    BSP_TRY(const bool created, has_address(path, "eth0", address));
    if (!created)
      return fail(ErrorCode::kFailed, std::format("connecting pod {} to the network: {}{}", pod, errors, more));
  }
  return PodNetwork{path, address};
}

Result<void> Network::detach(const std::string& pod) const {
  const std::string path = path_of(pod);
  if (!fs::exists(path) && !fs::exists(path + ".address")) return {};
  BSP_TRY(const Fd lock, lock_file(dir_ + "/.network.lock"));
  // Removing a namespace also removes its veth pair, but the kernel takes its time. Delete the link now, so that the
  // address can be reused.
  if (auto address = read_file(path + ".address"); address && is_namespace(hub_path())) {
    const std::string command = std::format("link del veth{:x}\n", host_of(*address));
    BSP_TRY(const std::string ignored, ip_batch(hub_path(), command));
  }
  BSP_CHECK_OK(remove_namespace(path));
  if (::unlink((path + ".address").c_str()) != 0 && errno != ENOENT) return fail_errno(path + ".address");
  return {};
}

Result<void> Network::remove() const {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir_ + "/netns", error)) paths.push_back(entry.path().string());
  for (const std::string& path : paths) BSP_CHECK_OK(remove_namespace(path));
  return remove_tree(dir_ + "/netns");
}

}  // namespace bsp::local
