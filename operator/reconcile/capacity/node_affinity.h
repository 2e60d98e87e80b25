// Which nodes the node affinity that a pod requires admits, as kube-scheduler reads it: terms are alternatives, all
// requirements of a term must hold, and a term without any matches nothing. What makes no sense matches nothing. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace bsp::reconcile {

inline constexpr const char* kRequiredAffinity = "requiredDuringSchedulingIgnoredDuringExecution";

// The alternatives; null: the PodSpec has none.
const nlohmann::json& required_terms(const nlohmann::json& pod_spec);
bool has_requirements(const nlohmann::json& term);
// True without alternatives, since place_pod() then requires the Set alone.
bool admits(const nlohmann::json& terms, const nlohmann::json& node);

}  // namespace bsp::reconcile
