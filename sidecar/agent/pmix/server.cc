#include "sidecar/agent/pmix/server.h"

#include <pmix_server.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>

#include "sidecar/agent/pmix/job_info.h"
#include "sidecar/agent/pmix/upcalls.h"

namespace bsp::pmix {
namespace {

std::unexpected<Error> pmix_failed(std::string_view what, pmix_status_t status) {
  return fail(ErrorCode::kFailed, std::format("PMIx: {}: {}", what, PMIx_Error_string(status)));
}

pmix_proc_t proc_of(const std::string& name_space, std::uint32_t rank) {
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, name_space.c_str(), rank);
  return proc;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(net::Loop& loop, const std::string& directory, Upcalls upcalls) {
  check(!has_receiver(), "one PMIx server per process");
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno("making " + directory);
  // The shared-memory store maps a file in the server's directory into the client, which a checkpoint can't follow.
  // munge needs a daemon that a pod doesn't have.
  ::setenv("PMIX_MCA_gds", "hash", 1);
  ::setenv("PMIX_MCA_psec", "native", 1);
  // The container's root file system is read-only.
  ::setenv("TMPDIR", directory.c_str(), 1);
  // hwloc would load plugins for GPUs and X11: 2 MiB that aren't needed here.
  ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
  set_receiver(loop, std::move(upcalls));
  static pmix_server_module_t table = upcall_table();
  InfoList info;
  info.add(PMIX_SERVER_TMPDIR, directory.c_str());
  info.add(PMIX_SYSTEM_TMPDIR, directory.c_str());
  info.add(PMIX_HOSTNAME, "bsp");
  pmix_status_t status = PMIx_server_init(&table, info.data(), info.size());
  if (status != PMIX_SUCCESS) {
    drop_receiver();
    return pmix_failed("starting the server", status);
  }
  return std::unique_ptr<Server>(new Server());
}

Server::~Server() {
  PMIx_server_finalize();
  drop_receiver();
}

Result<void> Server::register_namespace(const std::string& name_space, const Placement& placement,
                                        std::uint32_t server) {
  InfoList info = job_info(name_space, placement, server);
  const auto local = static_cast<int>(placement.ranks_of(server).size());
  pmix_status_t status =
      PMIx_server_register_nspace(name_space.c_str(), local, info.data(), info.size(), nullptr, nullptr);
  if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
    return pmix_failed("registering " + name_space, status);
  return {};
}

Result<std::vector<std::string>> Server::register_client(const std::string& name_space, std::uint32_t rank, uid_t uid,
                                                         gid_t gid) {
  pmix_proc_t proc = proc_of(name_space, rank);
  pmix_status_t status = PMIx_server_register_client(&proc, uid, gid, nullptr, nullptr, nullptr);
  if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED)
    return pmix_failed("registering the program", status);
  char** environment = nullptr;
  status = PMIx_server_setup_fork(&proc, &environment);
  if (status != PMIX_SUCCESS) return pmix_failed("preparing the program's environment", status);
  std::vector<std::string> variables;
  for (char** item = environment; item && *item; ++item)
    if (std::strncmp(*item, "PMIX_", 5) == 0) variables.emplace_back(*item);
  variables.emplace_back("PMIX_MCA_gds=hash");
  PMIx_Argv_free(environment);
  return variables;
}

void Server::forget(const std::string& name_space, const std::vector<std::uint32_t>& ranks) {
  for (const std::uint32_t rank : ranks) {
    pmix_proc_t proc = proc_of(name_space, rank);
    PMIx_server_deregister_client(&proc, nullptr, nullptr);
  }
  PMIx_server_deregister_nspace(name_space.c_str(), nullptr, nullptr);
}

void Server::published(const std::string& name_space, std::uint32_t rank, FetchDone done) {
  struct Wanted {
    FetchDone done;
  };
  auto* wanted = new Wanted{std::move(done)};
  auto answer = [](pmix_status_t status, char* data, std::size_t size, void* held) {
    std::unique_ptr<Wanted> mine(static_cast<Wanted*>(held));
    Result<std::string> blob = std::string(data ? data : "", data ? size : 0);
    if (status != PMIX_SUCCESS) blob = pmix_failed("reading a rank's connection data", status);
    post_if_received([mine = std::move(mine), blob = std::move(blob)]() mutable { mine->done(std::move(blob)); });
  };
  pmix_proc_t proc = proc_of(name_space, rank);
  pmix_status_t status = PMIx_server_dmodex_request(&proc, answer, wanted);
  if (status != PMIX_SUCCESS) answer(status, nullptr, 0, wanted);
}

}  // namespace bsp::pmix
