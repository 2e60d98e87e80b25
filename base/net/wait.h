// Waits for a non-blocking TLS socket until a deadline; used by TlsStream and Link.
#pragma once

#include "base/net/loop.h"
#include "base/net/tls.h"

namespace bsp::net {

// kTimeout if `fd` does not become ready before `deadline`.
Result<void> wait_for(int fd, TlsSocket::Wait wait, SteadyTime deadline);

}  // namespace bsp::net
