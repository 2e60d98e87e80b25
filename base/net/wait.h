// Blocking with a deadline on a non-blocking TLS socket; shared by the stream and the blocking link.
#pragma once

#include "base/net/loop.h"
#include "base/net/tls.h"

namespace bsp::net {

// kTimeout if `fd` does not become ready before `deadline`.
Result<void> wait_for(int fd, TlsSocket::Wait wait, SteadyTime deadline);

}  // namespace bsp::net
