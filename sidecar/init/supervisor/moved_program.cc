#include "sidecar/init/supervisor/moved_program.h"

#include <format>

#include "sidecar/ring/ring.h"

namespace bsp::init {

Result<void> check_moved(const MovedProgram& moved, CpuFeatures machine, const std::string& runtime) {
  if (moved.version != kMovedVersion || (moved.ring != 0 && moved.ring != BSP_RING_VERSION))
    return fail(
        ErrorCode::kRefused,
        std::format("RuntimeDiffers: the checkpoint has version {}, and its shim version {} of the ring, while this "
                    "pod's runtime has {} and {}; all pods of a job need the same runtime image",
                    moved.version, moved.ring, kMovedVersion, BSP_RING_VERSION));
  if (!moved.runtime.empty() && !runtime.empty() && moved.runtime != runtime)
    return fail(
        ErrorCode::kRefused,
        std::format("RuntimeDiffers: the program runs with libbspmpi.so {}, and this pod has {}; all pods of a job "
                    "need the same runtime image",
                    moved.runtime.substr(0, 12), runtime.substr(0, 12)));
  if (const CpuFeatures lacks = machine.lacks(CpuFeatures(moved.features)); lacks.known())
    return fail(
        ErrorCode::kRefused,
        std::format("CPUFeaturesDiffer: this node's CPU lacks {}, which the program's libraries have seen and may "
                    "use; spec.cpu: Common keeps them to what the CPUs of all Sets have",
                    lacks.text()));
  return {};
}

}  // namespace bsp::init
