// criu refuses to open a file whose size isn't the one that it had at the dump. Files on shared volumes run ahead of a dump: bsp-init has
// compared them, or the job has spec.checkpoint.sharedFiles: Ignore and goes on with them as they are. Of all others, such as
// libraries, criu still compares the size.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp::transfer {

using Paths = std::set<std::string, std::less<>>;

// Removes the sizes of these regular files from the image (files.img) of the checkpoint in `directory`; kInvalid: it isn't one.
Result<void> forget_file_sizes(const std::string& directory, const Paths& of);

// The same for the content of such an image: two words, then entries of a length and a protobuf message (criu's images/fdinfo.proto).
Result<std::string> without_file_sizes(std::string_view image, const Paths& of);

}  // namespace bsp::transfer
