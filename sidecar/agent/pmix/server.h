// The PMIx server of a pod, which Open MPI queries for its wiring when it opens a session.
//
// One server for the life of the process; per epoch one namespace, with a client for each rank of the pod. The library has its own
// thread; its upcalls are copied and posted to the loop, and every function here is called in the loop's thread. The sidecar need not run
// as root or as the program's user: PMIx's "native" security compares the uid and gid that the client states with those registered for
// it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/error.h"
#include "base/net/loop.h"
#include "sidecar/agent/pmix/placement.h"

namespace bsp::pmix {

// A fence or a group operation: every member contributes and gets all contributions. The library calls once for all members of a
// server, with their contributions in `data`.
struct Collective {
  std::string name_space;
  std::string key;                     // the same at every member; repeated for repeated operations
  std::vector<std::uint32_t> members;  // ascending and unique; empty: all
  std::string data;
};

// The most that one rank may contribute; Open MPI's connection data is about 2 KiB. A message's limit bounds the
// total, see AllGather.
inline constexpr std::size_t kMaxPart = 1 << 20;

struct Gathered {
  std::string data;              // all contributions, in the order of the servers
  std::uint64_t context_id = 0;  // unique among all collectives of the namespace, the same on every rank
};

// The namespaces of a pod's epochs, and who may connect to them.
class Namespaces {
 public:
  using FetchDone = std::move_only_function<void(Result<std::string>)>;

  virtual ~Namespaces() = default;
  // Creates a namespace; this is `server` of the placement.
  virtual Result<void> register_namespace(const std::string& name_space, const Placement& placement,
                                          std::uint32_t server) = 0;
  // Lets the rank's program connect and returns its environment, "PMIX_…=value" each. The library begins no collective
  // before all ranks of the server are registered, and may miss that they are: register them all at once.
  virtual Result<std::vector<std::string>> register_client(const std::string& name_space, std::uint32_t rank, uid_t uid,
                                                           gid_t gid) = 0;
  // `ranks`: those of this server.
  virtual void forget(const std::string& name_space, const std::vector<std::uint32_t>& ranks) = 0;

  // The connection data that a rank of this server has published, for a request from another server.
  virtual void published(const std::string& name_space, std::uint32_t rank, FetchDone done) = 0;
};

class Server final : public Namespaces {
 public:
  using GatherDone = std::move_only_function<void(Result<Gathered>)>;

  struct Upcalls {
    std::function<void(Collective, GatherDone)> all_gather;
    // Connection data of a rank on another node (direct modex).
    std::function<void(std::string name_space, std::uint32_t rank, FetchDone)> fetch;
    std::function<void(std::string name_space, std::uint32_t rank, int status, std::string message)> aborted;
  };

  // Creates `directory` if missing. Only one Server can exist in a process at a time.
  static Result<std::unique_ptr<Server>> start(net::Loop& loop, const std::string& directory, Upcalls upcalls);
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  Result<void> register_namespace(const std::string& name_space, const Placement& placement,
                                  std::uint32_t server) override;
  Result<std::vector<std::string>> register_client(const std::string& name_space, std::uint32_t rank, uid_t uid,
                                                   gid_t gid) override;
  void forget(const std::string& name_space, const std::vector<std::uint32_t>& ranks) override;
  void published(const std::string& name_space, std::uint32_t rank, FetchDone done) override;

 private:
  Server() = default;
};

}  // namespace bsp::pmix
