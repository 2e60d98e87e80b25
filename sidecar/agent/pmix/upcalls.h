// The callbacks that the PMIx library calls in its own thread. Each call's arguments come from a message that the
// program has sent, through any library or none, so they are checked, copied, and posted to the loop.
#pragma once

#include <pmix_server.h>

#include "base/net/loop.h"
#include "sidecar/agent/pmix/server.h"

namespace bsp::pmix {

// The library's callbacks have no user pointer, so there is one receiver per process. Call all four in the loop's
// thread.
void set_receiver(net::Loop& loop, Server::Upcalls upcalls);
void drop_receiver();
[[nodiscard]] bool has_receiver();
pmix_server_module_t upcall_table();

// Callable from any thread: `work` runs on the receiver's loop, or is dropped with it.
void post_if_received(net::Loop::Callback work);

// Decodes one value of the program, whatever type it claims: nullopt unless it is exactly of this type.
std::optional<std::string> bytes_of(const pmix_value_t& value, std::size_t most);
bool is_true(const pmix_info_t& info);
// The ranks that `procs` names, ascending and unique; empty for all of the namespace (a wildcard). kInvalid unless
// all are in one namespace.
Result<Collective> collective_of(const pmix_proc_t* procs, std::size_t count);

}  // namespace bsp::pmix
