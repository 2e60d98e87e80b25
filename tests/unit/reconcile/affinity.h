// A PodSpec that requires a node affinity, for the tests of placement and of capacity.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

namespace bsp::reconcile {

// `terms`: nodeSelectorTerms.
inline nlohmann::json required(nlohmann::json terms) {
  return {{"affinity",
           {{"nodeAffinity",
             {{"requiredDuringSchedulingIgnoredDuringExecution", {{"nodeSelectorTerms", std::move(terms)}}}}}}}};
}

}  // namespace bsp::reconcile
