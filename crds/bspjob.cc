#include "crds/bspjob.h"

#include <algorithm>

#include "base/core/counted.h"
#include "crds/carry_path.h"
#include "crds/names.h"
#include "crds/object.h"
#include "crds/pod_schema.h"
#include "crds/pod_template.h"
#include "crds/reflect.h"
#include "crds/sets/exported_set.h"
#include "crds/stored_status.h"

namespace bsp::crds {
namespace {

using nlohmann::json;

std::unexpected<Error> invalid(std::string_view field, std::string_view what) {
  return fail(ErrorCode::kInvalid, std::format("{}: {}", field, what));
}

// The longest names made of it, <job>-w<wave>-r<rank> and <job>-r<rank>-g<generation>, must be labels (63) too.
constexpr std::size_t kLongestJobName = 52;

// Images of all checkpoint sets that a status names.
constexpr std::uint64_t kMostDigests = 8192;
// The largest job that was measured: its status takes a third of what etcd stores of an object (README.md, "Size").
constexpr std::uint32_t kMostRanks = 10'000;

// [prefix/]name, as Kubernetes has it.
bool is_label_name(std::string_view text) {
  auto alphanumeric = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  if (const std::size_t slash = text.find('/'); slash != std::string_view::npos) {
    const std::string_view prefix = text.substr(0, slash);
    text.remove_prefix(slash + 1);
    auto of_prefix = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; };
    if (prefix.empty() || prefix.size() > 253 || prefix.front() == '-' || prefix.front() == '.' ||
        !std::ranges::all_of(prefix, of_prefix))
      return false;
  }
  return !text.empty() && text.size() <= 63 && alphanumeric(text.front()) && alphanumeric(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alphanumeric(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }

// Of an object; of a namespace, which has no dots. It may come into a path.
bool is_object_name(std::string_view text, std::size_t most, std::string_view between) {
  return !text.empty() && text.size() <= most && is_lower(text.front()) && is_lower(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return is_lower(c) || between.contains(c); });
}
bool is_namespace(std::string_view text) { return is_object_name(text, 63, "-"); }

Result<void> validate_source(const RestoreFrom& from) {
  if (from.job.empty() == from.exported.empty())
    return invalid("spec.restoreFrom", "must have one of job and exported");
  if (from.exported.empty()) {
    if (!is_object_name(from.job, 253, "-.")) return invalid("spec.restoreFrom.job", "must name a BSPJob, such as lbm");
    if (!from.name_space.empty() && !is_namespace(from.name_space))
      return invalid("spec.restoreFrom.namespace", "must name a namespace; leave it out for the job's own");
    if (!from.key_secret.empty())
      return invalid("spec.restoreFrom.keySecret", "must be left out, but of an exported set");
    return {};
  }
  if (!from.name_space.empty() || from.set)
    return invalid("spec.restoreFrom", "must have neither namespace nor set, as an exported set is one set");
  if (!is_object_name(from.key_secret, 253, "-."))
    return invalid("spec.restoreFrom.keySecret", "must name the Secret with the key of the exported set");
  if (const auto exported = read_exported(from.exported); !exported)
    return invalid("spec.restoreFrom.exported", exported.error().message);
  return {};
}

// Those that further app containers have.
Result<void> check_seat_names(const json& pod_template) {
  for (const char* list : {"containers", "initContainers"}) {
    const json& containers = part_at(part_at(pod_template, "spec"), list);
    for (std::size_t i = 0; i < containers.size(); ++i)
      if (const std::string name = text_at(containers[i], "name"); local_of(name).value_or(0) != 0)
        return invalid(
            std::format("spec.template.spec.{}[{}].name", list, i),
            std::format("{} is reserved for a rank, as spec.ranksPerPod isn't 1; choose another name", name));
  }
  return {};
}

bool is_host(std::string_view host) {
  return !host.empty() && is_alphanumeric(host.front()) && is_alphanumeric(host.back()) &&
         std::ranges::all_of(host, [](char c) { return is_alphanumeric(c) || c == '.' || c == '-'; });
}

bool is_v6(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
  });
}

