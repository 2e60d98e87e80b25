// How Store::wait finds changes: it stores what each cursor has seen and compares that with the files.
//
// Because it compares states instead of replaying a log, it loses nothing and needs no unbounded memory. It reports a
// deleted object with its last content, and a recreated one as Deleted and Added.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/fd.h"
#include "operator/local/store.h"

namespace bsp::local {

// Objects are <name>.json; names beginning with '.' are temporary.
inline bool is_object_file(std::string_view name) { return !name.starts_with('.') && name.ends_with(".json"); }

struct Store::Watch {
  struct Seen {
    std::uint64_t inode = 0;  // rename gives every version its own inode and time
    std::int64_t changed_ns = 0;
    kube::Object object;
  };
  std::mutex busy;                       // one wait() at a time per cursor
  std::vector<std::string> directories;  // one per kind
  std::map<std::string, Seen> seen;      // by path
  Fd inotify;
  std::map<int, std::string> watched;
};

struct Store::Watches {
  std::mutex mutex;
  std::uint64_t next = 1;
  std::map<std::string, std::unique_ptr<Watch>> by_cursor;
};

}  // namespace bsp::local
