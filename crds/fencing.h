// How long a rank's program may run where nobody can know of it, and what sidecars ask each other for that.
//
// A pod on a node that is cut off the network can't be ended from outside, and its rank must not run a second time
// elsewhere before it has ended. So it ends itself, and the operator waits for as long as that can take.
//
//   cut off at 0 s            silent 10 s             30 s              60 s after only such pods are left
//   ───┼──────────────────────────┼─────────────────────┼──────────────────────┼──────────────────────────
//      sidecar hears nobody       it asks the others    it ends its program    operator: the rank may start anew
//
// sidecar/fence.h and operator/reconcile/lost_pods.h say who counts as heard, and what is assumed.
#pragma once

#include <chrono>
#include <string_view>

namespace bsp::fencing {

// A sidecar ends its program when it has been cut off for so long. Longer than a switch or a route needs to come back
// and than a second replica of the operator needs to take over (15 s), and three of the operator's own limits for a
// sidecar. After a third of it without the operator the others are asked, every sixth.
inline constexpr std::chrono::seconds kLimit{30};
// What the operator waits beyond it: for a sidecar that is being restarted when its time is over, one that waits for
// its share of a busy node, and a clock that runs a little slower than the operator's.
inline constexpr std::chrono::seconds kMargin{30};

// Environment of the sidecar: milliseconds instead of kLimit. Tests only: the operator knows nothing of it.
inline constexpr std::string_view kEnvLimit = "BSP_FENCE_LIMIT_MS";

// A verb of crds/wire.h that only a pod of the open or the next epoch may ask:
// P  alive  {computes} -> {age_ms}
// age_ms: how long ago the answering pod was certainly not cut off. computes: the asker's program has not ended, or it
// asks for one that has not, so that the answer is needed, and with it the pod that gives it.
inline constexpr const char* kAlive = "alive";
inline constexpr const char* kAge = "age_ms";
inline constexpr const char* kComputes = "computes";

// A verb of crds/wire.h that the operator asks of other ranks' sidecars when one does not answer it, so that silence by
// itself costs no job anything (operator/reconcile/silence.h):
// O  hears  {pods: [name]} -> {heard: [name], unheard: [name]}
// Those of the open or the next epoch, each asked for `alive` now.
inline constexpr const char* kHears = "hears";
inline constexpr const char* kPods = "pods";
inline constexpr const char* kHeard = "heard";
inline constexpr const char* kUnheard = "unheard";

}  // namespace bsp::fencing