bool is_prefix(std::string_view prefix) {
  while (!prefix.empty()) {
    const std::size_t slash = prefix.find('/');
    const std::string_view part = prefix.substr(0, slash);
    if (part.empty() || !is_alphanumeric(part.front()) ||
        !std::ranges::all_of(part, [](char c) { return is_alphanumeric(c) || c == '.' || c == '-' || c == '_'; }))
      return false;
    if (slash == std::string_view::npos) return true;
    prefix.remove_prefix(slash + 1);
    if (prefix.empty()) return false;
  }
  return true;
}

Result<void> validate_bucket(const S3Source& s3) {
  const std::string path = "spec.checkpoint.storage.s3";
  if (const auto parts = endpoint_parts(s3.endpoint); !parts || s3.endpoint.size() > 255)
    return invalid(path + ".endpoint", parts ? "must have at most 255 characters" : parts.error().message);
  const std::string& bucket = s3.bucket;
  if (bucket.size() < 2 || bucket.size() > 63 || !is_lower(bucket.front()) || !is_lower(bucket.back()) ||
      !std::ranges::all_of(bucket, [](char c) { return is_lower(c) || c == '.' || c == '-'; }))
    return invalid(path + ".bucket", "must be a bucket's name: small letters, digits, dots and hyphens");
  if (s3.prefix.size() > 255 || !is_prefix(s3.prefix))
    return invalid(path + ".prefix", "must be names between slashes, such as teams/physics, with none at its ends");
  if (s3.region.empty() || s3.region.size() > 63 ||
      !std::ranges::all_of(s3.region, [](char c) { return is_alphanumeric(c) || c == '-'; }))
    return invalid(path + ".region", "must be a region's name, such as eu-central-1");
  if (s3.credentials_secret.empty() || s3.credentials_secret.size() > 253)
    return invalid(path + ".credentialsSecret",
                   "must name a Secret of the job's namespace with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
  if (s3.ca_secret.size() > 253)
    return invalid(path + ".caSecret", "must name a Secret of the job's namespace with ca.crt");
  return {};
}

Result<void> validate_objective(const BspJobSpec& spec) {
  const ObjectiveSpec& objective = spec.objective;
  const ObjectiveType type = objective.chosen();
  if (!(objective.max_slowdown >= 0 && objective.max_slowdown <= 10))
    return invalid("spec.objective.maxSlowdown", "must be between 0 and 10, such as 0.1 for 10 % longer");
  if (const auto deadline = duration_seconds(objective.deadline);
      !objective.deadline.empty() && (!deadline || *deadline == 0))
    return invalid("spec.objective.deadline", "must be a duration such as 30s, 5m or 1h30m");
  if (type == ObjectiveType::kDeadline && objective.deadline.empty())
    return invalid("spec.objective.deadline", "is required with type Deadline, such as 2h after the job's start");
  if (type != ObjectiveType::kDeadline && !objective.deadline.empty())
    return invalid("spec.objective.deadline",
                   "is for type Deadline; leave it out, or set spec.objective.type to Deadline");
  if (type == ObjectiveType::kTime) return {};
  if (spec.rescheduling.heuristic != Heuristic::kAuto)
    return invalid("spec.rescheduling.heuristic", "must be Auto, as spec.objective.type isn't Time");
  if (type == ObjectiveType::kDeadline && spec.rescheduling.expected_supersteps == 0)
    return invalid("spec.rescheduling.expectedSupersteps",
                   "is required with a deadline: without the job's length nobody knows whether it will be met");
  if (type == ObjectiveType::kDeadline && spec.rescheduling.horizon != Horizon::kWindow)
    return invalid("spec.rescheduling.horizon", "must be Window with a deadline, which is about the rest of the job");
  return {};
}

}  // namespace

