#include "operator/controller/metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <initializer_list>
#include <map>
#include <utility>

#include "base/core/metric.h"
#include "base/core/read_file.h"
#include "crds/bspjob.h"

namespace bsp::controller {
namespace {

using Labels = std::initializer_list<std::pair<const char*, std::string>>;

class Exposition {
 public:
  // Starts a family; its samples must follow.
  void family(const char* name, const char* type, const char* help) {
    name_ = name;
    text_ += std::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void sample(Labels labels, double value) { sample("", labels, value); }
  void sample(const char* suffix, Labels labels, double value) {
    std::string inside;
    for (const auto& [label, content] : labels)
      inside += std::format("{}{}=\"{}\"", inside.empty() ? "" : ",", label, escaped_label(content));
    text_ += std::format("{}{}{} {}\n", name_, suffix, inside.empty() ? "" : "{" + inside + "}", value);
  }
  void single(const char* name, const char* type, const char* help, double value) {
    family(name, type, help);
    sample({}, value);
  }
  std::string take() { return std::move(text_); }

 private:
  const char* name_ = "";
  std::string text_;
};

void show_jobs(Exposition& out, const std::vector<reconcile::JobMetrics>& jobs) {
  std::map<std::string, int> phases;
  for (const std::string_view phase : crds::EnumNames<crds::JobPhase>::names) phases[std::string(phase)] = 0;
  for (const auto& job : jobs) ++phases[job.phase];
  out.family("bsp_jobs", "gauge", "BSPJobs by phase.");
  for (const auto& [phase, count] : phases) out.sample({{"phase", phase}}, count);
  auto each = [&](const char* name, const char* type, const char* help, auto value_of) {
    out.family(name, type, help);
    for (const auto& job : jobs) out.sample({{"job_namespace", job.name_space}, {"job_name", job.name}}, value_of(job));
  };
  using Job = reconcile::JobMetrics;
  each("bsp_job_ranks", "gauge", "Number of MPI processes.", [](const Job& j) { return static_cast<double>(j.ranks); });
  each("bsp_job_superstep", "gauge", "Last superstep completed by all ranks.",
       [](const Job& j) { return static_cast<double>(j.superstep); });
  each("bsp_job_moves", "gauge", "Successful migrations.", [](const Job& j) { return static_cast<double>(j.moves); });
  each("bsp_job_gain_seconds", "gauge", "Measured gain of all migrations in seconds.",
       [](const Job& j) { return j.gain_seconds; });
  each("bsp_job_restarts", "gauge", "Restarts of the job.",
       [](const Job& j) { return static_cast<double>(j.restarts); });
}

void show_reconciles(Exposition& out, const reconcile::ReconcileMetrics& reconciles) {
  out.family("bsp_operator_reconcile_seconds", "histogram", "Duration of a reconcile.");
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < reconciles.counts.size(); ++i) {
    count += reconciles.counts[i];
    out.sample("_bucket", {{"le", i < reconciles.kBounds.size() ? std::format("{}", reconciles.kBounds[i]) : "+Inf"}},
               static_cast<double>(count));
  }
  out.sample("_sum", {}, reconciles.seconds);
  out.sample("_count", {}, static_cast<double>(count));
}

}  // namespace

std::string metrics_text(const OperatorMetrics& f) {
  Exposition out;
  out.family("bsp_operator_info", "gauge", "Version of the operator.");
  out.sample({{"version", f.version}}, 1);
  out.single("bsp_operator_leader", "gauge", "1 if this replica is the leader.", f.leads ? 1 : 0);
  if (f.shell) {
    out.single("bsp_operator_api_requests_total", "counter",
               "Requests to the API server since this replica became the leader.", static_cast<double>(f.api_requests));
    out.single("bsp_operator_queue_length", "gauge", "Jobs waiting for a reconcile.",
               static_cast<double>(f.shell->waiting));
    out.single("bsp_operator_cached_pods", "gauge", "Pods in the cache.", static_cast<double>(f.shell->cached_pods));
    out.single("bsp_operator_cache_bytes", "gauge", "Memory of the object caches in bytes.",
               static_cast<double>(f.shell->cached_bytes));
    out.single("bsp_operator_rejected_messages_total", "counter",
               "Sidecar messages rejected as oversized, malformed or implausible.",
               static_cast<double>(f.shell->rejected_messages));
    show_reconciles(out, f.shell->reconciles);
    show_jobs(out, f.shell->jobs);
  }
  out.single("process_cpu_seconds_total", "counter", "CPU time of the process in seconds.", f.process.cpu_seconds);
  out.single("process_resident_memory_bytes", "gauge", "Resident memory of the process in bytes.",
             static_cast<double>(f.process.resident_bytes));
  out.single("process_open_fds", "gauge", "Open file descriptors of the process.",
             static_cast<double>(f.process.open_files));
  return out.take() + all_metrics();
}

ProcessMetrics process_metrics() {
  ProcessMetrics f;
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  for (const timeval& t : {usage.ru_utime, usage.ru_stime})
    f.cpu_seconds += static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  // "size resident shared …", in pages.
  if (const auto statm = read_file("/proc/self/statm"); statm && statm->find(' ') != std::string::npos)
    f.resident_bytes = std::strtoull(statm->c_str() + statm->find(' '), nullptr, 10) *
                       static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error))
    f.open_files += entry.exists(error);
  return f;
}

}  // namespace bsp::controller
