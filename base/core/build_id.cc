#include "base/core/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/core/fd.h"
#include "base/core/hex.h"

namespace bsp {
namespace {

constexpr std::size_t kMostNotes = 64 << 10;
constexpr std::size_t kMostId = 64;

bool read_at(int fd, std::uint64_t at, void* into, std::size_t size) {
  return ::pread(fd, into, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
}

std::size_t padded(std::size_t size) { return (size + 3) & ~std::size_t{3}; }

std::string id_in(const std::vector<unsigned char>& notes) {
  std::size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= notes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof note);
    const std::size_t name = at + sizeof note, id = name + padded(note.n_namesz);
    if (id + note.n_descsz > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0 &&
        note.n_descsz <= kMostId)
      return hex_of({reinterpret_cast<const char*>(notes.data() + id), note.n_descsz});
    at = id + padded(note.n_descsz);
  }
  return "";
}

}  // namespace

std::string build_id_of(const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  Elf64_Ehdr header;
  if (!fd || !read_at(fd.get(), 0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return "";
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(fd.get(), header.e_phoff + i * sizeof segment, &segment, sizeof segment)) return "";
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNotes) continue;
    std::vector<unsigned char> notes(segment.p_filesz);
    if (!read_at(fd.get(), segment.p_offset, notes.data(), notes.size())) return "";
    if (std::string id = id_in(notes); !id.empty()) return id;
  }
  return "";
}

}  // namespace bsp
