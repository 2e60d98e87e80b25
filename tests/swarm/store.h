// The objects of a simulated world, as an API server keeps and watches them, and one operator's way to them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/kinds.h"

namespace bsp::simulation {

class Store {
 public:
  struct Change {
    kube::EventType type;
    std::shared_ptr<const kube::Object> object;
    int at = 0;  // tick
  };

  explicit Store(const int& tick) : tick_(tick) {}
  // Called after each change.
  std::function<void(const Change&)> on_change;

  [[nodiscard]] const kube::Object* find(const kube::Key& key) const;
  Result<kube::Object> create(kube::Object object);
  // Metadata, spec and data, but not status; or status only.
  Result<kube::Object> update(const kube::Object& object, bool status);
  Result<void> remove(const kube::Key& key, const std::string& uid);
  void erase(const kube::Key& key);  // at once, as by force
  // Everything is again as it was at that tick: a restored backup. Later versions are higher than all before, as
  // `etcdutl --bump-revision` has it; who watches has to list.
  void restore(int tick);
  [[nodiscard]] std::shared_ptr<const kube::Object> at(const kube::Key& key, int tick) const;
  [[nodiscard]] std::size_t restored_at() const {
    return restored_at_;
  }  // in changes(): watches from before are broken

  [[nodiscard]] const std::map<kube::Key, std::shared_ptr<const kube::Object>>& objects() const { return objects_; }
  [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }

 private:
  kube::Object put(const kube::Key& key, kube::Object object, kube::EventType type);

  const int& tick_;
  std::map<kube::Key, std::shared_ptr<const kube::Object>> objects_;
  std::vector<Change> changes_;
  std::uint64_t version_ = 100;
  std::size_t restored_at_ = 0;
  int uids_ = 0;
};

kube::Key key_of(const kube::Object& object);

// What one operator sees of it. Its requests and its watch fail and lag as the world says.
class StoreClient final : public kube::Client {
 public:
  struct Weather {
    std::function<bool()> reachable;
    std::function<bool()> loses_answer;  // a write is done, and its answer does not arrive
    std::function<int()> seen_until;     // the watch shows what has changed until that tick
  };
  StoreClient(Store& store, Weather weather) : store_(store), weather_(std::move(weather)) {}

  Result<kube::Object> get(const kube::Key& key) override;
  Result<std::vector<kube::Object>> list(const kube::Kind& kind, const std::string& name_space,
                                         const std::map<std::string, std::string>& labels) override;
  Result<kube::Object> create(const kube::Object& object) override;
  Result<kube::Object> update(const kube::Object& object) override;
  Result<kube::Object> update_status(const kube::Object& object) override;
  Result<kube::Object> patch_status(const kube::Key& key, const kube::Object& merge) override;
  Result<kube::Object> resize_pod(const kube::Key& pod, const kube::Object& patch) override;
  Result<void> remove(const kube::Key& key, const std::string& uid) override;
  Result<std::vector<kube::WatchEvent>> wait(const std::vector<kube::Kind>& kinds, const std::string& name_space,
                                             std::string& cursor, std::chrono::milliseconds timeout) override;

 private:
  template <class Write>
  auto write(Write write) -> decltype(write());

  std::vector<kube::WatchEvent> list(const std::vector<kube::Kind>& kinds);

  Store& store_;
  Weather weather_;
  std::map<kube::Key, std::shared_ptr<const kube::Object>> shown_;  // by its watch
};

}  // namespace bsp::simulation