Result<EndpointParts> endpoint_parts(const std::string& endpoint) {
  const auto none = [] {
    return fail(ErrorCode::kInvalid,
                "must be http:// or https:// with a host and perhaps a port, and nothing after it");
  };
  std::string_view rest = endpoint;
  EndpointParts parts;
  parts.tls = rest.starts_with("https://");
  if (!parts.tls && !rest.starts_with("http://")) return none();
  rest.remove_prefix(rest.find("//") + 2);
  std::string_view host = rest, port;
  if (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos || !is_v6(rest.substr(1, end - 1))) return none();
    host = rest.substr(1, end - 1);
    port = rest.substr(end + 1);
  } else {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    host = rest.substr(0, colon);
    port = rest.substr(colon);
    if (!is_host(host)) return none();
  }
  if (!port.empty()) {
    if (port.front() != ':') return none();
    port.remove_prefix(1);
    if (port.empty() || port.size() > 5 || !std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; }))
      return none();
  }
  parts.host = host;
  parts.port = port;
  return parts;
}

std::string named_after(const ObjectMeta& job, std::string_view rest) {
  constexpr std::size_t kLongest = 63;
  if (job.name.size() + rest.size() <= kLongest) return std::format("{}{}", job.name, rest);
  const std::string end = std::format("-{}{}", job.uid.substr(0, 8), rest);
  return job.name.substr(0, kLongest - std::min(kLongest, end.size())) + end;
}

json pack(const RanksPerPod& ranks) { return ranks.most == RanksPerPod::kAuto ? json("Auto") : json(ranks.most); }

Result<void> unpack(const std::string& text, RanksPerPod& ranks) {
  if (text != "Auto") return fail(ErrorCode::kInvalid, "must be a number, or Auto");
  ranks.most = RanksPerPod::kAuto;
  return {};
}

bool may_share_pods(const BspJobSpec& spec) {
  if (spec.scheduling.gang != Gang::kReserve) return false;
  const json& pod = part_at(spec.pod_template, "spec");
  const json& containers = part_at(pod, "containers");
  if (containers.size() != 1 || !part_at(pod, "initContainers").empty()) return false;  // they would run once for all
  // Its resources, and the devices that it claims, are the pod's.
  if (!part_at(pod, "resources").empty() || !part_at(pod, "resourceClaims").empty()) return false;
  const json& app = containers.front();
  // A port that it listens on is one of the pod's network.
  for (const char* listens : {"ports", "livenessProbe", "readinessProbe", "startupProbe"})
    if (!part_at(app, listens).empty()) return false;
  // Ranks that name their files after the pod would write to the same.
  for (const json& variable : part_at(app, "env"))
    if (text_at(part_at(part_at(variable, "valueFrom"), "fieldRef"), "fieldPath") == "metadata.name") return false;
  return true;
}

bool fills_nodes(const BspJobSpec& spec) {
  return spec.ranks_per_pod.is_unset() ? may_share_pods(spec) : spec.ranks_per_pod.most == RanksPerPod::kAuto;
}

bool fills_nodes(const BspJobSpec& spec, const BspJobStatus& status) {
  const bool decided = spec.ranks_per_pod.is_unset() && !status.ranks.empty();
  return decided ? status.shares_pods : fills_nodes(spec);
}

namespace {
std::uint32_t most_seats(const RanksPerPod& ranks, bool fills) {
  if (fills) return wire::kMostSeats;
  return ranks.is_unset() ? 1 : ranks.most;
}
}  // namespace

std::uint32_t most_seats(const BspJobSpec& spec) { return most_seats(spec.ranks_per_pod, fills_nodes(spec)); }
std::uint32_t most_seats(const BspJobSpec& spec, const BspJobStatus& status) {
  return most_seats(spec.ranks_per_pod, fills_nodes(spec, status));
}

const json* app_container(const BspJobSpec& spec) {
  for (const json& c : part_at(part_at(spec.pod_template, "spec"), "containers"))
    if (text_at(c, "name") == names::kAppContainer) return &c;
  return nullptr;
}

