// With spec.cpu: Common a program is started so that its libraries choose code for the features that the CPUs of all of the
// job's Sets have. Each library has a variable of its own for that; what the image or the template sets stays.
#pragma once

#include <string>
#include <vector>

#include "base/core/cpu_features.h"

namespace bsp::init {

//   GLIBC_TUNABLES           glibc: variants of its functions, directories of glibc-hwcaps
//   OPENBLAS_CORETYPE        OpenBLAS: its kernels
//   MKL_ENABLE_INSTRUCTIONS  MKL: likewise
// `env`: entries NAME=value.
void keep_to_level(CpuFeatures level, std::vector<std::string>& env);

}  // namespace bsp::init
