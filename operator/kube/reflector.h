// Follows all objects of one kind: lists them, then watches from that version on.
//
//        ┌────────── 410, events out of order, kind unknown ──────────┐
//        ▼                                                            │
//   list in pages ──> watch from the list's resourceVersion ──> ended, broken, silent
//                       ▲                                             │
//                       └──── resume at the last version or bookmark ─┘
//
// A later list reports all objects again, also unchanged and older ones, and what is deleted: a store that was restored from
// a backup has gone back, and a cache may hold what was written meanwhile. Each watch asks the server to end it after about a
// minute, so a silently dead connection is detected within that time; a read that times out elsewhere ends it at once
// (Http::end_streams).
#pragma once

#include <functional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>

#include "operator/kube/api.h"
#include "operator/kube/feed.h"
#include "operator/kube/resources.h"

namespace bsp::kube {

struct ReflectorOptions {
  std::size_t page = 250;
  std::chrono::seconds watch{60};          // the duration to ask the server for, plus up to half
  std::chrono::seconds grace{15};          // how long a watch may be silent beyond that
  std::function<void(Object&)> trim = {};  // removes unused fields
};

class Reflector {
 public:
  Reflector(Api& api, Resources& resources, Kind kind, std::string name_space, Feed& feed, ReflectorOptions options);
  // Close the Http and the Feed first.
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

 private:
  // How a watch ended.
  enum class End { kResume, kRelist, kFailed };
  struct Seen {
    std::string uid;
    std::string version;
  };

  void run();
  bool pause();  // false if closed
  Result<void> list();
  End watch();
  End take_line(std::string_view line);
  // Remembers the object, and appends an event if it is new, changed or listed. `listed`: as WatchEvent has it.
  void note(Object object, std::vector<WatchEvent>& events, decltype(WatchEvent::listed) listed = {});
  void note_deleted(const std::string& key, std::vector<WatchEvent>& events);
  void log_failure(const Error& error);

  Api& api_;
  Resources& resources_;
  const Kind kind_;
  const std::string name_space_;
  Feed& feed_;
  const ReflectorOptions options_;
  Resource resource_;
  std::unordered_map<std::string, Seen> seen_;  // by "namespace/name"
  std::string version_;                         // everything up to this version was reported
  bool listed_ = false;
  bool first_ = true;
  unsigned failures_ = 0;
  std::chrono::milliseconds asked_pause_{0};  // Retry-After
  std::thread thread_;                        // last, because it uses everything above
};

}  // namespace bsp::kube
