// The conditions of a BSPJob, in one place: what raises each, its reasons while it is True, what its message says, and the remedy with
// which that ends. docs/conditions.md is made of this table.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace bsp::reconcile {

struct ConditionKind {
  const char* type;
  const char* raised;   // when
  const char* reasons;  // while it is True, and only then
  const char* message;  // what it says, as an example
  const char* remedy;   // "": the condition is a state, and nothing is wrong
};

// In the order of the page: what keeps a job from starting, what keeps ranks from moving, the rest, the states.
std::span<const ConditionKind> condition_kinds();
// check()s that there is one.
const ConditionKind& condition_kind(std::string_view type);
// The message with the remedy at its end; as it is if that stands there already.
std::string with_remedy(std::string_view type, std::string message);

inline constexpr const char* kWaitingForSlots = "WaitingForSlots";  // status.reason meanwhile, too
inline constexpr const char* kPodGroupRefused = "PodGroupRefused";  // likewise
inline constexpr const char* kGangNotEnsured = "GangNotEnsured";
inline constexpr const char* kStartDelayed = "StartDelayed";
inline constexpr const char* kPodsRefused = "PodsRefused";  // status.reason too, while the job holds no slots for it
inline constexpr const char* kNoSupersteps = "NoSupersteps";
inline constexpr const char* kMixedUnits = "MixedUnits";
inline constexpr const char* kCpuFeaturesDiffer = "CPUFeaturesDiffer";
inline constexpr const char* kMovesLackMemory = "MovesLackMemory";
inline constexpr const char* kSeccompReplaced = "SeccompProfileReplaced";
inline constexpr const char* kTemplateOverridden = "TemplateOverridden";
inline constexpr const char* kCpuThrottled = "CPUThrottled";
inline constexpr const char* kDraining = "Draining";
inline constexpr const char* kWaveDelayed = "WaveDelayed";
inline constexpr const char* kNotCheckpointable = "NotCheckpointable";
inline constexpr const char* kSetsNotRemoved = "SetsNotRemoved";
inline constexpr const char* kReportsRejected = "ReportsRejected";
inline constexpr const char* kSidecarSilent = "SidecarSilent";
inline constexpr const char* kCertificatesRefused = "CertificatesRefused";
inline constexpr const char* kOperatorCutOff = "OperatorCutOff";
inline constexpr const char* kStalled = "Stalled";
inline constexpr const char* kUnreadable = "Unreadable";  // nothing is done about such a job

}  // namespace bsp::reconcile
