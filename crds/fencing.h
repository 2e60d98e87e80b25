// How long a rank's program may run where nobody can know of it, and what sidecars ask each other and say to bsp-init
// for that.
//
// A pod on a node that is cut off the network can't be ended from outside, and its rank must not run a second time
// elsewhere before it has ended. So it ends itself, and the operator waits for as long as that can take.
//
//   cut off at 0 s            silent 10 s             30 s              60 s after only such pods are left
//   ───┼──────────────────────────┼─────────────────────┼──────────────────────┼──────────────────────────
//      sidecar hears nobody       it asks the others    it ends its program    operator: the rank may start anew
//
// sidecar/agent/fence.h and operator/reconcile/kernel/lost_pods.h say who counts as heard, and what is assumed.
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

// A sidecar that crash-loops or hangs ends nothing. So it tells bsp-init each moment at which the pod was certainly not
// cut off (`fresh`, sidecar/control/messages.h), and bsp-init, which lives as long as the program, has limits of its own from the last:
//
//   fresh                     30 s                 45 s                  60 s                       375 s
//   ──┼─────────────────────────┼────────────────────┼─────────────────────┼──────────────────────────┼───
//     a sidecar vouches     a sidecar that       bsp-init stops the    operator: the rank    bsp-init ends the
//     every 10 s or sooner  works ends the       program where no      may start anew        program, for nobody
//                           program              sidecar vouches                             comes back
//
// It stops, and ends only much later, because it can't tell a node that is cut off from a sidecar that merely fails: a
// stopped program computes nothing, so there is one copy, and goes on unharmed once a sidecar vouches again. Nothing
// else lets it go on, and a sidecar that is started anew vouches for no more than the one before until it hears somebody.
// Half of the margin is left for a clock that runs a tenth slower and for a node on which bsp-init waits for its turn;
// the other half lets the kubelet start a sidecar three times (at once, after 10 s, after 20 s) before anything stops.
constexpr std::chrono::milliseconds stop_after(std::chrono::milliseconds limit) { return limit * 3 / 2; }
// The kubelet waits at most 300 s before it starts a container that fails again and again: one that can come back has
// done so, and the job must not wait any longer.
constexpr std::chrono::milliseconds end_after(std::chrono::milliseconds limit) {
  return stop_after(limit) + limit * 11;
}
static_assert(stop_after(kLimit) * 11 / 10 + std::chrono::seconds(10) < kLimit + kMargin);
static_assert(end_after(kLimit) - stop_after(kLimit) > std::chrono::seconds(300));

// Environment of sidecar and bsp-init: milliseconds instead of kLimit. Tests only: the operator knows nothing of it.
inline constexpr std::string_view kEnvLimit = "BSP_FENCE_LIMIT_MS";

// A verb of crds/wire.h that only a pod of the open or the next epoch may ask:
// P  alive  {computes} -> {age_ms}
// age_ms: how long ago the answering pod was certainly not cut off. computes: the asker's program has not ended, or it
// asks for one that has not, so that the answer is needed, and with it the pod that gives it.
inline constexpr const char* kAlive = "alive";
inline constexpr const char* kAge = "age_ms";
inline constexpr const char* kComputes = "computes";

// A verb of crds/wire.h that the operator asks of other ranks' sidecars when one does not answer it, so that silence by
// itself costs no job anything (operator/reconcile/kernel/silence.h):
// O  hears  {pods: [name]} -> {heard: [name], unheard: [name]}
// Those of the open or the next epoch, each asked for `alive` now.
inline constexpr const char* kHears = "hears";
inline constexpr const char* kPods = "pods";
inline constexpr const char* kHeard = "heard";
inline constexpr const char* kUnheard = "unheard";

}  // namespace bsp::fencing
