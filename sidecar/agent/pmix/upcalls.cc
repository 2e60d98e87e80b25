#include "sidecar/agent/pmix/upcalls.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace bsp::pmix {
namespace {

struct Active {
  net::Loop* loop = nullptr;
  Server::Upcalls upcalls;
};
Active* active = nullptr;

constexpr std::size_t kMaxMessage = 1024;

// Character arrays that need not be null-terminated.
std::string text_of(const char* text, std::size_t most) { return text ? std::string(text, ::strnlen(text, most)) : ""; }
std::string name_of(const pmix_nspace_t name) { return text_of(name, PMIX_MAX_NSLEN); }

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

// Memory that the library reads after the callback has returned, and releases through these functions.
void release_string(void* held) { delete static_cast<std::string*>(held); }

void answer_modex(pmix_modex_cbfunc_t callback, void* data, Result<std::string> result) {
  if (!result) return callback(status_of(result.error()), nullptr, 0, data, nullptr, nullptr);
  // A null pointer means "no data was collected"; the library would try to parse an empty block, and fail.
  if (result->empty()) return callback(PMIX_SUCCESS, nullptr, 0, data, nullptr, nullptr);
  auto* held = new std::string(std::move(*result));
  callback(PMIX_SUCCESS, held->data(), held->size(), data, release_string, held);
}

// --- Upcalls, in the library's thread ----------------------------------------------------------------

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
  if (!proc) return PMIX_ERR_BAD_PARAM;
  active->loop->post(
      [name = name_of(proc->nspace), rank = proc->rank, status, text = text_of(message, kMaxMessage)]() mutable {
        if (active) active->upcalls.aborted(std::move(name), rank, status, std::move(text));
      });
  if (done) done(PMIX_SUCCESS, data);
  return PMIX_SUCCESS;
}

pmix_status_t on_fence(const pmix_proc_t* procs, std::size_t count, const pmix_info_t*, std::size_t, char* data,
                       std::size_t size, pmix_modex_cbfunc_t done, void* done_data) {
  const std::unique_ptr<char, decltype(&std::free)> owned(data, std::free);  // owned here from now on, used or not
  auto taken = collective_of(procs, count);
  if (!taken || (!data && size > 0)) return PMIX_ERR_BAD_PARAM;
  Collective collective = std::move(*taken);
  collective.key = "fence";
  if (data) collective.data.assign(data, size);
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
  if (operation != PMIX_GROUP_CONSTRUCT && operation != PMIX_GROUP_DESTRUCT) return PMIX_ERR_NOT_SUPPORTED;
  auto taken = collective_of(procs, count);
  if (!taken || !group || (!info && info_count > 0)) return PMIX_ERR_BAD_PARAM;
  Collective collective = std::move(*taken);
  collective.key =
      std::format("{}/{}", operation == PMIX_GROUP_CONSTRUCT ? "group" : "ungroup", text_of(group, PMIX_MAX_KEYLEN));
  for (std::size_t i = 0; i < info_count; ++i) {
    // For a group of ranks of this server alone, whose end needs nobody else, the library only notifies the server. A later answer
    // would make PMIx 5.0 call again with a tracker it has freed by then, and a closing session wait for 2 s.
    if (PMIX_CHECK_KEY(&info[i], PMIX_GROUP_LOCAL_ONLY) && is_true(info[i])) return PMIX_OPERATION_SUCCEEDED;
    if (!PMIX_CHECK_KEY(&info[i], PMIX_GROUP_ENDPT_DATA)) continue;
    auto bytes = bytes_of(info[i].value, kMaxPart);
    if (!bytes) return PMIX_ERR_BAD_PARAM;
    collective.data = std::move(*bytes);
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
  if (!proc) return PMIX_ERR_BAD_PARAM;
  active->loop->post([name = name_of(proc->nspace), rank = proc->rank, done, data]() mutable {
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

}  // namespace

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

void set_receiver(net::Loop& loop, Server::Upcalls upcalls) { active = new Active{&loop, std::move(upcalls)}; }
void drop_receiver() { delete std::exchange(active, nullptr); }
bool has_receiver() { return active != nullptr; }

void post_if_received(net::Loop::Callback work) {
  if (active) active->loop->post(std::move(work));
}

std::optional<std::string> bytes_of(const pmix_value_t& value, std::size_t most) {
  if (value.type != PMIX_BYTE_OBJECT) return std::nullopt;  // otherwise the union holds another type
  const pmix_byte_object_t& bytes = value.data.bo;
  if (bytes.size > most || (bytes.size > 0 && !bytes.bytes)) return std::nullopt;
  return bytes.size > 0 ? std::string(bytes.bytes, bytes.size) : std::string();
}

// A key without a value means true, as in the library. The flag comes from a client, so it may be any byte.
bool is_true(const pmix_info_t& info) {
  unsigned char flag = 0;
  std::memcpy(&flag, &info.value.data.flag, sizeof(flag));
  return info.value.type == PMIX_UNDEF || (info.value.type == PMIX_BOOL && flag != 0);
}

Result<Collective> collective_of(const pmix_proc_t* procs, std::size_t count) {
  if (!procs || count == 0) return fail(ErrorCode::kInvalid, "a collective without members");
  Collective collective;
  collective.name_space = name_of(procs[0].nspace);
  bool all = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (name_of(procs[i].nspace) != collective.name_space)
      return fail(ErrorCode::kInvalid, "a collective across namespaces");
    all |= procs[i].rank == PMIX_RANK_WILDCARD;
    collective.members.push_back(procs[i].rank);
  }
  if (all) collective.members.clear();
  std::ranges::sort(collective.members);
  const auto twice = std::ranges::unique(collective.members);
  collective.members.erase(twice.begin(), twice.end());
  return collective;
}

}  // namespace bsp::pmix
