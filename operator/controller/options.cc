#include "operator/controller/options.h"

#include <charconv>
#include <format>
#include <map>
#include <ranges>

#include "operator/arguments.h"

namespace bsp::controller {
namespace {

constexpr const char* kUsage =
    "usage: bsp-operator controller [OPTION…]   look after the BSPJobs of a Kubernetes cluster\n"
    "  --kubeconfig FILE         which cluster (default: as kubectl finds it; in a pod its service account)\n"
    "  --context NAME            of the kubeconfig (default: its current one)\n"
    "  --namespace NS|all        whose jobs (default: all)\n"
    "  --leader-elect            of several operators one works (by a Lease), the others stand by\n"
    "  --lease-namespace NS      where the Lease is (default: the operator's own namespace)\n"
    "  --lease-name NAME         (default: bsp-operator)\n"
    "  --metrics-address IP:PORT Prometheus' /metrics, for whoever reaches it (default: 0 for none)\n"
    "  --health-address IP:PORT  /healthz and /readyz (default: 0.0.0.0:8081; 0 for none)\n"
    "  --workers N               jobs looked after at once (default: 4)\n"
    "  --record-directory DIR    keep every rescheduling call there, for bsp-operator advise (default: don't)\n"
    "  --runtime-image IMAGE     what every pod carries: bsp-init, the sidecar, criu\n"
    "  --runtime-pull-policy P   Always, IfNotPresent or Never (default: IfNotPresent)\n"
    "  --runtime-delivery D      ImageVolume, or Copy by an init container where nodes have no image volumes\n"
    "  --max-moves N             ranks that move at once in the whole cluster (default: any number)\n"
    "  --max-moves-per-set N     ranks that move at once into one Set (default: any number)\n"
    "  --start-timeout SECONDS   for all pods of a job, until they are given up and made anew (default: 300)\n"
    "  --target-timeout SECONDS  for the pod that a rank is to move to, until the move is given up (default: 60)\n"
    "  --exchange PROTOCOL       how operators that move ranks onto the same nodes know of each other's moves: "
    "Bookings\n"
    "                            in an object (default), or Naive, Increments or Snapshot between operators that each\n"
    "                            look after one namespace\n"
    "  --exchange-members NS=HOST:PORT,…   all those operators by their namespaces, this one too; the same for each\n"
    "  --exchange-listen IP:PORT where this one takes in what the others say (default: 0.0.0.0:7700)\n"
    "  --exchange-tls DIR        ca.pem, cert.pem (its CN: the namespace) and key.pem\n"
    "  --isolate-jobs LABEL=VALUE,…   a NetworkPolicy for each job: its own pods reach each other, and the operator's, "
    "which\n"
    "                            have these labels and are in --lease-namespace, reach its sidecars\n"
    "  --user-namespaces=false   for clusters whose nodes can't run pods with hostUsers: false\n";
constexpr const char* kSubmitUsage =
    "usage: bsp-operator submit -f JOB.yaml [OPTION…]   create a BSPJob in a Kubernetes cluster\n"
    "  --kubeconfig FILE, --context NAME, --namespace NS\n"
    "  --wait            until it has ended; exit status 0 if it succeeded\n"
    "  --timeout SECONDS of waiting (default: 600)\n"
    "  --delete          the job when it has ended, or waiting has\n";

// IP:PORT or :PORT; 0 for none.
Option address(std::string& into) {
  return {.set = [&into](const std::string& value) -> std::string {
    into.clear();
    if (value == "0" || value.empty()) return "";
    const std::size_t colon = value.rfind(':');
    unsigned port = 0;
    const char* const end = value.data() + value.size();
    if (colon == std::string::npos || value.find(':') != colon ||
        std::from_chars(value.data() + colon + 1, end, port).ptr != end || port == 0 || port > 65535)
      return "is IP:PORT, for example 0.0.0.0:8080, or 0 for none";
    into = colon == 0 ? "0.0.0.0" + value : value;
    return "";
  }};
}

Option protocol(ExchangeOptions& into) {
  return {.set = [&into](const std::string& value) -> std::string {
    into.mechanism = exchange::mechanism_from(value);
    return into.mechanism || value == "Bookings" ? "" : "is Bookings, Naive, Increments or Snapshot";
  }};
}

Option members(std::map<std::string, std::string>& into) {
  return {.set = [&into](const std::string& value) -> std::string {
    into.clear();
    for (const auto part : std::views::split(value, ',')) {
      const std::string one(part.begin(), part.end());
      const std::size_t equals = one.find('='), colon = one.rfind(':');
      if (equals == 0 || equals == std::string::npos || colon == std::string::npos || colon <= equals + 1 ||
          colon + 1 == one.size())
        return std::format("is NAMESPACE=HOST:PORT,… and \"{}\" is not; for example science=10.0.0.7:7700", one);
      if (!into.emplace(one.substr(0, equals), one.substr(equals + 1)).second)
        return std::format("names {} twice; an operator is known by its namespace", one.substr(0, equals));
    }
    return "";
  }};
}

Option labels(std::map<std::string, std::string>& into) {
  return {.set = [&into](const std::string& value) -> std::string {
    into.clear();
    for (const auto part : std::views::split(value, ',')) {
      const std::string one(part.begin(), part.end());
      const std::size_t equals = one.find('=');
      if (equals == 0 || equals == std::string::npos || equals + 1 == one.size() ||
          !into.emplace(one.substr(0, equals), one.substr(equals + 1)).second)
        return std::format("is LABEL=VALUE,… with each label once, and \"{}\" is not; for example app=bsp-operator",
                           one);
    }
    return "";
  }};
}

// Members are numbered by their namespaces' order, so all need the same ones.
Result<void> check_exchange(const Options& o) {
  const ExchangeOptions& x = o.exchange;
  const auto wrong = [](const std::string& why) { return fail(ErrorCode::kInvalid, why); };
  if (!x.mechanism) {
    if (x.members.empty() && x.tls_directory.empty()) return {};
    return wrong("--exchange-members and --exchange-tls go with --exchange Naive, Increments or Snapshot");
  }
  const std::string name = std::format("--exchange {}", exchange::to_string(*x.mechanism));
  if (o.name_space.empty())
    return wrong(name + " is between operators that each look after one namespace; say which with --namespace");
  if (x.members.empty())
    return wrong(name + " needs --exchange-members NAMESPACE=HOST:PORT,…: all operators, this one too");
  if (!x.members.contains(o.name_space))
    return wrong(
        std::format("--exchange-members lacks {}, which is this operator's --namespace; each operator is given "
                    "the same list of all",
                    o.name_space));
  if (x.members.size() < 2)
    return wrong("--exchange-members names this operator only; name the others, or leave --exchange out");
  if (x.tls_directory.empty())
    return wrong(name + " needs --exchange-tls DIR with ca.pem, cert.pem (its CN: the namespace) and key.pem");
  if (x.listen.empty()) return wrong(name + " needs an address to listen on: --exchange-listen 0.0.0.0:7700");
  return {};
}

// There are options only.
Result<void> read(std::span<const std::string> words, const std::map<std::string, Option>& options, const char* usage) {
  BSP_TRY(const std::vector<std::string> others, read_arguments(words, options, usage));
  if (others.empty()) return {};
  return fail(ErrorCode::kInvalid, std::format("what is {} for?\n{}", others[0], usage));
}

}  // namespace

Result<Options> parse_options(std::span<const std::string> words) {
  Options o;
  o.lease.name = "bsp-operator";
  auto pull = [&](const std::string& value) -> std::string {
    o.pods.pull_policy = value;
    return value == "Always" || value == "IfNotPresent" || value == "Never" ? "" : "is Always, IfNotPresent or Never";
  };
  auto delivery = [&](const std::string& value) -> std::string {
    const bool copy = value == "Copy";
    o.pods.delivery = copy ? reconcile::RuntimeDelivery::kCopy : reconcile::RuntimeDelivery::kImageVolume;
    return copy || value == "ImageVolume" ? "" : "is ImageVolume or Copy";
  };
  BSP_CHECK_OK(read(words,
                    {{"--kubeconfig", option::text(o.kubeconfig)},
                     {"--context", option::text(o.context)},
                     {"--namespace", option::text(o.name_space)},
                     {"-n", option::text(o.name_space)},
                     {"--leader-elect", option::flag(o.leader_elect)},
                     {"--lease-namespace", option::text(o.lease.name_space)},
                     {"--lease-name", option::text(o.lease.name)},
                     {"--metrics-address", address(o.metrics_address)},
                     {"--health-address", address(o.health_address)},
                     {"--workers", option::number(o.workers, 1, 64)},
                     {"--record-directory", option::text(o.record_directory)},
                     {"--runtime-image", option::text(o.pods.runtime_image)},
                     {"--runtime-pull-policy", {pull}},
                     {"--runtime-delivery", {delivery}},
                     {"--max-moves", option::number(o.caps.in_cluster, 0, 100'000)},
                     {"--max-moves-per-set", option::number(o.caps.into_set, 0, 100'000)},
                     {"--start-timeout", option::number(o.start_timeout_seconds, 1, 86'400)},
                     {"--target-timeout", option::number(o.target_timeout_seconds, 1, 86'400)},
                     {"--exchange", protocol(o.exchange)},
                     {"--exchange-members", members(o.exchange.members)},
                     {"--exchange-listen", address(o.exchange.listen)},
                     {"--exchange-tls", option::text(o.exchange.tls_directory)},
                     {"--isolate-jobs", labels(o.isolate_jobs)},
                     {"--user-namespaces", option::flag(o.pods.user_namespace)}},
                    kUsage));
  if (o.name_space == "all") o.name_space.clear();
  if (!o.metrics_address.empty() && o.metrics_address == o.health_address)
    return fail(ErrorCode::kInvalid,
                std::format("--metrics-address and --health-address are both {}; give them different ports",
                            o.metrics_address));
  BSP_CHECK_OK(check_exchange(o));
  return o;
}

Result<SubmitOptions> parse_submit_options(std::span<const std::string> words) {
  SubmitOptions o;
  BSP_CHECK_OK(read(words,
                    {{"--kubeconfig", option::text(o.kubeconfig)},
                     {"--context", option::text(o.context)},
                     {"--namespace", option::text(o.name_space)},
                     {"-n", option::text(o.name_space)},
                     {"--filename", option::text(o.file)},
                     {"-f", option::text(o.file)},
                     {"--wait", option::flag(o.wait)},
                     {"--delete", option::flag(o.remove)},
                     {"--timeout", option::number(o.timeout_seconds, 1, 1'000'000)}},
                    kSubmitUsage));
  if (o.file.empty()) return fail(ErrorCode::kInvalid, std::format("-f is missing: which job?\n{}", kSubmitUsage));
  if (o.remove && !o.wait) return fail(ErrorCode::kInvalid, std::format("--delete goes with --wait\n{}", kSubmitUsage));
  return o;
}

}  // namespace bsp::controller
