#include "operator/controller/options.h"
#include <format>
#include <map>
#include <ranges>

#include "base/net/address.h"
#include "crds/names.h"
#include "crds/pod_schema.h"
#include "operator/cli/command.h"
#include "operator/cli/prices.h"

namespace bsp::controller {
namespace {

// IP:PORT, [IP]:PORT or :PORT; 0 for none.
cli::Setter address(std::string& into) {
  return [&into](const std::string& value) -> std::string {
    into.clear();
    if (value == "0" || value.empty()) return "";
    const std::string whole = value.starts_with(':') ? "[::]" + value : value;
    if (const auto parsed = net::parse_address(whole); !parsed || net::port_of(*parsed) == 0)
      return "must be IP:PORT, [IP]:PORT for IPv6, :PORT for all addresses, for example :8080, or 0 for none";
    into = whole;
    return "";
  };
}

// Two sockets can't listen there at the same time. Both are valid or "".
bool collide(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return false;
  const auto one = net::parse_address(a), other = net::parse_address(b);
  return net::port_of(*one) == net::port_of(*other) && (a == b || net::is_any(*one) || net::is_any(*other));
}

// HOST:PORT; the brackets of an IPv6 address tell where its port begins.
bool is_host_and_port(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == text.size()) return false;
  return text.find(':') == colon || net::parse_address(text);
}

cli::Setter protocol(ExchangeOptions& into) {
  return [&into](const std::string& value) -> std::string {
    into.mechanism = exchange::mechanism_from(value);
    return into.mechanism || value == "Reservations" ? "" : "must be Reservations, Naive, Increments or Snapshot";
  };
}

// NAME=VALUE,… with each name once. Returns the pair that is wrong, if any.
std::optional<std::string> read_pairs(const std::string& text, std::map<std::string, std::string>& into) {
  into.clear();
  for (const auto part : std::views::split(text, ',')) {
    const std::string pair(part.begin(), part.end());
    const std::size_t equals = pair.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == pair.size() ||
        !into.emplace(pair.substr(0, equals), pair.substr(equals + 1)).second)
      return pair;
  }
  return std::nullopt;
}

cli::Setter members(std::map<std::string, std::string>& into) {
  return [&into](const std::string& value) -> std::string {
    std::optional<std::string> wrong = read_pairs(value, into);
    for (const auto& [name_space, address] : into)
      if (!is_host_and_port(address)) wrong = name_space + "=" + address;
    if (!wrong) return "";
    return std::format("\"{}\" must be NAMESPACE=HOST:PORT with each namespace once, for example science=10.0.0.7:7700",
                       *wrong);
  };
}

cli::Setter labels(std::map<std::string, std::string>& into) {
  return [&into](const std::string& value) -> std::string {
    const std::optional<std::string> wrong = read_pairs(value, into);
    if (!wrong) return "";
    return std::format("\"{}\" must be LABEL=VALUE with each label once, for example app=bsp-operator", *wrong);
  };
}

cli::Setter resources(nlohmann::json& into) {
  return [&into](const std::string& value) -> std::string {
    into = nlohmann::json::parse(value, nullptr, false);
    const auto good = crds::check_shape(into, crds::kContainerResources, "--sidecar-resources");
    if (into.is_object() && good) return "";
    return std::format("must be an object such as {{\"requests\":{{\"cpu\":\"5m\"}}}}{}",
                       good ? "" : ": " + good.error().message);
  };
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
  if (o.name_space.empty()) return wrong(name + " works between operators of one namespace each; add --namespace NS");
  if (x.members.empty())
    return wrong(name + " needs --exchange-members NAMESPACE=HOST:PORT,… with all operators, this one included");
  if (!x.members.contains(o.name_space))
    return wrong(std::format(
        "--exchange-members lacks {}, which is this operator's --namespace; every operator needs the same list",
        o.name_space));
  if (x.members.size() < 2)
    return wrong("--exchange-members names this operator only; name the others, or leave --exchange out");
  if (x.tls_directory.empty())
    return wrong(name + " needs --exchange-tls DIR with ca.pem, cert.pem (its CN: the namespace) and key.pem");
  if (x.listen.empty()) return wrong(name + " needs an address to listen on: --exchange-listen :7700");
  return {};
}

}  // namespace

