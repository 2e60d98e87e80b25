// The PMIx server of one rank: what Open MPI asks for its wiring when it opens a session.
//
// One server for the life of the process, one namespace and one client per epoch. The library has a
// thread of its own; its upcalls are copied and posted to the loop, and every function here is called
// in the loop's thread. The sidecar need not run as root nor as the program's user: PMIx's "native"
// security compares the uid and gid that the client states with those registered for it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/net/loop.h"

namespace bsp::pmix {

// A fence or a group operation: every member contributes `data` and gets all contributions.
struct Collective {
  std::string name_space;
  std::string key;                     // the same at every member; repeated for repeated operations
  std::vector<std::uint32_t> members;  // ascending, each once; empty: all
  std::string data;
};

// What one rank contributes at most: Open MPI's connection data is some 2 KiB. All of it together is bounded by what one
// message carries, see AllGather.
inline constexpr std::size_t kMostPart = 1 << 20;

struct Gathered {
  std::string data;              // all contributions, in rank order
  std::uint64_t context_id = 0;  // unique among all collectives of the namespace, the same everywhere
};

class Server {
 public:
  using GatherDone = std::move_only_function<void(Result<Gathered>)>;
  using FetchDone = std::move_only_function<void(Result<std::string>)>;

  struct Upcalls {
    std::function<void(Collective, GatherDone)> all_gather;
    // Connection data of a rank that lives elsewhere (direct modex).
    std::function<void(std::string name_space, std::uint32_t rank, FetchDone)> fetch;
    std::function<void(std::string name_space, int status, std::string message)> aborted;
  };

  // `directory` is made if missing. There can be one Server in a process at a time.
  static Result<std::unique_ptr<Server>> start(net::Loop& loop, const std::string& directory, Upcalls upcalls);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Makes a namespace of `size` ranks, each on a node of its own, of which this server has `rank`.
  Result<void> register_namespace(const std::string& name_space, std::uint32_t rank, std::uint32_t size);
  // Lets the program connect and returns its environment, "PMIX_…=value" each.
  Result<std::vector<std::string>> register_client(const std::string& name_space, std::uint32_t rank, uid_t uid,
                                                   gid_t gid);
  void forget(const std::string& name_space, std::uint32_t rank);

  // The connection data that this server's rank has published, for a fetch from elsewhere.
  void published(const std::string& name_space, std::uint32_t rank, FetchDone done);

 private:
  Server() = default;
};

}  // namespace bsp::pmix
