// What the source's bsp-init passes to the target's: one packet of control.h in the file kStateFile of the image.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/core/cpu_features.h"
#include "base/core/error.h"
#include "base/core/fields.h"

namespace bsp::init {

inline constexpr std::string_view kStateFile = "bsp-init.state";
inline constexpr int kMovedVersion = 1;  // a target takes what its own bsp-init would write

struct MovedProgram {
  static constexpr std::string_view kVerb = "state";
  int version = 1;  // kMovedVersion
  pid_t pid = 0;
  uid_t uid = static_cast<uid_t>(-1);
  gid_t gid = static_cast<gid_t>(-1);
  std::string groups{};
  std::string out{}, err{};  // the pipes that were its stdout and stderr
  std::uint64_t out_bytes = 0, err_bytes = 0;
  int carried = 0;  // 1: there is an archive of carried files
  // A target without one of these features, or with another libbspmpi.so (its build id), can't run the process; 0 and "" are
  // those of an older bsp-init. `ring` is BSP_RING_VERSION of the shim in the process.
  std::uint64_t features = 0;
  std::string runtime{};
  std::uint32_t ring = 0;
  std::int64_t begun_ns = 0;  // when it was started, wherever that was; 0: an older bsp-init doesn't say
};
constexpr void fields_of(Of<MovedProgram>, auto&& v) {
  v("version", &MovedProgram::version);
  v("pid", &MovedProgram::pid);
  v("uid", &MovedProgram::uid);
  v("gid", &MovedProgram::gid);
  v("groups", &MovedProgram::groups);
  v("stdout", &MovedProgram::out);
  v("stderr", &MovedProgram::err);
  v("stdout_bytes", &MovedProgram::out_bytes);
  v("stderr_bytes", &MovedProgram::err_bytes);
  v("carried", &MovedProgram::carried);
  v("features", &MovedProgram::features);
  v("runtime", &MovedProgram::runtime);
  v("ring", &MovedProgram::ring);
  v("begun", &MovedProgram::begun_ns);
}

// Why a pod with that CPU and that libbspmpi.so can't run the process.
Result<void> check_moved(const MovedProgram& moved, CpuFeatures machine, const std::string& runtime);

}  // namespace bsp::init
