// Keeps up with all objects of one kind: list once, then watch from there, for as long as it lives.
//
//        ┌────────── 410, events out of order, kind unknown ──────────┐
//        ▼                                                            │
//   list in pages ──> watch from the list's resourceVersion ──> ended, cut, silent
//                       ▲                                             │
//                       └──── resume at the last version or bookmark ─┘
//
// A second list tells only what differs from what was told before, deletions included. A watch is asked to end
// after about a minute, so a connection that died silently is noticed within that time; a read that times out
// elsewhere ends it at once (Http::end_streams).
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
  std::chrono::seconds watch{60};          // what the server is asked for; varied by up to half
  std::chrono::seconds grace{15};          // silence beyond that is a stall
  std::function<void(Object&)> trim = {};  // drops what nobody reads
};

class Reflector {
 public:
  Reflector(Api& api, Resources& resources, Kind kind, std::string name_space, Feed& feed, ReflectorOptions options);
  // The Http and the Feed must be closed before.
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
  bool pause();  // false: closed
  Result<void> list();
  End watch();
  End take_line(std::string_view line);
  // Notes the object and appends what is new about it.
  void note(Object object, std::vector<WatchEvent>& events);
  void note_gone(const std::string& key, std::vector<WatchEvent>& events);
  void troubled(const Error& error);

  Api& api_;
  Resources& resources_;
  const Kind kind_;
  const std::string name_space_;
  Feed& feed_;
  const ReflectorOptions options_;
  Resource resource_;
  std::unordered_map<std::string, Seen> seen_;  // by "namespace/name"
  std::string version_;                         // up to which everything was told
  bool listed_ = false;
  bool first_ = true;
  unsigned failures_ = 0;
  std::chrono::milliseconds asked_pause_{0};  // by the server
  std::thread thread_;                        // last: it uses all of the above
};

}  // namespace bsp::kube
