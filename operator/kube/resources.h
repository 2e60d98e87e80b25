// The API server's paths for each kind, cached from discovery.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "operator/kube/api.h"
#include "operator/kube/client.h"

namespace bsp::kube {

struct Resource {
  std::string root;  // "/api/v1", "/apis/migbsp.io/v1alpha1"
  std::string plural;
  bool namespaced = true;
  bool has_status = false, has_resize = false;  // subresources

  // The path of all objects, or of those in one namespace.
  [[nodiscard]] std::string collection(const std::string& name_space) const;
  [[nodiscard]] std::string item(const std::string& name_space, const std::string& name) const;
};

// Thread-safe.
class Resources {
 public:
  explicit Resources(Api& api) : api_(api) {}

  // kUnavailable (retryable) if the server doesn't serve the kind, or not yet.
  Result<Resource> find(const Kind& kind);
  // Call this when the server no longer serves a kind: the next find() runs discovery again.
  void forget(const std::string& api_version);

 private:
  struct Group {
    std::map<std::string, Resource> by_kind;
    SteadyTime discovered{};
  };
  Result<Group> discover(const std::string& api_version);

  Api& api_;
  std::mutex mutex_;
  std::map<std::string, Group> groups_;  // by apiVersion
};

}  // namespace bsp::kube
