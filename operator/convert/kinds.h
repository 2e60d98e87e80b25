// The kinds of jobs that run mpirun, in the shape of an MPIJob: that of Kubeflow v2beta1, v1, v1alpha2 and v1alpha1, Volcano's Job,
// and Kubeflow's TrainJob with a runtime of MPI or Flux.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>

#include "base/core/error.h"
#include "operator/convert/source.h"

namespace bsp::convert {

// False: the object is no job of MPI, and stays as it is. `file`: all objects of the file, among them a TrainJob's runtime. kInvalid
// names line, field and remedy.
Result<bool> as_mpi_job(Source& job, std::span<const nlohmann::json> file);

// Whether such a job may be in the text.
[[nodiscard]] bool may_hold_job(std::string_view text);

}  // namespace bsp::convert
