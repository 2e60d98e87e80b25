// What a dump for a checkpoint set notes of the program's files on shared volumes (sidecar/init/shared_files.h), as it lies beside the
// image. bsp-init compares it; the sidecar reads from it which files criu must not compare.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/core/fields.h"

namespace bsp::control {

inline constexpr std::string_view kNotesFile = "bsp-shared-files";

// A file as it was at the gate.
struct NotedFile {
  static constexpr std::string_view kVerb = "file";
  std::string path;
  std::uint64_t kind = 0;  // of its file system: f_type of statfs(2)
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t written_ns = 0;  // mtime
  std::uint64_t checksum = 0;   // of its first and last bytes; 0: it could not be read
  int whole = 0;                // 1: of all its bytes
  int open = 0;                 // 1: the program has it open or mapped, with these
  std::uint32_t flags = 0;      // of open(2)
  std::uint64_t position = 0;
  int read_only = 0;  // 1: its volume is mounted so, and it is not compared
  bool operator==(const NotedFile&) const = default;
};
constexpr void fields_of(Of<NotedFile>, auto&& v) {
  v("path", &NotedFile::path);
  v("kind", &NotedFile::kind);
  v("inode", &NotedFile::inode);
  v("size", &NotedFile::size);
  v("written", &NotedFile::written_ns);
  v("checksum", &NotedFile::checksum);
  v("whole", &NotedFile::whole);
  v("open", &NotedFile::open);
  v("flags", &NotedFile::flags);
  v("position", &NotedFile::position);
  v("read_only", &NotedFile::read_only, kRare);
}

struct Notes {
  static constexpr std::string_view kVerb = "notes";
  std::int64_t at_ns = 0;  // when, by the clock of the rank's machine
  int all = 0;             // 1: written ones too
  int incomplete = 0;      // 1: there are too many to look at all
  std::vector<NotedFile> files;
};
constexpr void fields_of(Of<Notes>, auto&& v) {
  v("at", &Notes::at_ns);
  v("all", &Notes::all);
  v("incomplete", &Notes::incomplete);
}

std::string encode(const Notes& notes);  // a packet of control.h in a line
Result<Notes> decode_notes(std::string_view text);

}  // namespace bsp::control
