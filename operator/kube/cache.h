// A shared cache of the objects of some kinds. One watch keeps it up to date; lookups by name or by an index cost no
// request.
//
// It keeps objects packed (CBOR): a pod takes some 20 KiB as a tree of JSON, packed and trimmed less than one. A read
// unpacks a copy. A writer put()s the result of a write at once, so that it never decides on a version that it has
// overwritten itself. The cache ignores older versions that the watch brings later, and events of deleted objects; but a list
// is right about all that it was asked for later than, since a store that was restored from a backup has gone back.
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

// The values under which an index lists an object, such as the name of its job.
using Indexer = std::function<std::vector<std::string>(const Object&)>;

struct CachedKind {
  Kind kind;
  std::map<std::string, Indexer> indexes = {};
  std::function<void(Object&)> trim = {};  // removes unused fields
};

struct CacheOptions {
  std::string name_space;  // "": all namespaces
  std::vector<CachedKind> kinds;
  // Called after every change, on the watch's thread or in put(). `before` is null for a new object, `now` for a
  // deleted one. Must not write into the cache.
  std::function<void(const Kind& kind, const Object* before, const Object* now)> on_change = {};
  bool own_thread = true;  // else whoever has it calls refresh()
};

// Thread-safe.
class Cache {
 public:
  Cache(Client& client, CacheOptions options);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Whether the first list is complete. Until then a missing object may exist.
  [[nodiscard]] bool filled() const { return filled_; }
  bool wait_filled(std::chrono::milliseconds timeout);

  [[nodiscard]] std::optional<Object> get(const Key& key) const;
  [[nodiscard]] std::vector<Object> list(const Kind& kind, const std::string& name_space = "") const;  // by name
  [[nodiscard]] std::vector<Object> find(const Kind& kind, const std::string& index, const std::string& value) const;
  [[nodiscard]] std::size_t count(const Kind& kind) const;
  // Just the number, for capacity and metrics.
  [[nodiscard]] std::size_t count(const Kind& kind, const std::string& index, const std::string& value) const;

  // Takes what the watch brings within `wait`. False: it can't be had now. Only of a cache without a thread of its own.
  bool refresh(std::chrono::milliseconds wait);

  // Stores the result of a create or an update.
  void put(const Object& object);
  // Removes an object that a read didn't find.
  void drop(const Key& key);
  [[nodiscard]] std::size_t bytes() const;  // size of all packed objects

 private:
  using Place = std::pair<std::string, std::string>;  // namespace, name
  struct ByPlace {
    bool operator()(const Place* a, const Place* b) const { return *a < *b; }
  };
  using Places = std::set<const Place*, ByPlace>;  // keys of `entries`, to save memory: there are tens of thousands
  using Indexes = std::map<std::pair<std::string, std::string>, Places>;  // by (index, value)
  struct Entry {
    std::string packed;
    std::string uid;
    std::string version;
    std::vector<Indexes::iterator> indexed;        // the index entries that list it
    bool watched = false;                          // the watch has reported it, as it is here
    std::chrono::steady_clock::time_point at{};    // when it was stored
    std::chrono::steady_clock::time_point read{};  // if not watched: when put() stored it or recheck() last read it
  };
  struct Store {
    const CachedKind* spec = nullptr;
    std::map<Place, Entry> entries;
    Indexes indexes;
  };

  void run();
  using Moment = std::optional<std::chrono::steady_clock::time_point>;
  // `read`: when it was asked for, if that shows what there is now.
  void take(Object object, bool from_watch, Moment read = {});
  void take_deleted(const Object& object);
  void erase(const Kind& kind, Store& store, std::map<Place, Entry>::iterator it);
  static void unindex(Store& store, const Place& place, Entry& entry);
  // Rereads objects that were put() but never reported by the watch: they may have been deleted before it began. Only what
  // was read before `before`.
  void recheck(std::chrono::steady_clock::time_point before);
  std::vector<Object> unpack_all(const Store& store, const Places& places) const;
  const Store* store_of(const Kind& kind) const;

  Client& client_;
  const CacheOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable filling_;
  std::map<Kind, Store> stores_;
  std::map<std::string, std::chrono::steady_clock::time_point>
      deleted_;                            // uids of recently deleted objects, since when …
  std::deque<std::string> deleted_order_;  // … oldest first
  std::size_t bytes_ = 0;
  std::atomic<bool> filled_ = false;
  std::atomic<bool> stop_ = false;
  std::mutex change_;  // keeps the calls of on_change in the order of the changes
  struct Watch {       // of the one thread that refreshes
    std::vector<Kind> kinds;
    std::string cursor;
    std::chrono::steady_clock::time_point rechecked = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point listed{};  // when the last list that arrived was asked for
    unsigned failures = 0;
    std::thread thread;
  };
  Watch watch_;
};

}  // namespace bsp::kube
