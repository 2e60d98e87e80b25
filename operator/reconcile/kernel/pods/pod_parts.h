// What the pods that the operator makes have in common: entries of their lists, the rights of its own containers, and the storage of the
// checkpoint sets.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace bsp::crds {
struct BspJob;
struct BspJobSpec;
struct CheckpointStorage;
}  // namespace bsp::crds

namespace bsp::reconcile {

// Adds the entry, or replaces the one of the same name, so that no template can override it.
void put(nlohmann::json& list, const nlohmann::json& entry);
void put_env(nlohmann::json& container, std::string_view name, const std::string& value);

nlohmann::json unprivileged();
// Our own containers pass the restricted Pod Security Standard. They run as another user than the program, which must not
// be able to replace their files in /run/bsp. `pod_spec`: the template's.
nlohmann::json restricted(const nlohmann::json& pod_spec);
// Only for our own containers: the template sets its own. A quota, a LimitRange or the QoS class Guaranteed needs all of
// a pod's containers to have some.
void add_resources(nlohmann::json& container, const crds::BspJob& job);

// The volumes of the storage, which only our own containers mount. `beside`: the volumes that the template has.
void add_storage(nlohmann::json& spec, nlohmann::json& volumes, const crds::CheckpointStorage& storage,
                 const nlohmann::json& beside);
// What a container needs to reach it. The operator knows the names of Secrets, not what is in them.
void mount_storage(nlohmann::json& container, const crds::CheckpointStorage& storage);
// The same of the key of an exported set with which the job begins, if it does.
void add_set_key(nlohmann::json& volumes, const crds::BspJobSpec& spec);
void mount_set_key(nlohmann::json& container, const crds::BspJobSpec& spec);

}  // namespace bsp::reconcile
