// Where the API server keeps the objects of a kind: asked once (discovery), then known.
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
  bool has_status = false;

  // Of all objects, or those of one namespace.
  [[nodiscard]] std::string collection(const std::string& name_space) const;
  [[nodiscard]] std::string item(const std::string& name_space, const std::string& name) const;
};

// Thread-safe.
class Resources {
 public:
  explicit Resources(Api& api) : api_(api) {}

  // kUnavailable, worth another try, if the server serves no such kind (yet).
  Result<Resource> find(const Kind& kind);
  // The server does not know what it said it serves: ask again at the next find().
  void forget(const std::string& api_version);

 private:
  struct Group {
    std::map<std::string, Resource> by_kind;
    SteadyTime asked{};
  };
  Result<Group> ask(const std::string& api_version);

  Api& api_;
  std::mutex mutex_;
  std::map<std::string, Group> groups_;  // by apiVersion
};

}  // namespace bsp::kube
