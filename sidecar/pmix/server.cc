#include "sidecar/pmix/server.h"

#include <pmix_server.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/core/log.h"
#include "sidecar/pmix/job_info.h"

namespace bsp::pmix {
namespace {

// The library's callbacks have no user pointer, hence one server per process.
struct Active {
  net::Loop* loop = nullptr;
  Server::Upcalls upcalls;
};
Active* active = nullptr;

std::unexpected<Error> pmix_failed(std::string_view what, pmix_status_t status) {
  return fail(ErrorCode::kFailed, std::format("PMIx: {}: {}", what, PMIx_Error_string(status)));
}

pmix_status_t status_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::kTimeout:
      return PMIX_ERR_TIMEOUT;
    case ErrorCode::kUnavailable:
      return PMIX_ERR_LOST_CONNECTION;
    case ErrorCode::kNotFound:
      return PMIX_ERR_NOT_FOUND;
    default:
      return PMIX_ERROR;
  }
}

// The ranks named by `procs`; a wildcard means all of the namespace, told by an empty list.
std::vector<std::uint32_t> ranks_of(const pmix_proc_t* procs, std::size_t count) {
  std::vector<std::uint32_t> ranks;
  for (std::size_t i = 0; i < count; ++i) {
    if (procs[i].rank == PMIX_RANK_WILDCARD) return {};
    ranks.push_back(procs[i].rank);
  }
  std::ranges::sort(ranks);
  return ranks;
}

// Memory that the library reads after our callback returned and releases through these.
void release_string(void* held) { delete static_cast<std::string*>(held); }

void answer_modex(pmix_modex_cbfunc_t callback, void* data, Result<std::string> result) {
  if (!result) return callback(status_of(result.error()), nullptr, 0, data, nullptr, nullptr);
  // A null pointer means "no data was collected"; an empty block would be read, and fail.
  if (result->empty()) return callback(PMIX_SUCCESS, nullptr, 0, data, nullptr, nullptr);
  auto* held = new std::string(std::move(*result));
  callback(PMIX_SUCCESS, held->data(), held->size(), data, release_string, held);
}

// --- Upcalls: in the library's thread ----------------------------------------------------------------

pmix_status_t on_connected(const pmix_proc_t*, void*, pmix_info_t*, std::size_t, pmix_op_cbfunc_t done, void* data) {
  if (done) done(PMIX_SUCCESS, data);
  return PMIX_SUCCESS;
}

pmix_status_t on_finalized(const pmix_proc_t*, void*, pmix_op_cbfunc_t done, void* data) {
  if (done) done(PMIX_SUCCESS, data);
  return PMIX_SUCCESS;
}

pmix_status_t on_abort(const pmix_proc_t* proc, void*, int status, const char* message, pmix_proc_t*, std::size_t,
                       pmix_op_cbfunc_t done, void* data) {
  active->loop->post([name = std::string(proc->nspace), status, text = std::string(message ? message : "")]() mutable {
    if (active) active->upcalls.aborted(std::move(name), status, std::move(text));
  });
  if (done) done(PMIX_SUCCESS, data);
  return PMIX_SUCCESS;
}

pmix_status_t on_fence(const pmix_proc_t* procs, std::size_t count, const pmix_info_t*, std::size_t, char* data,
                       std::size_t size, pmix_modex_cbfunc_t done, void* done_data) {
  Collective collective;
  collective.name_space = procs[0].nspace;
  collective.members = ranks_of(procs, count);
  collective.key = "fence";
  collective.data.assign(data ? data : "", size);
  std::free(data);  // handed over to us by PMIX_UNLOAD_BUFFER
  active->loop->post([collective = std::move(collective), done, done_data]() mutable {
    if (!active) return;
    active->upcalls.all_gather(std::move(collective), [done, done_data](Result<Gathered> all) {
      answer_modex(done, done_data, all ? Result<std::string>(std::move(all->data)) : std::unexpected(all.error()));
    });
  });
  return PMIX_SUCCESS;
}

struct GroupAnswer {
  pmix_info_t* info = nullptr;
  std::size_t count = 0;
};

void release_group_answer(void* held) {
  auto* answer = static_cast<GroupAnswer*>(held);
  PMIX_INFO_FREE(answer->info, answer->count);
  delete answer;
}

void answer_group(pmix_info_cbfunc_t callback, void* data, const Gathered& all, std::vector<pmix_proc_t>& members) {
  auto* answer = new GroupAnswer;
  answer->count = all.data.empty() ? 2 : 3;
  PMIX_INFO_CREATE(answer->info, answer->count);
  std::size_t context = all.context_id;
  PMIX_INFO_LOAD(&answer->info[0], PMIX_GROUP_CONTEXT_ID, &context, PMIX_SIZE);
  pmix_data_array_t array{.type = PMIX_PROC, .size = members.size(), .array = members.data()};
  PMIX_INFO_LOAD(&answer->info[1], PMIX_GROUP_MEMBERSHIP, &array, PMIX_DATA_ARRAY);  // copies
  if (!all.data.empty()) {
    pmix_byte_object_t bytes{.bytes = const_cast<char*>(all.data.data()), .size = all.data.size()};
    PMIX_INFO_LOAD(&answer->info[2], PMIX_GROUP_ENDPT_DATA, &bytes, PMIX_BYTE_OBJECT);
  }
  callback(PMIX_SUCCESS, answer->info, answer->count, data, release_group_answer, answer);
}

