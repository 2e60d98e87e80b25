// Which nodes a rank's program can run on, by the CPU features that its libraries have seen (base/core/cpu_features.h), as far
// as they are known: from the sidecars of pods that are or have been there. A node of which nothing is known isn't ruled out: the
// first target there says what it has, before any rank stops, and its wave goes back (CPUFeaturesDiffer).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/cpu_features.h"
#include "operator/observe/snapshot.h"

namespace bsp::observe {

// Of one rank; what its sidecar has not said is empty.
struct RankCpu {
  std::string_view set, node;
  CpuFeatures cpu;   // of its node
  CpuFeatures seen;  // by its program's libraries
};

class CpuFacts {
 public:
  // `ranks`: by rank. Both must outlive this.
  CpuFacts(const std::vector<NodeFacts>& nodes, std::vector<RankCpu> ranks);

  // Empty: not known.
  [[nodiscard]] CpuFeatures of_node(std::string_view node) const;
  [[nodiscard]] CpuFeatures seen_by(std::uint32_t rank) const;
  // What the node lacks for the rank's program.
  [[nodiscard]] CpuFeatures lacks(std::string_view node, std::uint32_t rank) const {
    return of_node(node).lacks(seen_by(rank));
  }

  // A Set that has no node for the rank's program, and what its nodes lack.
  struct Closed {
    std::string set;
    CpuFeatures lacks;
  };
  [[nodiscard]] const std::vector<Closed>& closed_to(std::uint32_t rank) const;
  // A node that some rank can't use although its Set has others for it. The cost model, which chooses among a Set's nodes by
  // their speed, leaves it out.
  [[nodiscard]] bool is_odd(std::string_view node) const { return odd_.contains(node); }

  // What the nodes of these Sets and those of the ranks have in common, as far as known, and the Sets of which nothing is.
  struct Common {
    CpuFeatures features;
    std::vector<std::string> unknown_sets;
  };
  [[nodiscard]] Common common(const std::vector<std::string>& sets) const;

 private:
  const std::vector<NodeFacts>& nodes_;
  std::vector<RankCpu> ranks_;
  std::map<std::string_view, CpuFeatures> of_node_;
  std::map<std::uint64_t, std::vector<Closed>> closed_;  // by what a program has seen: few differ
  std::map<std::string_view, bool> odd_;
};

}  // namespace bsp::observe
