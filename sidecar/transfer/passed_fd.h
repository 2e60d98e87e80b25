// A file descriptor passed over a Unix socket, with the one byte that carries it.
#pragma once

#include <optional>

#include "base/core/error.h"
#include "base/core/fd.h"

namespace bsp::transfer {

Result<void> pass_fd(int socket, const Fd& fd);
// nullopt: nothing has come yet. kRefused: what came carries no descriptor.
Result<std::optional<Fd>> take_fd(int socket);

}  // namespace bsp::transfer
