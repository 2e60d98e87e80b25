#include "sidecar/shim/objects/recipes.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "sidecar/shim/handles/error_codes.h"
#include "sidecar/shim/measure/measure.h"
#include "sidecar/shim/messages/requests.h"
#include "sidecar/shim/process/message.h"
#include "sidecar/shim/process/state.h"

namespace bsp::shim {

BsendBuffer bsend_buffer;

InfoRecipe read_info(MPI_Info info) {
  InfoRecipe recipe;
  int keys = 0;
  real.Info_get_nkeys(info, &keys);
  for (int i = 0; i < keys; ++i) {
    char key[MPI_MAX_INFO_KEY + 1] = "";
    real.Info_get_nthkey(info, i, key);
    int length = 0;
    int flag = 0;
    real.Info_get_valuelen(info, key, &length, &flag);
    if (!flag) continue;
    std::string value(static_cast<std::size_t>(length) + 1, '\0');
    real.Info_get(info, key, length, value.data(), &flag);
    value.resize(static_cast<std::size_t>(length));
    recipe.emplace_back(key, std::move(value));
  }
  return recipe;
}

MPI_Info make_info(const InfoRecipe& recipe) {
  MPI_Info info = nullptr;
  must(real.Info_create(&info), "recreating an info");
  for (const auto& [key, value] : recipe) real.Info_set(info, key.c_str(), value.c_str());
  return info;
}

InfoRecipe replaced_by(InfoRecipe given, MPI_Info now) {
  for (auto& [key, value] : read_info(now)) {
    std::erase_if(given, [&](const auto& hint) { return hint.first == key; });
    given.emplace_back(std::move(key), std::move(value));
  }
  real.Info_free(&now);
  return given;
}

namespace {

// What MPI's next session would reset.
InfoRecipe info_env;                                            // of MPI_INFO_ENV: as the program was started
std::map<MPI_Datatype, std::string> names_of_predefined_types;  // that the program has set
std::mutex names_lock;

void restore_info_env() {
  for (const auto& [key, value] : read_info(pre.info_env)) real.Info_delete(pre.info_env, key.c_str());
  for (const auto& [key, value] : info_env) real.Info_set(pre.info_env, key.c_str(), value.c_str());
}

void make_group(Group& group) {
  MPI_Group world_group = nullptr;
  MPI_Group made = nullptr;
  real.Comm_group(world.real, &world_group);
  must(real.Group_incl(world_group, static_cast<int>(group.world.size()), group.world.data(), &made),
       "recreating a group");
  real.Group_free(&world_group);
  groups.set_real(&group, made);
  group.world.clear();
}

}  // namespace

void note_name(MPI_Datatype type, const char* name) {
  if (is_ours(type)) return;
  const std::lock_guard guard(names_lock);
  names_of_predefined_types[type] = name;
}

void save_objects() {
  info_env = read_info(pre.info_env);
  for (Comm* comm : {&world, &self}) {
    comm->recipe = std::make_unique<CommRecipe>();
    read_comm(*comm, *comm->recipe);
  }
  save_requests();
  auto all_comms = comms.live();
  for (Comm* comm : all_comms) {
    comm->recipe = std::make_unique<CommRecipe>();
    read_comm(*comm, *comm->recipe);
  }
  for (Group* group : groups.live()) group->world = world_ranks(group->real);
  for (Datatype* type : datatypes.live()) type->recipe = read_type(type->real);
  for (Info* info : infos.live()) info->recipe = read_info(info->real);

  if (bsend_buffer.address != nullptr) {
    void* address = nullptr;
    int size = 0;
    real.Buffer_detach(&address, &size);
  }
  std::reverse(all_comms.begin(), all_comms.end());
  for (Comm* comm : all_comms) real.Comm_free(&comm->real);
  groups.free_all_real(real.Group_free);
  forget_empty_groups();
  for (Datatype* type : datatypes.live())
    if (!type->never_freed) real.Type_free(&type->real);
  ops.free_all_real(real.Op_free);
  for (Info* info : infos.live()) real.Info_free(&info->real);
  for (Comm* comm : {&world, &self})  // drops references to the error handlers before these are freed
    real.Comm_set_errhandler(comm->real, pre.errors_are_fatal);
  errhandlers.free_all_real(real.Errhandler_free);
  for (Errhandler* handler : errhandlers.live()) {
    const bool used = std::exchange(handler->used, false);
    if (handler->references <= 0 && !used) forget(handler);
  }
}

void forget_unused_peers() {
  std::unordered_set<const Peers*> used{receipt.peers, world.peers, self.peers};
  const auto use_all = [&](const auto& pool) {
    for (const auto* object : pool.live()) used.insert(object->peers);
  };
  use_all(comms), use_all(windows), use_all(files), use_all(matched_messages);
  for (const Request* r = youngest_request(); r != nullptr; r = r->next) used.insert(r->peers);
  const auto use_made = [&](const Comm& comm) {
    for (const auto& [of, number] : comm.made) used.insert(of.first);
  };
  use_made(world), use_made(self);
  for (const Comm* comm : comms.live()) use_made(*comm);
  forget_peers_but(used);
}

void restore_infos() {
  for (Info* info : infos.live()) info->real = make_info(info->recipe);
}

void restore_objects() {
  repeat_error_codes();
  restore_info_env();
  for (const auto& [type, name] : names_of_predefined_types) real.Type_set_name(type, name.c_str());
  for (Errhandler* handler : errhandlers.live()) must(make_real(*handler), "recreating an error handler");
  restore_infos();
  for (Op* op : ops.live()) must(make_real(*op), "recreating an operation");
  for (Datatype* type : datatypes.live()) {
    type->real = make_type(*type->recipe);
    if (type->committed) real.Type_commit(&type->real);
    real.Type_set_name(type->real, type->recipe->name.c_str());
    type->recipe.reset();
  }
  for (Group* group : groups.live()) make_group(*group);
  for (Comm* comm : {&world, &self}) restore_comm_settings(*comm);
  auto all_comms = comms.live();
  std::ranges::sort(all_comms, {}, &Comm::id);
  for (Comm* comm : all_comms) make_comm(*comm);
  if (bsend_buffer.address != nullptr) real.Buffer_attach(bsend_buffer.address, bsend_buffer.size);
}

}  // namespace bsp::shim
