// What the PMIx library calls in its own thread, for the program: each call's arguments come from a message that the program
// has sent, by any library or none. They are checked, copied, and posted to the loop.
#pragma once

#include <pmix_server.h>

#include "base/net/loop.h"
#include "sidecar/agent/pmix/server.h"

namespace bsp::pmix {

// The library's callbacks have no user pointer, hence one receiver per process. All four in the loop's thread.
void set_receiver(net::Loop& loop, Server::Upcalls upcalls);
void drop_receiver();
[[nodiscard]] bool has_receiver();
pmix_server_module_t upcall_table();

// From any thread: `work` runs on the receiver's loop, or is dropped with it.
void post_if_received(net::Loop::Callback work);

// What one value of the program may be, whatever it says it is: nullopt if it is not exactly this.
std::optional<std::string> bytes_of(const pmix_value_t& value, std::size_t most);
bool is_true(const pmix_info_t& info);
// The ranks that `procs` names, ascending, each once; all of the namespace (a wildcard) are an empty list. kInvalid unless
// all are of one namespace.
Result<Collective> collective_of(const pmix_proc_t* procs, std::size_t count);

}  // namespace bsp::pmix