Result<Options> parse_options(std::span<const std::string> words) {
  Options o;
  o.lease.name = "bsp-operator";
  cli::Command command("bsp-operator controller", "Reconcile the BSPJobs of a Kubernetes cluster.");
  command.text("--kubeconfig", "FILE", "kubeconfig (default: as kubectl finds it; in a pod its service account)",
               o.kubeconfig);
  command.text("--context", "NAME", "context of the kubeconfig (default: its current one)", o.context);
  command.text("--namespace,-n", "NS", "namespace of the jobs, or all (default: all)", o.name_space);
  command.flag("--leader-elect", "with several replicas, only the one that holds a Lease reconciles", o.leader_elect);
  command.text("--lease-namespace", "NS", "namespace of the Lease (default: the operator's own)", o.lease.name_space);
  command.text("--lease-name", "NAME", std::format("name of the Lease (default: {})", o.lease.name), o.lease.name);
  command.option("--metrics-address", "IP:PORT",
                 "address of Prometheus metrics; anyone who reaches it can read them "
                 "(default: 0, none)",
                 address(o.metrics_address));
  command.option("--health-address", "IP:PORT",
                 std::format("address of /healthz and /readyz; 0 for none (default: {})", o.health_address),
                 address(o.health_address));
  command.option(
      "--evictions-address", "IP:PORT",
      "address of the webhook that answers an eviction of a rank's pod by moving the rank; its Service and its "
      "ValidatingWebhookConfiguration are called as the Lease, with -evictions behind (default: 0, none)",
      address(o.evictions_address));
  command.option("--workers", "N", std::format("number of jobs reconciled at once (default: {})", o.workers),
                 cli::number(o.workers, 1u, 64u));
  command.text("--record-directory", "DIR",
               "record every rescheduling call there, for bsp-operator advise (default: "
               "no records)",
               o.record_directory);
  command.text("--runtime-image", "IMAGE", "image with bsp-init, the sidecar and criu, which every pod carries",
               o.pods.runtime_image);
  command.option(
      "--runtime-pull-policy", "POLICY", std::format("Always, IfNotPresent or Never (default: {})", o.pods.pull_policy),
      cli::one_of(o.pods.pull_policy, {{"Always", "Always"}, {"IfNotPresent", "IfNotPresent"}, {"Never", "Never"}}));
  command.option("--runtime-delivery", "HOW",
                 "ImageVolume, or Copy by an init container where nodes have no image volumes (default: ImageVolume)",
                 cli::one_of(o.pods.delivery, {{"ImageVolume", reconcile::RuntimeDelivery::kImageVolume},
                                               {"Copy", reconcile::RuntimeDelivery::kCopy}}));
  command.option(
      "--sidecar-resources", "JSON",
      "requests and limits of each container that the operator adds to a rank's pod, unless the job sets them "
      "(default: none)",
      resources(o.sidecar_resources));
  command.option("--max-moves", "N", "limit of ranks that move at once in the cluster (default: 0, no limit)",
                 cli::number(o.caps.in_cluster, 0u, 100'000u));
  command.option("--max-moves-per-set", "N", "limit of ranks that move at once into one Set (default: 0, no limit)",
                 cli::number(o.caps.into_set, 0u, 100'000u));
  command.option(
      "--instance-prices", "TYPE=PRICE,…",
      std::format(
          "what a node costs an hour, by its instance type, unless its annotation {} says it (default: not known)",
          names::kAnnotationPrice),
      cli::prices(o.instance_prices, "m7i.4xlarge=0.81"));
  command.flag("--kueue", "Kueue admits the jobs with the label kueue.x-k8s.io/queue-name; the cluster must have it",
               o.kueue);
  command.option("--start-timeout", "SECONDS",
                 std::format("time for all pods of a job to start before the job is restarted (default: {})",
                             o.start_timeout_seconds),
                 cli::number(o.start_timeout_seconds, 1u, 86'400u));
  command.option(
      "--target-timeout", "SECONDS",
      std::format("time for a migration's target pod to start before the migration is given up (default: {})",
                  o.target_timeout_seconds),
      cli::number(o.target_timeout_seconds, 1u, 86'400u));
  command.option(
      "--exchange", "PROTOCOL",
      "how operators that share nodes learn of each other's reservations: Reservations, in an object, or Naive, "
      "Increments or Snapshot, between operators of one namespace each (default: Reservations)",
      protocol(o.exchange));
  command.option("--exchange-members", "NS=HOST:PORT,…",
                 "all those operators by namespace, this one included; every operator needs the same list",
                 members(o.exchange.members));
  command.option("--exchange-listen", "IP:PORT",
                 std::format("address for messages of the other operators (default: {})", o.exchange.listen),
                 address(o.exchange.listen));
  command.text("--exchange-tls", "DIR", "ca.pem, cert.pem (its CN: the namespace) and key.pem",
               o.exchange.tls_directory);
  command.option(
      "--isolate-jobs", "LABEL=VALUE,…",
      "a NetworkPolicy per job: only its own pods reach each other, and its sidecars are reached only by the "
      "operator's pods, which have these labels and run in --lease-namespace",
      labels(o.isolate_jobs));
  command.flag("--user-namespaces", "run pods with hostUsers: false; =false for nodes that can't (default: true)",
               o.pods.user_namespace);
  BSP_CHECK_OK(command.parse(words));
  if (o.name_space == "all") o.name_space.clear();
  const std::pair<const char*, const std::string&> ports[] = {{"--metrics-address", o.metrics_address},
                                                              {"--evictions-address", o.evictions_address},
                                                              {"--health-address", o.health_address}};
  for (auto a = std::begin(ports); a != std::end(ports); ++a)
    for (auto b = std::next(a); b != std::end(ports); ++b)
      if (collide(a->second, b->second))
        return command.wrong(std::format("{} {} and {} {} collide; give them different ports", a->first, a->second,
                                         b->first, b->second));
  if (const auto good = check_exchange(o); !good) return command.wrong(good.error().message);
  return o;
}

Result<SubmitOptions> parse_submit_options(std::span<const std::string> words) {
  SubmitOptions o;
  cli::Command command("bsp-operator submit", "Create a BSPJob in a Kubernetes cluster.");
  command.text("-f,--filename", "JOB.yaml", "manifest of a BSPJob; - reads standard input", o.file).required();
  command.text("--kubeconfig", "FILE", "kubeconfig (default: as kubectl finds it; in a pod its service account)",
               o.kubeconfig);
  command.text("--context", "NAME", "context of the kubeconfig (default: its current one)", o.context);
  command.text("--namespace,-n", "NS", "namespace of the job (default: the manifest's, or else the context's)",
               o.name_space);
  command.flag("--wait", "wait until the job has ended; exit status 0 if it succeeded", o.wait);
  command.option("--timeout", "SECONDS", std::format("limit of --wait (default: {})", o.timeout_seconds),
                 cli::number(o.timeout_seconds, 1u, 1'000'000u));
  command.flag("--delete", "with --wait: delete the job when it has ended or the wait has timed out", o.remove);
  BSP_CHECK_OK(command.parse(words));
  if (o.remove && !o.wait) return command.wrong("--delete goes with --wait");
  return o;
}

Result<BeforeUninstallOptions> parse_before_uninstall_options(std::span<const std::string> words) {
  BeforeUninstallOptions o;
  cli::Command command("bsp-operator before-uninstall",
                       "Say which BSPJobs need the operator that is to be uninstalled.");
  command.text("--kubeconfig", "FILE", "kubeconfig (default: as kubectl finds it; in a pod its service account)",
               o.kubeconfig);
  command.text("--context", "NAME", "context of the kubeconfig (default: its current one)", o.context);
  command.option("--namespaces", "NS,…", "namespaces of the operator's jobs, or all (default: all)",
                 [&o](const std::string& value) {
                   o.name_spaces.clear();
                   for (const auto part : std::views::split(value, ','))
                     if (const std::string name(part.begin(), part.end()); !name.empty()) o.name_spaces.push_back(name);
                   const bool all = o.name_spaces == std::vector<std::string>{"all"};
                   if (all) o.name_spaces.clear();
                   return all || !o.name_spaces.empty() ? "" : "must be namespaces such as science,maths, or all";
                 });
  command.text("--holder", "NS/NAME", "the release, as Leases of jobs name it: jobs of another one are left alone",
               o.holder);
  command.flag("--delete", "delete these jobs and wait until they are gone", o.remove);
  command.option("--timeout", "SECONDS", std::format("limit of --delete (default: {})", o.timeout_seconds),
                 cli::number(o.timeout_seconds, 1u, 1'000'000u));
  BSP_CHECK_OK(command.parse(words));
  return o;
}

}  // namespace bsp::controller
