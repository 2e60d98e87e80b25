#include "operator/controller/controller.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <format>

#include "base/core/log.h"
#include "base/core/metric.h"
#include "operator/exchange/link_group.h"
#include "operator/reconcile/shell/objects.h"
#include "operator/reconcile/shell/record.h"

namespace bsp::controller {
namespace {

using namespace std::chrono_literals;

// A server that doesn't answer then costs the election one attempt, not the term.
constexpr kube::ApiOptions kLeaseCalls{.call = 4s, .attempt = 2s};
// A log isn't worth waiting longer for a node that doesn't answer.
constexpr kube::ApiOptions kLogCalls{.call = 3s, .attempt = 3s};

// Every status write goes to etcd and to all watchers, and is a line of `kubectl get -w`; large ones are rarer
// (StatusWriter::progress_is_due).
constexpr auto kProgress = 10s;

// Calls without moves are reported no more often than this, because each costs a status write and an event.
constexpr auto kCalls = 10s;

Metric leader_changes(Metric::Type::kCounter, "bsp_leader_changes_total",
                      "How often this replica became the leader, or no longer was.", {"what"});

// The page grows with the number of jobs, and no graph needs it more often.
constexpr auto kMetricsFresh = 1s;

// The process's name in the Lease. A restarted process is another candidate.
std::string own_identity() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  std::uint64_t random = 0;
  check(::getrandom(&random, sizeof random, 0) == sizeof random, "getrandom gives 8 bytes");
  return std::format("{}_{:016x}", host, random);
}

Result<std::unique_ptr<kube::ApiClient>> client_with(const kube::Config& config, const kube::ApiOptions& calls = {}) {
  kube::ApiClientOptions options;
  options.api = calls;
  options.trim = reconcile::trim_watched;
  return kube::ApiClient::create(config, std::move(options));
}

std::string authority_name(const Options& options) { return options.lease.name + "-authority"; }

std::string tail_of(kube::ApiClient& client, const std::string& name_space, const Seat& seat) {
  const auto log = client.pod_log(name_space, seat.pod, {.container = container_of(seat.local)});
  if (log) return *log;
  log_debug("failed to read a pod's log", {{"pod", name_of(seat)}, {"error", log.error().message}});
  return "";
}

Result<void> check_record_directory(const std::string& directory) {
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return {};
  return std::unexpected(fail_errno("--record-directory " + directory).error());
}

decltype(reconcile::ShellOptions::record) recorder(const std::string& directory) {
  if (directory.empty()) return {};
  return [directory](const std::string& name_space, const std::string& job, const std::string& line) {
    reconcile::record_line(reconcile::record_path(directory, name_space, job), line);
  };
}

Result<net::TlsContext> exchange_context(const std::string& directory) {
  const auto context = net::load_credentials(directory).and_then(net::TlsContext::create);
  if (!context) return std::unexpected(context.error().in("--exchange-tls " + directory));
  return *context;
}

}  // namespace

Result<std::unique_ptr<Controller>> Controller::start(const Options& options, const kube::Config& config) {
  std::unique_ptr<Controller> controller(new Controller(options, config));
  BSP_CHECK_OK(controller->open());
  return controller;
}

Result<void> Controller::open() {
  if (!options_.record_directory.empty()) BSP_CHECK_OK(check_record_directory(options_.record_directory));
  if (options_.exchange.mechanism) {
    BSP_TRY(exchange_tls_, exchange_context(options_.exchange.tls_directory));
  }
  BSP_TRY(lease_client_, client_with(config_, kLeaseCalls));
  auto listen = [&](const std::string& address, auto pages,
                    const EndpointLimits& limits = {}) -> Result<std::unique_ptr<Endpoints>> {
    if (address.empty()) return nullptr;
    return Endpoints::open(address, {.pages = std::move(pages)}, limits);
  };
  using Pages = std::map<std::string, std::function<Page()>>;
  BSP_TRY(health_, listen(options_.health_address, Pages{{"/healthz", [] { return Page{200, "ok\n"}; }},
                                                         {"/readyz", [this] { return readiness(); }}}));
  BSP_TRY(metrics_, listen(options_.metrics_address, Pages{{"/metrics", [this] { return metrics(); }}},
                           {.fresh = kMetricsFresh}));
  if (!options_.evictions_address.empty()) {
    BSP_TRY(evictions_, EvictionWebhook::open(config_, {.address = options_.evictions_address,
                                                        .name = options_.lease.name + "-evictions",
                                                        .own_name_space = own_name_space(),
                                                        .seed_name = authority_name(options_),
                                                        .name_space = options_.name_space}));
  }
  if (!options_.leader_elect) {
    BSP_TRY(auto term, begin_term());
    const std::lock_guard lock(mutex_);
    term_ = std::move(term);
    return {};
  }
  kube::LeaderOptions lease = options_.lease;
  if (lease.name_space.empty()) lease.name_space = config_.name_space;
  if (lease.identity.empty()) lease.identity = own_identity();
  BSP_TRY(auto election,
          kube::LeaderElection::create(*lease_client_, lease, [this](bool leads) { return lead(leads); }));
  const std::lock_guard lock(mutex_);
  election_ = std::move(election);
  return {};
}

Controller::~Controller() {
  std::unique_ptr<kube::LeaderElection> election;
  {
    const std::lock_guard lock(mutex_);
    election = std::move(election_);
  }
  election.reset();  // ends the term first, then releases the Lease
  end_term();
  evictions_.reset();
  health_.reset();
  metrics_.reset();
}

