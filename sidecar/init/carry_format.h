// The archive's first entry, if directories have changed: the names in them. Used by both ends of carry.h.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "sidecar/init/changes.h"

namespace bsp::init {

inline constexpr std::size_t kArchiveBlock = 64 * 1024;
inline constexpr std::string_view kDirectoriesEntry = "bsp-directories";  // every other path is absolute

using ArchiveWriter = std::unique_ptr<archive, decltype(&archive_write_free)>;
using ArchiveReader = std::unique_ptr<archive, decltype(&archive_read_free)>;

std::unexpected<Error> archive_error(archive* a, const std::string& what);

// Zero-terminated strings (no file name contains zero): D path, then its names as E name, M name or S mode name.
std::string encode_directories(const std::vector<ChangedDirectory>& directories);
Result<std::vector<ChangedDirectory>> decode_directories(std::string_view text);

}  // namespace bsp::init
