// criu refuses to open a file whose size isn't the one that it had at the dump. A job with spec.checkpoint.sharedFiles: Ignore goes
// on with files as they are.
#pragma once

#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp::transfer {

// Removes the sizes of regular files from the image (files.img) of the checkpoint in `directory`; kInvalid: it isn't one.
Result<void> forget_file_sizes(const std::string& directory);

// The same for the content of such an image: two words, then entries of a length and a protobuf message (criu's images/fdinfo.proto).
Result<std::string> without_file_sizes(std::string_view image);

}  // namespace bsp::transfer
