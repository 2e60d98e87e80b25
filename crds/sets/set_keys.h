// Of what the key of a checkpoint set is derived (net::derive_key): from the operator's seed that of a job's sets, and from this the key of
// each. So who has the key of one set can read no other.
#pragma once

#include <cstdint>
#include <format>
#include <string>
#include <string_view>

namespace bsp::crds {

inline std::string sets_of_job(std::string_view uid) { return std::format("checkpoint sets of job {}", uid); }
inline std::string set_of_sets(std::uint64_t id) { return std::format("checkpoint set {}", id); }

// StoredSet::grant of an exported set: the sidecars have its key (names::kSetKeyDir), and the operator derives none.
inline constexpr std::string_view kKeyInPod = "key-in-pod";

}  // namespace bsp::crds
