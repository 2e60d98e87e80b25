// The pod network of local mode: its own network namespaces, with nothing in the host's.
//
//   hub (bridge br0, 10.88.0.1/16) ── veth ── pod a (eth0 10.88.0.2)
//                                  └─ veth ── pod b (eth0 10.88.0.3)
//
// Each namespace is bind-mounted on a file <dir>/netns/<name> (as `ip netns` does under /run/netns), so containers join
// it with `--network ns:<file>`, and removing the directory removes everything. The host has no route into the network:
// to talk to pods, enter the hub (run_inside, or enter_network_namespace for a whole thread). The links in the hub are
// named after the address.
#pragma once

#include <functional>
#include <string>

#include "base/core/error.h"

namespace bsp::local {

struct PodNetwork {
  std::string path;     // of the namespace
  std::string address;  // IPv4 without the prefix length
};

class Network {
 public:
  // `dir` is the store's directory. Only hub() and attach() create anything.
  explicit Network(std::string dir) : dir_(std::move(dir)) {}

  // Creates the hub if necessary; returns the path of its namespace.
  Result<std::string> hub() const;
  [[nodiscard]] std::string hub_path() const { return path_of("hub"); }
  // Creates the pod's namespace and its link if they are missing. The address stays the same until detach(). Safe to
  // repeat after a crash at any point.
  Result<PodNetwork> attach(const std::string& pod) const;
  // Removes both; succeeds if they don't exist.
  Result<void> detach(const std::string& pod) const;
  // Removes all namespaces of this network, including the hub.
  Result<void> remove() const;

 private:
  [[nodiscard]] std::string path_of(const std::string& name) const;
  Result<std::string> address_for(const std::string& pod) const;

  std::string dir_;
};

// Runs `work` on a new thread inside the namespace and waits for it. Sockets opened there stay in the namespace,
// wherever they are used later.
Result<void> run_inside(const std::string& path, const std::function<Result<void>()>& work);

}  // namespace bsp::local
