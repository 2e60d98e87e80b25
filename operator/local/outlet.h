// A way out of a pod's network to one server. The pods' network has none (network.h), so a pod could not reach a bucket.
//
//   sidecar ── the server's address and port, in the pod's namespace ── this process ── the server, from the host's namespace
//
// The sidecar connects to the endpoint as it would in a cluster, so TLS and signatures are those of the server. An address is made
// one of the pod's own; a name is one in the container's hosts file (host_alias). It ends with this process: whoever adopts the pod
// opens another.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

#include "base/core/error.h"
#include "base/core/fd.h"

namespace bsp::local {

class Outlet {
 public:
  // `endpoint`: http[s]://host[:port]. Listens in the namespace at `namespace_path`; the server need not answer yet.
  static Result<std::unique_ptr<Outlet>> open(const std::string& namespace_path, const std::string& endpoint);
  // That of a container with a storage endpoint in its environment; null: it needs none, or none can be opened. Then the pod runs, and its
  // sidecar reports what it can't store.
  static std::unique_ptr<Outlet> of_container(const std::string& name, const nlohmann::json& pod,
                                              const std::string& network_path);
  ~Outlet();
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  // "name:address" for the hosts file of a container that reaches that endpoint; "": it needs none.
  static std::string host_alias(const std::string& endpoint);

 private:
  Outlet(Fd listener, Fd wake, std::string host, std::string port);
  void run();

  Fd listener_, wake_;  // wake_: an eventfd
  const std::string host_, port_;
  std::thread thread_;
};

}  // namespace bsp::local