std::string Controller::own_name_space() const {
  return options_.lease.name_space.empty() ? config_.name_space : options_.lease.name_space;
}

Result<void> Controller::lead(bool leads) {
  leader_changes.add({leads ? "won" : "lost"});
  if (!leads) {
    end_term();
    return {};
  }
  auto term = begin_term();
  const std::lock_guard lock(mutex_);
  trouble_ = term ? "" : term.error().message;
  if (!term) return std::unexpected(std::move(term.error()));
  term_ = std::move(*term);
  return {};
}

// New for every term: to the others, an operator that leads again has restarted.
Result<reconcile::ExchangePlace> Controller::exchange_place() const {
  const ExchangeOptions& o = options_.exchange;
  if (!exchange_tls_) return reconcile::ExchangePlace{};
  reconcile::ExchangePlace place;
  exchange::LinkGroup::Options group{.name = std::string(exchange::to_string(*o.mechanism)),
                                     .self = 0,
                                     .identities = {},
                                     .mechanism = *o.mechanism,
                                     .resources = {},
                                     // More than half of two is both, so a lone survivor would wait for ever.
                                     .majority = o.members.size() > 2,
                                     .answer_within = std::min<std::chrono::nanoseconds>(5s, o.lost_after),
                                     .lost_after = o.lost_after};
  for (const auto& [name_space, address] : o.members) {
    if (name_space == options_.name_space) group.self = static_cast<exchange::Member>(group.identities.size());
    group.name += (group.identities.empty() ? " of " : ",") + name_space;
    group.identities.push_back(name_space);
    place.addresses.push_back(address);
  }
  auto listening = exchange::LinkGroup::listen(*exchange_tls_, std::move(group), o.listen);
  if (!listening) return std::unexpected(listening.error().in("--exchange-listen " + o.listen));
  place.group = std::move(*listening);
  return place;
}

Result<std::unique_ptr<Controller::Term>> Controller::begin_term() {
  auto term = std::make_unique<Term>();
  BSP_TRY(reconcile::ExchangePlace exchange, exchange_place());
  const std::string own = own_name_space();
  std::optional<reconcile::OperatorPods> isolated;
  if (!options_.isolate_jobs.empty()) isolated = {own, options_.isolate_jobs};
  BSP_TRY(term->client, client_with(config_));
  BSP_TRY(term->logs, client_with(config_, kLogCalls));
  BSP_TRY(term->evictions, EvictionRounds::begin(config_, options_.name_space));
  term->responding = std::make_unique<reconcile::RespondingClient>(
      *term->client, [rounds = term->evictions.get()] { return rounds->serves(); },
      [rounds = term->evictions.get()](kube::Client& client, const kube::Key& pod, const std::string& uid) {
        rounds->complete_before_removal(client, pod, uid);
      });
  term->shell = std::make_unique<reconcile::Shell>(
      *term->responding,
      reconcile::ShellOptions{
          .name_space = options_.name_space,
          .network = "",
          .pods = options_.pods,
          .sidecar_resources = options_.sidecar_resources,
          .collects_garbage = true,
          .workers = options_.workers,
          .progress = kProgress,
          .calls = kCalls,
          .log_tail = [logs = term->logs.get()](const std::string& name_space,
                                                const Seat& seat) { return tail_of(*logs, name_space, seat); },
          .record = recorder(options_.record_directory),
          .limits = {.prepare = std::chrono::seconds(options_.target_timeout_seconds)},
          .job_limits = {.start = std::chrono::seconds(options_.start_timeout_seconds), .restart = 10s},
          .reservations_name_space = own,
          .reservations_name = options_.lease.name + "-reservations",
          .authority_name = authority_name(options_),
          .holder = own + "/" + options_.lease.name,
          .exchange = std::move(exchange),
          .caps = options_.caps,
          .instance_prices = options_.instance_prices,
          .kueue = options_.kueue,
          .isolate_from_all_but = std::move(isolated)});
  return term;
}

void Controller::end_term() {
  std::unique_ptr<Term> term;
  {
    const std::lock_guard lock(mutex_);
    term = std::move(term_);
  }
  if (!term) return;
  // Pending calls end now, because the next leader may start soon.
  term->client->close();
  term->logs->close();
  term->shell.reset();
  term->evictions.reset();
}

Page Controller::readiness() {
  const std::lock_guard lock(mutex_);
  if (term_) return term_->shell->ready() ? Page{200, "leader\n"} : Page{503, "leader, still listing objects\n"};
  if (!election_) return {503, "starting\n"};
  const std::string holder = election_->holder();
  if (!holder.empty()) return {200, std::format("stand-by of {}\n", holder)};
  return {503, trouble_.empty() ? "waiting for the Lease\n" : std::format("can't lead: {}\n", trouble_)};
}

Page Controller::metrics() {
  OperatorMetrics metrics;
  metrics.version = BSP_VERSION;
  metrics.process = process_metrics();
  {
    const std::lock_guard lock(mutex_);
    metrics.leads = term_ != nullptr;
    if (term_) {
      metrics.shell = term_->shell->metrics();
      metrics.api_requests = term_->client->requests() + term_->logs->requests();
    }
  }
  return {200, metrics_text(metrics)};
}

}  // namespace bsp::controller
