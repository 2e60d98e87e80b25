// Objects of one namespace as the API last showed them: filled by a watch on a thread of its own.
//
// A read costs no request. What a write answered is put() at once, so that the writer never decides on
// what it has itself overwritten; an older version that the watch brings later is not taken.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "operator/kube/client.h"

namespace bsp::reconcile {

class Cache {
 public:
  // `changed` is called from the watch's thread after every change that was not put() before.
  Cache(kube::Client& client, std::string name_space, std::vector<kube::Kind> kinds, std::function<void()> changed);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Both copy: objects are small, and nobody holds the lock while deciding.
  [[nodiscard]] std::vector<kube::Object> list(const kube::Kind& kind) const;  // by name
  [[nodiscard]] std::optional<kube::Object> get(const kube::Kind& kind, const std::string& name) const;
  void put(const kube::Object& object);
  // The first list has come in.
  [[nodiscard]] bool filled() const { return filled_; }

 private:
  using Name = std::pair<kube::Kind, std::string>;
  void run();
  bool take(const kube::WatchEvent& event);  // true if it is news

  kube::Client& client_;
  std::string name_space_;
  std::vector<kube::Kind> kinds_;
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::map<Name, kube::Object> objects_;
  std::atomic<bool> filled_ = false;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace bsp::reconcile
