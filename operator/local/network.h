// The pod network of local mode: network namespaces of our own, nothing in the host's.
//
//   hub (bridge br0, 10.88.0.1/16) ── veth ── pod a (eth0 10.88.0.2)
//                                  └─ veth ── pod b (eth0 10.88.0.3)
//
// A namespace is a file <dir>/netns/<name> that the namespace is bound to (as `ip netns` does under
// /run/netns), so containers join it with `--network ns:<file>` and everything goes with the
// directory. The host has no route into it: whoever talks to pods does so from inside the hub
// (run_inside, or enter_network_namespace for a whole thread). Names of the links in the hub follow from the address.
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
  // `dir` is the store's directory. Nothing is made before hub() or attach().
  explicit Network(std::string dir) : dir_(std::move(dir)) {}

  // Makes the hub if there is none. Path of its namespace.
  Result<std::string> hub() const;
  [[nodiscard]] std::string hub_path() const { return path_of("hub"); }
  // Makes the pod's namespace and its link if they are missing. The address stays the same until
  // detach(). Safe to call again after a crash at any point.
  Result<PodNetwork> attach(const std::string& pod) const;
  // Takes both away; fine if they are gone.
  Result<void> detach(const std::string& pod) const;
  // Takes every namespace of this network away, the hub included.
  Result<void> remove() const;

 private:
  [[nodiscard]] std::string path_of(const std::string& name) const;
  Result<std::string> address_for(const std::string& pod) const;

  std::string dir_;
};

// Runs `work` on a thread of its own inside the namespace and waits for it. Sockets opened there stay
// in the namespace wherever they are used later.
Result<void> run_inside(const std::string& path, const std::function<Result<void>()>& work);

}  // namespace bsp::local
