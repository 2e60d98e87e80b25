// What a process of a checkpoint set has to find again where it is restored, besides its image: the runtime's library, the CPU
// features that its libraries have seen, its user and groups, and the mounts of its container. A set keeps it as it was; it is
// compared before any rank is restored.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/core/cpu_features.h"
#include "crds/bspjob.h"
#include "crds/wire.h"

namespace bsp::reconcile {

struct Observed;
struct PodFacts;

// Of the program in that pod, as its container's environment has it: "user 1000:1000, groups 5 6". "": the pod is of no job
// that makes sets, or can't be read.
std::string account_of(const nlohmann::json& pod);
// "/data = persistentVolumeClaim data; …", by path, without what the operator and the cluster add. A long text ends with a
// checksum of all of it.
std::string mounts_of(const nlohmann::json& pod);

// Keeps both in a pod that is about to lose the fields they are read from, as objects do that are cached.
void keep_program(nlohmann::json& pod);
inline constexpr const char* kOfProgram = "ofProgram";

// Notes all of it in a set that the ranks have made where they are.
void describe_program(const Observed& o, crds::StoredSet& set);

class Skew {
 public:
  explicit Skew(const crds::StoredSet& set, std::size_t ranks);
  // Why the rank can't be restored in that pod, nor in any other, as far as is known; "": nothing is in its way. `status`: may be null.
  [[nodiscard]] std::string of(const crds::RankPlace& place, const PodFacts& pod, const wire::RankStatus* status) const;
  // Why it can't on a node with these CPU features; "": it can.
  [[nodiscard]] std::string of_cpu(std::uint32_t rank, const std::string& node, CpuFeatures has) const;
  // What the rank's libraries have seen. Empty: not known.
  [[nodiscard]] CpuFeatures seen(std::uint32_t rank) const { return rank < seen_.size() ? seen_[rank] : CpuFeatures(); }

 private:
  const crds::StoredSet& set_;
  std::vector<CpuFeatures> seen_;  // by rank
};

}  // namespace bsp::reconcile
