// The objects of some kinds as the API last showed them, shared by all who read: kept up by one watch, found by
// name or by an index, at no request.
//
// Objects are kept packed (CBOR): a pod as a tree of JSON takes some 20 KiB, packed and trimmed under one. A read
// unpacks a copy. What a write was answered is put() at once, so that the writer never decides on what it has
// itself overwritten; an older version that the watch brings later is not taken, nor one of a deleted object.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "operator/kube/client.h"

namespace bsp::kube {

// The values under which an object is found, such as the name of the job it belongs to.
using Indexer = std::function<std::vector<std::string>(const Object&)>;

struct CachedKind {
  Kind kind;
  std::map<std::string, Indexer> indexes = {};
  std::function<void(Object&)> trim = {};  // drops what nobody reads
};

// A label's value as an index.
Indexer by_label(std::string label);

struct CacheOptions {
  std::string name_space;  // "": all
  std::vector<CachedKind> kinds;
  // After every change, on the watch's thread, or in put(): what was there before and what is there now; null
  // for an object that was not, or is no longer, there. It must not write into the cache.
  std::function<void(const Kind& kind, const Object* before, const Object* now)> on_change = {};
};

// Thread-safe.
class Cache {
 public:
  Cache(Client& client, CacheOptions options);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // All of the first list is here. Before that a reader must not conclude that something does not exist.
  [[nodiscard]] bool filled() const { return filled_; }
  bool wait_filled(std::chrono::milliseconds timeout);

  [[nodiscard]] std::optional<Object> get(const Key& key) const;
  [[nodiscard]] std::vector<Object> list(const Kind& kind, const std::string& name_space = "") const;  // by name
  [[nodiscard]] std::vector<Object> find(const Kind& kind, const std::string& index, const std::string& value) const;
  [[nodiscard]] std::size_t count(const Kind& kind) const;
  // Only how many: for capacity and metrics.
  [[nodiscard]] std::size_t count(const Kind& kind, const std::string& index, const std::string& value) const;

  // What a create or an update was answered.
  void put(const Object& object);
  // What a read answered: it does not exist (any more).
  void drop(const Key& key);
  [[nodiscard]] std::size_t bytes() const;  // of all packed objects

 private:
  using Place = std::pair<std::string, std::string>;  // namespace, name
  struct ByPlace {
    bool operator()(const Place* a, const Place* b) const { return *a < *b; }
  };
  using Places = std::set<const Place*, ByPlace>;  // keys of `entries`: objects are tens of thousands
  using Indexes = std::map<std::pair<std::string, std::string>, Places>;  // by (index, value)
  struct Entry {
    std::string packed;
    std::string uid;
    std::string version;
    std::vector<Indexes::iterator> indexed;       // where it is found
    bool watched = false;                         // the watch has told of it
    std::chrono::steady_clock::time_point put{};  // if not, since when we know it
  };
  struct Store {
    const CachedKind* spec = nullptr;
    std::map<Place, Entry> entries;
    Indexes indexes;
  };

  void run();
  void take(Object object, bool from_watch);
  void take_deleted(const Object& object);
  void erase(const Kind& kind, Store& store, std::map<Place, Entry>::iterator it);
  static void unindex(Store& store, const Place& place, Entry& entry);
  // Objects that were put() and that no watch ever told of: gone before it looked, perhaps.
  void doubt();
  std::vector<Object> unpack_all(const Store& store, const Places& places) const;
  const Store* store_of(const Kind& kind) const;

  Client& client_;
  const CacheOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable filling_;
  std::map<Kind, Store> stores_;
  std::set<std::string> dead_;          // uids of what was deleted lately …
  std::deque<std::string> dead_order_;  // … the oldest first
  std::size_t bytes_ = 0;
  std::atomic<bool> filled_ = false;
  std::atomic<bool> stop_ = false;
  std::mutex change_;  // on_change is called in the order of the changes
  std::thread thread_;
};

}  // namespace bsp::kube