pmix_status_t on_group(pmix_group_operation_t operation, char* group, const pmix_proc_t* procs, std::size_t count,
                       const pmix_info_t* info, std::size_t info_count, pmix_info_cbfunc_t done, void* done_data) {
  if (count == 0 || (operation != PMIX_GROUP_CONSTRUCT && operation != PMIX_GROUP_DESTRUCT))
    return PMIX_ERR_NOT_SUPPORTED;
  Collective collective;
  collective.name_space = procs[0].nspace;
  collective.members = ranks_of(procs, count);
  collective.key = std::format("{}/{}", operation == PMIX_GROUP_CONSTRUCT ? "group" : "ungroup", group);
  for (std::size_t i = 0; i < info_count; ++i) {
    // Of a group of this rank alone the library only wants us to know. Answering it later would make
    // PMIx 5.0 ask a second time with the tracker it has freed by then.
    if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_LOCAL_ONLY) && PMIX_INFO_TRUE(&info[i])) return PMIX_OPERATION_SUCCEEDED;
    if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ENDPT_DATA))
      collective.data.assign(info[i].value.data.bo.bytes, info[i].value.data.bo.size);
  }
  active->loop->post([collective = std::move(collective), members = std::vector(procs, procs + count),
                      construct = operation == PMIX_GROUP_CONSTRUCT, done, done_data]() mutable {
    if (!active) return;
    active->upcalls.all_gather(std::move(collective), [members = std::move(members), construct, done,
                                                       done_data](Result<Gathered> all) mutable {
      if (!all)
        done(status_of(all.error()), nullptr, 0, done_data, nullptr, nullptr);
      else if (construct)
        answer_group(done, done_data, *all, members);
      else
        done(PMIX_SUCCESS, nullptr, 0, done_data, nullptr, nullptr);
    });
  });
  return PMIX_SUCCESS;
}

pmix_status_t on_direct_modex(const pmix_proc_t* proc, const pmix_info_t*, std::size_t, pmix_modex_cbfunc_t done,
                              void* data) {
  active->loop->post([name = std::string(proc->nspace), rank = proc->rank, done, data]() mutable {
    if (!active) return;
    active->upcalls.fetch(std::move(name), rank,
                          [done, data](Result<std::string> blob) { answer_modex(done, data, std::move(blob)); });
  });
  return PMIX_SUCCESS;
}

pmix_status_t on_query(pmix_proc_t*, pmix_query_t*, std::size_t, pmix_info_cbfunc_t, void*) {
  return PMIX_ERR_NOT_SUPPORTED;
}

pmix_status_t on_register_events(pmix_status_t*, std::size_t, const pmix_info_t*, std::size_t, pmix_op_cbfunc_t,
                                 void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t on_deregister_events(pmix_status_t*, std::size_t, pmix_op_cbfunc_t, void*) {
  return PMIX_OPERATION_SUCCEEDED;
}

pmix_server_module_t upcall_table() {
  pmix_server_module_t table{};
  table.client_connected2 = on_connected;
  table.client_finalized = on_finalized;
  table.abort = on_abort;
  table.fence_nb = on_fence;
  table.direct_modex = on_direct_modex;
  table.group = on_group;
  table.query = on_query;
  table.register_events = on_register_events;
  table.deregister_events = on_deregister_events;
  return table;
}

pmix_proc_t proc_of(const std::string& name_space, std::uint32_t rank) {
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, name_space.c_str(), rank);
  return proc;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::start(net::Loop& loop, const std::string& directory, Upcalls upcalls) {
  check(active == nullptr, "one PMIx server per process");
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return fail_errno("making " + directory);
  // The shared-memory store maps a file of the server's directory into the client, which a checkpoint
  // could not follow; munge is a daemon that a pod doesn't have.
  ::setenv("PMIX_MCA_gds", "hash", 1);
  ::setenv("PMIX_MCA_psec", "native", 1);
  // The container's own file system is read-only.
  ::setenv("TMPDIR", directory.c_str(), 1);
  // hwloc would load its plugins for GPUs and X11, 2 MiB that nobody here asks for.
  ::setenv("HWLOC_PLUGINS_PATH", "/nonexistent", 1);
  active = new Active{&loop, std::move(upcalls)};
  static pmix_server_module_t table = upcall_table();
  InfoList info;
  info.add(PMIX_SERVER_TMPDIR, directory.c_str());
  info.add(PMIX_SYSTEM_TMPDIR, directory.c_str());
  info.add(PMIX_HOSTNAME, "bsp");
  pmix_status_t status = PMIx_server_init(&table, info.data(), info.size());
  if (status != PMIX_SUCCESS) {
    delete std::exchange(active, nullptr);
    return pmix_failed("starting the server", status);
  }
  return std::unique_ptr<Server>(new Server());
}

Server::~Server() {
  PMIx_server_finalize();
  delete std::exchange(active, nullptr);
}

Result<void> Server::register_namespace(const std::string& name_space, std::uint32_t rank, std::uint32_t size) {
  InfoList info = job_info(name_space, rank, size);
  pmix_status_t status = PMIx_server_register_nspace(name_space.c_str(), 1, info.data(), info.size(), nullptr, nullptr);
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

void Server::forget(const std::string& name_space, std::uint32_t rank) {
  pmix_proc_t proc = proc_of(name_space, rank);
  PMIx_server_deregister_client(&proc, nullptr, nullptr);
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
    if (active)
      active->loop->post([mine = std::move(mine), blob = std::move(blob)]() mutable { mine->done(std::move(blob)); });
  };
  pmix_proc_t proc = proc_of(name_space, rank);
  pmix_status_t status = PMIx_server_dmodex_request(&proc, answer, wanted);
  if (status != PMIX_SUCCESS) answer(status, nullptr, 0, wanted);
}

}  // namespace bsp::pmix
