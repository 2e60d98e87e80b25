#include "operator/controller/options.h"

#include <charconv>
#include <format>
#include <functional>
#include <map>

#include "crds/nearest.h"

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
    "  --metrics-address H:PORT  Prometheus' /metrics (default: 0.0.0.0:8080; 0 for none)\n"
    "  --health-address H:PORT   /healthz and /readyz (default: 0.0.0.0:8081; 0 for none)\n"
    "  --workers N               jobs looked after at once (default: 4)\n"
    "  --record-directory DIR    keep every rescheduling call there, for bsp-operator advise (default: don't)\n"
    "  --runtime-image IMAGE     what every pod carries: bsp-init, the sidecar, criu\n"
    "  --runtime-pull-policy P   Always, IfNotPresent or Never (default: IfNotPresent)\n"
    "  --runtime-delivery D      ImageVolume, or Copy by an init container where nodes have no image volumes\n"
    "  --max-moves N             ranks that move at once in the whole cluster (default: any number)\n"
    "  --max-moves-per-set N     ranks that move at once into one Set (default: any number)\n"
    "  --target-timeout SECONDS  for the pod that a rank is to move to, until the move is given up (default: 60)\n"
    "  --user-namespaces=false   for clusters whose nodes can't run pods with hostUsers: false\n";
constexpr const char* kSubmitUsage =
    "usage: bsp-operator submit -f JOB.yaml [OPTION…]   create a BSPJob in a Kubernetes cluster\n"
    "  --kubeconfig FILE, --context NAME, --namespace NS\n"
    "  --wait            until it has ended; exit status 0 if it succeeded\n"
    "  --timeout SECONDS of waiting (default: 600)\n"
    "  --delete          the job when it has ended, or waiting has\n";

// What an option does with its value; what is wrong with it, or "".
using Set = std::function<std::string(const std::string&)>;
struct Option {
  Set set;
  bool flag = false;  // its value may be left out: true
};
using Table = std::map<std::string, Option>;

Set text(std::string& into) {
  return [&into](const std::string& value) {
    into = value;
    return std::string(value.empty() ? "must not be empty" : "");
  };
}

Set truth(bool& into) {
  return [&into](const std::string& value) {
    into = value == "true";
    return std::string(value == "true" || value == "false" ? "" : "is true or false");
  };
}

Set number(unsigned& into, unsigned least, unsigned most) {
  return [&into, least, most](const std::string& value) -> std::string {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), into);
    if (error == std::errc{} && end == value.data() + value.size() && into >= least && into <= most) return "";
    return std::format("is a number from {} to {}", least, most);
  };
}

// HOST:PORT or :PORT; 0 for none.
Set address(std::string& into) {
  return [&into](const std::string& value) -> std::string {
    into.clear();
    if (value == "0" || value.empty()) return "";
    const std::size_t colon = value.rfind(':');
    unsigned port = 0;
    const char* const end = value.data() + value.size();
    if (colon == std::string::npos || value.find(':') != colon ||
        std::from_chars(value.data() + colon + 1, end, port).ptr != end || port == 0 || port > 65535)
      return "is HOST:PORT, for example 0.0.0.0:8080, or 0 for none";
    into = colon == 0 ? "0.0.0.0" + value : value;
    return "";
  };
}

Result<void> read(std::span<const std::string> words, const Table& table, const char* usage) {
  auto wrong = [&](const std::string& what) { return fail(ErrorCode::kInvalid, std::format("{}\n{}", what, usage)); };
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i];
    if (!name.starts_with('-')) return wrong(std::format("what is {} for?", name));
    std::string value;
    const std::size_t equals = name.find('=');
    if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const auto option = table.find(name);
    if (option == table.end()) {
      std::vector<std::string_view> known;
      for (const auto& [one, does] : table) known.push_back(one);
      return wrong(std::format("unknown option {}{}", name, crds::suggestion(name, known)));
    }
    if (equals == std::string::npos) {
      if (option->second.flag) value = "true";
      else if (++i < words.size()) value = words[i];
      else return wrong(std::format("{} needs a value", name));
    }
    if (const std::string bad = option->second.set(value); !bad.empty())
      return wrong(std::format("{}: \"{}\" {}", name, value, bad));
  }
  return {};
}

}  // namespace

Result<Options> parse_options(std::span<const std::string> words) {
  Options o;
  o.lease.name = "bsp-operator";
  Set pull = [&](const std::string& value) -> std::string {
    o.pods.pull_policy = value;
    return value == "Always" || value == "IfNotPresent" || value == "Never" ? "" : "is Always, IfNotPresent or Never";
  };
  Set delivery = [&](const std::string& value) -> std::string {
    const bool copy = value == "Copy";
    o.pods.delivery = copy ? reconcile::RuntimeDelivery::kCopy : reconcile::RuntimeDelivery::kImageVolume;
    return copy || value == "ImageVolume" ? "" : "is ImageVolume or Copy";
  };
  BSP_CHECK_OK(read(words,
                    {{"--kubeconfig", {text(o.kubeconfig)}},
                     {"--context", {text(o.context)}},
                     {"--namespace", {text(o.name_space)}},
                     {"-n", {text(o.name_space)}},
                     {"--leader-elect", {truth(o.leader_elect), true}},
                     {"--lease-namespace", {text(o.lease.name_space)}},
                     {"--lease-name", {text(o.lease.name)}},
                     {"--metrics-address", {address(o.metrics_address)}},
                     {"--health-address", {address(o.health_address)}},
                     {"--workers", {number(o.workers, 1, 64)}},
                     {"--record-directory", {text(o.record_directory)}},
                     {"--runtime-image", {text(o.pods.runtime_image)}},
                     {"--runtime-pull-policy", {pull}},
                     {"--runtime-delivery", {delivery}},
                     {"--max-moves", {number(o.caps.in_cluster, 0, 100'000)}},
                     {"--max-moves-per-set", {number(o.caps.into_set, 0, 100'000)}},
                     {"--target-timeout", {number(o.target_timeout_seconds, 1, 86'400)}},
                     {"--user-namespaces", {truth(o.pods.user_namespace), true}}},
                    kUsage));
  if (o.name_space == "all") o.name_space.clear();
  if (!o.metrics_address.empty() && o.metrics_address == o.health_address)
    return fail(ErrorCode::kInvalid,
                std::format("--metrics-address and --health-address are both {}; give them different ports", o.metrics_address));
  return o;
}

Result<SubmitOptions> parse_submit_options(std::span<const std::string> words) {
  SubmitOptions o;
  BSP_CHECK_OK(read(words,
                    {{"--kubeconfig", {text(o.kubeconfig)}},
                     {"--context", {text(o.context)}},
                     {"--namespace", {text(o.name_space)}},
                     {"-n", {text(o.name_space)}},
                     {"--filename", {text(o.file)}},
                     {"-f", {text(o.file)}},
                     {"--wait", {truth(o.wait), true}},
                     {"--delete", {truth(o.remove), true}},
                     {"--timeout", {number(o.timeout_seconds, 1, 1'000'000)}}},
                    kSubmitUsage));
  if (o.file.empty()) return fail(ErrorCode::kInvalid, std::format("-f is missing: which job?\n{}", kSubmitUsage));
  if (o.remove && !o.wait) return fail(ErrorCode::kInvalid, std::format("--delete goes with --wait\n{}", kSubmitUsage));
  return o;
}

}  // namespace bsp::controller
