// What pods and the objects beside them are called, and what a pod's object says of its ranks.
#include <charconv>
#include <cstdlib>
#include <format>
#include <nlohmann/json.hpp>

#include "base/json/fields.h"
#include "crds/names.h"
#include "crds/wire.h"
#include "operator/reconcile/kernel/pods/pods.h"

namespace bsp::reconcile {

using nlohmann::json;

namespace {
// All but the first in the annotation.
std::vector<std::uint32_t> ranks_beside(const std::string& annotation) {
  std::vector<std::uint32_t> ranks;
  const char* at = annotation.data();
  const char* const end = at + annotation.size();
  while (ranks.size() < wire::kMostSeats) {
    std::uint32_t rank = 0;
    const auto read = std::from_chars(at, end, rank);
    if (read.ec != std::errc{}) break;
    ranks.push_back(rank);
    if (read.ptr == end || *read.ptr != ',') break;
    at = read.ptr + 1;
  }
  if (!ranks.empty()) ranks.erase(ranks.begin());
  return ranks;
}
}  // namespace

std::string pod_name(const std::string& job, std::uint32_t rank, std::uint32_t generation) {
  return std::format("{}-r{}-g{}", job, rank, generation);
}

std::string name_of_job(const JobId& job) { return std::format("{}-{}", job.name, job.uid.substr(0, 8)); }

std::string secret_name(const JobId& job, const PodRequest& request) {
  const std::string of_job = name_of_job(job);
  if (request.target) return std::format("{}-r{}-g{}-tls", of_job, request.rank, request.generation);
  return std::format("{}-a{}-{}-tls", of_job, request.attempt, request.rank / kPodsPerSecret);
}
std::string certificate_file(const std::string& pod) { return pod + ".cert.pem"; }
std::string key_file(const std::string& pod) { return pod + ".key.pem"; }

PodRequest request_of(const json& pod) {
  const json& labels = part_at(part_at(pod, "metadata"), "labels");
  const auto number = [&](std::string_view label) {
    return static_cast<std::uint32_t>(std::strtoul(text_at(labels, label.data()).c_str(), nullptr, 10));
  };
  return {.rank = number(names::kLabelRank),
          .generation = number(names::kLabelGeneration),
          .attempt = number(names::kLabelAttempt),
          .target = text_at(labels, names::kLabelRole.data()) == "target",
          .beside = ranks_beside(text_at(part_at(part_at(pod, "metadata"), "annotations"), names::kAnnotationRanks))};
}

std::vector<std::uint32_t> PodRequest::ranks() const {
  std::vector<std::uint32_t> all{rank};
  all.insert(all.end(), beside.begin(), beside.end());
  return all;
}

std::string image_by_digest(const std::string& reference, const std::string& image_id) {
  constexpr std::string_view kLocal = "podman://";
  if (image_id.starts_with(kLocal)) return image_id.substr(kLocal.size());
  const auto repository = [](std::string name) {
    name = name.substr(0, name.find('@'));
    const std::size_t slash = name.rfind('/'), colon = name.rfind(':');  // a colon before it belongs to a port
    if (colon != std::string::npos && (slash == std::string::npos || colon > slash)) name.resize(colon);
    return name;
  };
  // As container runtimes complete the names of Docker Hub.
  const auto whole = [](const std::string& name) {
    const std::string first = name.substr(0, name.find('/'));
    if (first.size() == name.size()) return "docker.io/library/" + name;
    return first.find_first_of(".:") == std::string::npos && first != "localhost" ? "docker.io/" + name : name;
  };
  const std::size_t scheme = image_id.find("://");
  const std::string id = scheme == std::string::npos ? image_id : image_id.substr(scheme + 3);
  const std::size_t at = id.find('@');
  if (at == std::string::npos || whole(repository(id)) != whole(repository(reference))) return reference;
  return repository(reference) + id.substr(at);
}

std::string migration_name(const crds::ObjectMeta& job, std::uint32_t wave, std::uint32_t rank) {
  return named_after(job, std::format("-w{}-r{}", wave, rank));
}

}  // namespace bsp::reconcile
