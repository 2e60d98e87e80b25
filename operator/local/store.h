// The API server of local mode: kube::Client on files, shared by all processes on the machine.
//
//   <root>/<namespace>/<kind>/<name>.json     one object, mode 0600 (some are Secrets)
//   <root>/<namespace>/.lock                  writers flock it; the kernel releases it when the process dies
//   <root>/<namespace>/.revision              the last assigned resourceVersion
//
// Each namespace is a small cluster: cluster-scoped objects (Node) live in it too. A writer replaces an object with
// rename(2), so a reader sees the old or the new version and a writer may be killed at any point. inotify on the kind's
// directory wakes watchers.
//
// As with a real API server, spec and status are written separately, create() drops the status (except a Node's), and a
// change of anything but metadata and status increments metadata.generation.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/kinds.h"
#include "operator/kube/client.h"

namespace bsp::local {

// Stands in for a real API server's admission (defaults, CEL rules, immutability): returns the object to store, or why
// it is rejected. `current` is null on create.
using Admission = std::function<Result<kube::Object>(const kube::Object& next, const kube::Object* current)>;

struct StoreOptions {
  std::string root = "/run/bsp-operator";
  std::string name_space = "default";  // for keys and objects without a namespace
  Admission admission = {};            // null: accepts everything
};

// Thread-safe. A cursor of wait() is valid only for the Store that created it.
class Store final : public kube::Client {
 public:
  // Creates the directory. kNoSpace, kFailed.
  static Result<std::unique_ptr<Store>> open(StoreOptions options);
  ~Store() override;

  Result<kube::Object> get(const kube::Key& key) override;
  Result<std::vector<kube::Object>> list(const kube::Kind& kind, const std::string& name_space,
                                         const std::map<std::string, std::string>& labels = {}) override;
  Result<kube::Object> create(const kube::Object& object) override;
  Result<kube::Object> update(const kube::Object& object) override;
  Result<kube::Object> update_status(const kube::Object& object) override;
  Result<kube::Object> patch_status(const kube::Key& key, const kube::Object& merge) override;
  Result<kube::Object> resize_pod(const kube::Key& pod, const kube::Object& patch) override;
  Result<void> remove(const kube::Key& key, const std::string& uid) override;
  Result<std::vector<kube::WatchEvent>> wait(const std::vector<kube::Kind>& kinds, const std::string& name_space,
                                             std::string& cursor, std::chrono::milliseconds timeout) override;

  // For the kubelet only: removes the object of a pod whose containers no longer exist. Succeeds if it doesn't exist or
  // now has another uid. An object with finalizers stays.
  Result<void> purge(const kube::Key& key, const std::string& uid);

  [[nodiscard]] const StoreOptions& options() const { return options_; }
  // <root>/<namespace>
  [[nodiscard]] std::string directory() const;

 private:
  struct Watch;
  struct Watches;
  explicit Store(StoreOptions options);
  [[nodiscard]] std::string namespace_dir(const std::string& name_space) const;
  [[nodiscard]] std::string kind_dir(const kube::Kind& kind, const std::string& name_space) const;
  Result<std::string> file_of(const kube::Key& key) const;
  Result<void> write(const kube::Key& key, kube::Object& object);
  Result<std::vector<kube::WatchEvent>> changes(Watch& watch);

  StoreOptions options_;
  std::unique_ptr<Watches> watches_;
};

// The object's key; kInvalid without apiVersion, kind or metadata.name.
Result<kube::Key> key_of(const kube::Object& object);
bool matches(const kube::Object& object, const std::map<std::string, std::string>& labels);

}  // namespace bsp::local