void to_json(json& j, const BspJobSpec& spec) { j = reflect::write(spec); }
void to_json(json& j, const BspJobStatus& status) { j = stored_status(status); }
void to_json(json& j, const Decision& decision) { j = reflect::write(decision); }
void to_json(json& j, const BspJob& job) {
  j = json{{"apiVersion", names::kApiVersion}, {"kind", names::kBspJobKind}};
  j["metadata"] = reflect::write(job.metadata);
  j["spec"] = reflect::write(job.spec);
  j["status"] = stored_status(job.status);
}

Result<BspJob> bsp_job_from_json(const json& j) {
  BspJob job;
  BSP_CHECK_OK(read_object(j, names::kBspJobKind, job.metadata, job.spec, job.status));
  BSP_CHECK_OK(check_nesting(job.spec.pod_template, "spec.template"));
  normalise(job.spec.pod_template, kPodTemplate);
  normalise(job.spec.sidecar.resources, kContainerResources);
  if (job.metadata.name.size() > kLongestJobName)
    return invalid("metadata.name",
                   std::format("\"{}\" is longer than {} characters: pods and migrations are named after it",
                               job.metadata.name, kLongestJobName));
  return job;
}

Result<void> validate(const BspJobSpec& spec) {
  if (spec.ranks < 1) return invalid("spec.ranks", "must be at least 1");
  if (spec.ranks > kMostRanks)
    return invalid(
        "spec.ranks",
        std::format("must be at most {}: the status of a larger job may exceed what etcd stores of an object; "
                    "use fewer ranks with more threads each",
                    kMostRanks));
  if (most_seats(spec) < 1 || most_seats(spec) > wire::kMostSeats)
    return invalid("spec.ranksPerPod", std::format("must be a number from 1 to {}, or Auto", wire::kMostSeats));
  BSP_CHECK_OK(validate_pod_template(spec.pod_template, "spec.template"));
  if (most_seats(spec) > 1) BSP_CHECK_OK(check_seat_names(spec.pod_template));
  if (spec.ranks_per_pod.most == RanksPerPod::kAuto && spec.scheduling.gang != Gang::kReserve)
    return invalid(
        "spec.ranksPerPod",
        "must be a number unless spec.scheduling.gang is Reserve: the cluster's scheduler chooses the nodes, so "
        "nobody knows yet what they have slots for");
  if (!is_label_name(spec.sets.label))
    return invalid("spec.sets.label",
                   "must be a node label key, for example migbsp.io/set or cloud.google.com/gke-nodepool");
  for (std::size_t i = 0; i < spec.sets.names.size(); ++i) {
    const std::string& name = spec.sets.names[i];
    if (name.empty()) return invalid(std::format("spec.sets.names[{}]", i), "must not be empty");
    if (std::ranges::find(spec.sets.names.begin(), spec.sets.names.begin() + i, name) != spec.sets.names.begin() + i)
      return invalid(std::format("spec.sets.names[{}]", i), std::format("{} is listed twice", name));
  }
  const ReschedulingSpec& r = spec.rescheduling;
  if (r.alpha < 1) return invalid("spec.rescheduling.alpha", "must be at least 1 superstep");
  if (!(r.d > 0 && r.d < 1)) return invalid("spec.rescheduling.d", "must be greater than 0 and less than 1");
  if (r.omega < 1) return invalid("spec.rescheduling.omega", "must be at least 1 call");
  if (!(r.delta >= 0 && r.delta <= 1)) return invalid("spec.rescheduling.delta", "must be between 0 and 1");
  if (!(r.beta >= 0 && r.beta <= 1)) return invalid("spec.rescheduling.beta", "must be between 0 and 1");
  if (!(r.x > 0 && r.x <= 1)) return invalid("spec.rescheduling.x", "must be greater than 0 and at most 1");
  if (!(r.min_gain >= 0 && r.min_gain < 1))
    return invalid("spec.rescheduling.minGain", "must be at least 0 and less than 1");
  BSP_CHECK_OK(validate_objective(spec));
  const bool is_auto = spec.superstep.call == names::kEdgeAuto;
  if (!is_auto && std::ranges::find(names::kEdgeCalls, spec.superstep.call) == names::kEdgeCalls.end())
    return invalid("spec.superstep.call",
                   "must name a blocking MPI collective, for example MPI_Barrier or MPI_Allreduce");
  if (spec.superstep.stride < 1) return invalid("spec.superstep.stride", "must be at least 1");
  if (is_auto && spec.superstep.stride != 1)
    return invalid("spec.superstep.stride", "needs spec.superstep.call, for example MPI_Barrier: Auto finds both");
  if (auto size = quantity_value(spec.checkpoint.size_limit.text); !size || *size == 0)
    return invalid("spec.checkpoint.sizeLimit", "must be a quantity such as 512Mi or 2Gi");
  if (const auto interval = duration_seconds(spec.checkpoint.interval);
      spec.checkpoint.interval != kAutoInterval && (!interval || *interval == 0))
    return invalid("spec.checkpoint.interval", "must be a duration such as 30s, 5m or 1h30m, or Auto");
  if (!duration_seconds(spec.checkpoint.grace))
    return invalid("spec.checkpoint.grace", "must be a duration such as 30s, 5m or 1h30m, or 0s for none");
  if (spec.checkpoint.keep < 1) return invalid("spec.checkpoint.keep", "must be at least 1 set");
  for (std::size_t i = 0; i < spec.checkpoint.allowed_namespaces.size(); ++i)
    if (!is_namespace(spec.checkpoint.allowed_namespaces[i]))
      return invalid(std::format("spec.checkpoint.allowedNamespaces[{}]", i),
                     "must name a namespace; no pattern will do");
  if (const auto& storage = spec.checkpoint.storage) {
    const bool claim = storage->persistent_volume_claim.has_value(), host = storage->host_path.has_value();
    const bool bucket = storage->s3.has_value();
    // Each set takes 43 characters a rank in the status, whose size is limited (README.md).
    if (const std::uint64_t most = kMostDigests / std::max<std::uint64_t>(1, spec.ranks); spec.checkpoint.keep > most)
      return invalid("spec.checkpoint.keep", std::format("a job of {} can keep {}", counted(spec.ranks, "rank"),
                                                         counted(most, "checkpoint set")));
    if (claim + host + bucket != 1)
      return invalid("spec.checkpoint.storage", "must have one of persistentVolumeClaim, hostPath and s3");
    if (claim && storage->persistent_volume_claim->claim_name.empty())
      return invalid("spec.checkpoint.storage.persistentVolumeClaim.claimName",
                     "must name a claim of the job's namespace");
    if (host && !storage->host_path->path.starts_with('/'))
      return invalid("spec.checkpoint.storage.hostPath.path", "must be an absolute path");
    if (bucket) BSP_CHECK_OK(validate_bucket(*storage->s3));
  }
  if (const auto& from = spec.restore_from) {
    BSP_CHECK_OK(validate_source(*from));
    if (!spec.checkpoint.storage)
      return invalid("spec.checkpoint.storage", "must be the storage of spec.restoreFrom's job, which holds its sets");
  }
  if (const json& resources = spec.sidecar.resources; !resources.is_null())
    BSP_CHECK_OK(check_shape(resources, kContainerResources, "spec.sidecar.resources"));
  for (std::size_t i = 0; i < spec.carry_paths.size(); ++i) {
    const std::string& path = spec.carry_paths[i];
    const std::string at = std::format("spec.carryPaths[{}]", i);
    if (!path.starts_with('/') || path.contains(':')) return invalid(at, "must be an absolute path without a colon");
    if (!can_be_carried(path))
      return invalid(at, std::format("{} can't move with a rank; name paths of the program's own files", path));
  }
  if (spec.run_policy.active_deadline_seconds == 0)
    return invalid("spec.runPolicy.activeDeadlineSeconds", "must be at least 1; leave it out for no limit");
  return {};
}

}  // namespace bsp::crds
