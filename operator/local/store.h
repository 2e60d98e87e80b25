// The API server of local mode: kube::Client on files, shared by every process of the machine.
//
//   <root>/<namespace>/<kind>/<name>.json     one object, mode 0600 (secrets are among them)
//   <root>/<namespace>/.lock                  flock'ed by whoever writes; the kernel frees it with the process
//   <root>/<namespace>/.revision              the last resourceVersion handed out
//
// A namespace is a little cluster of its own: cluster-scoped objects (Node) live in it too. An object
// is replaced by rename(2), so a reader sees the old or the new one and a writer may be killed at any
// point; watchers are woken by inotify on the kind's directory. As with a real API server a spec and
// its status are written separately, create() drops status (but a Node's), and a change of anything
// but metadata and status grows metadata.generation.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "operator/kinds.h"
#include "operator/kube/client.h"

namespace bsp::local {

// What admission (defaults, CEL rules, immutability) is to a real API server: returns the object to
// be stored or why not. `current` is null on create.
using Admission = std::function<Result<kube::Object>(const kube::Object& next, const kube::Object* current)>;

struct StoreOptions {
  std::string root = "/run/bsp-operator";
  std::string name_space = "default";  // for keys and objects that name none
  Admission admission = {};            // null: everything is taken
};

// Thread-safe. A cursor of wait() belongs to the store object that made it.
class Store final : public kube::Client {
 public:
  // Makes the directory. kNoSpace, kFailed.
  static Result<std::unique_ptr<Store>> open(StoreOptions options);
  ~Store() override;

  Result<kube::Object> get(const kube::Key& key) override;
  Result<std::vector<kube::Object>> list(const kube::Kind& kind, const std::string& name_space,
                                         const std::map<std::string, std::string>& labels = {}) override;
  Result<kube::Object> create(const kube::Object& object) override;
  Result<kube::Object> update(const kube::Object& object) override;
  Result<kube::Object> update_status(const kube::Object& object) override;
  Result<void> remove(const kube::Key& key, const std::string& uid) override;
  Result<std::vector<kube::WatchEvent>> wait(const std::vector<kube::Kind>& kinds, const std::string& name_space,
                                             std::string& cursor, std::chrono::milliseconds timeout) override;

  // What only a kubelet may do: takes the object away whose containers are gone. Fine if it is gone
  // already or is another one by now (uid). With finalizers left it stays.
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

// The key an object is stored under; kInvalid without apiVersion, kind or metadata.name.
Result<kube::Key> key_of(const kube::Object& object);
bool matches(const kube::Object& object, const std::map<std::string, std::string>& labels);

}  // namespace bsp::local
