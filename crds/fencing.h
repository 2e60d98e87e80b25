// Fencing: how long the program of a pod that is cut off may run, and what sidecars exchange with each other and with
// bsp-init to find out.
//
// A pod on a node that is cut off from the network can't be ended from outside, and its rank must not run again elsewhere
// before it has ended. So the pod ends itself, and the operator waits as long as that can take.
//
//   cut off at 0 s            silent 10 s             30 s              60 s after only such pods are left
//   ───┼──────────────────────────┼─────────────────────┼──────────────────────┼──────────────────────────
//      sidecar hears no peer      it asks the others    it ends its program    operator: the rank may restart
//
// sidecar/agent/fence.h and operator/reconcile/kernel/pods/lost_pods.h define who counts as heard, and state the assumptions.
#pragma once

#include <chrono>
#include <string_view>

namespace bsp::fencing {

// A sidecar that has been cut off this long ends its program. Long enough for a switch or a route to recover, for another
// replica of the operator to take over (15 s), and for three of the operator's own limits for a sidecar. A sidecar that
// hasn't heard the operator for a third of it queries the other sidecars, every sixth of it.
inline constexpr std::chrono::seconds kLimit{30};
// The operator waits this much longer: for a sidecar that is restarting when the limit expires, for one starved of CPU
// on a busy node, and for a clock that runs a little slower than the operator's.
inline constexpr std::chrono::seconds kMargin{30};

// A sidecar that crash-loops or hangs ends nothing. So it reports each moment at which the pod was certainly not cut off
// to bsp-init (`fresh`, sidecar/control/messages.h). bsp-init, which lives as long as the program, counts its own limits from the last:
//
//   fresh                     30 s                 45 s                  60 s                       375 s
//   ──┼─────────────────────────┼────────────────────┼─────────────────────┼──────────────────────────┼───
//     a sidecar vouches     a sidecar that       bsp-init stops the    operator: the rank    bsp-init ends the
//     every 10 s or sooner  works ends the       program where no      may restart           program: no sidecar
//                           program              sidecar vouches                             comes back
//
// It stops first and ends only much later, because it can't distinguish a node that is cut off from a sidecar that fails:
// a stopped program computes nothing, so only one copy runs, and it continues unharmed once a sidecar vouches again.
// Nothing else continues it, and a restarted sidecar vouches for no more than its predecessor until it hears a peer.
// Half of the margin covers a clock that runs a tenth slower and a node on which bsp-init has to wait for CPU. The other
// half lets the kubelet start a sidecar three times (at once, after 10 s, after 20 s) before anything stops.
constexpr std::chrono::milliseconds stop_after(std::chrono::milliseconds limit) { return limit * 3 / 2; }
// The kubelet backs off at most 300 s before it restarts a container: a sidecar that can come back has done so by then,
// and the job must not wait any longer.
constexpr std::chrono::milliseconds end_after(std::chrono::milliseconds limit) {
  return stop_after(limit) + limit * 11;
}
static_assert(stop_after(kLimit) * 11 / 10 + std::chrono::seconds(10) < kLimit + kMargin);
static_assert(end_after(kLimit) - stop_after(kLimit) > std::chrono::seconds(300));

// Environment of sidecar and bsp-init: overrides kLimit, in milliseconds. Tests only; the operator doesn't read it.
inline constexpr std::string_view kEnvLimit = "BSP_FENCE_LIMIT_MS";

// A verb of crds/wire.h for pods of the open or the next epoch only:
// P  alive  {computes} -> {age_ms}
// age_ms: how long ago the answering pod was certainly not cut off. computes: the caller's program is still running, or
// it asks on behalf of one that is, so the answer is needed, and with it the pod that gives it.
inline constexpr const char* kAlive = "alive";
inline constexpr const char* kAge = "age_ms";
inline constexpr const char* kComputes = "computes";

// A verb of crds/wire.h that the operator sends to other ranks' sidecars when one doesn't answer, so that silence alone
// doesn't fail a job (operator/reconcile/kernel/silence.h):
// O  hears  {pods: [name]} -> {heard: [name], unheard: [name]}
// Each of those pods, if it is of the open or the next epoch, is sent `alive` now.
inline constexpr const char* kHears = "hears";
inline constexpr const char* kPods = "pods";
inline constexpr const char* kHeard = "heard";
inline constexpr const char* kUnheard = "unheard";

}  // namespace bsp::fencing
