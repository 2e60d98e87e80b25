#include "operator/reconcile/shell/shell.h"

#include <algorithm>
#include <format>

#include "base/core/guard.h"
#include "base/core/log.h"
#include "operator/kube/fields.h"
#include "operator/kube/modify.h"
#include "operator/reconcile/capacity/stores/exchange_store.h"
#include "operator/reconcile/shell/job/job_shell.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;

Metric reconcile_retries(Metric::Type::kCounter, "bsp_reconcile_retries_total",
                         "Reconciles of a job that are repeated, by the reason.", {"reason"});

namespace {
// Where the operator's own objects are.
const std::string& own_name_space(const ShellOptions& options) {
  return options.reservations_name_space.empty() ? options.name_space : options.reservations_name_space;
}
}  // namespace

Shell::Shell(kube::Client& client, ShellOptions options)
    : client_(client),
      options_(std::move(options)),
      queue_({.tenant_of = [](const std::string& key) { return key.substr(0, key.find('/')); },
              .max_per_tenant = std::max(1u, options_.workers)}),
      authority_(client, own_name_space(options_), options_.authority_name),
      spaces_{.strays = StrayMigrations(client), .holds = NamespaceHolds(client, options_.holder)},
      sidecar_thread_(options_.network) {
  if (options_.exchange.group)
    reservations_ = std::make_unique<ExchangeReservations>(options_.exchange, usage_);
  else
    reservations_ = std::make_unique<ObjectReservations>(client, own_name_space(options_), options_.reservations_name);
  for (const char* reason : {"error", "conflict", "refused"}) reconcile_retries.add({reason}, 0);
  kube::CacheOptions cached = watched_objects(options_.name_space, options_.kueue);
  cached.on_change = [this](const kube::Kind& kind, const kube::Object* before, const kube::Object* now) {
    // On the watch's thread: an object that can't be parsed must not end the watch of all others.
    if (auto seen = guarded([&] { changed(kind, before, now); }); !seen)
      log_error("failed to take note of a change", {{"kind", kind.kind}, {"error", seen.error().message}});
  };
  cache_ = std::make_unique<kube::Cache>(client_, std::move(cached));
  call_pool_ = std::make_unique<CallPool>();
  // Workers for urgent jobs only are never blocked by a job whose creation of pods hangs.
  for (unsigned i = 0; i < kNamespaces * std::max(1u, options_.workers); ++i)
    for (const kube::Lane lane : {kube::Lane::kUrgent, kube::Lane::kOrdinary})
      workers_.emplace_back([this, lane] { work(lane); });
}

Shell::~Shell() {
  stop_ = true;
  queue_.shut_down();
  for (std::thread& worker : workers_) worker.join();
  call_pool_.reset();
  jobs_.clear();
}

void Shell::changed(const kube::Kind& kind, const kube::Object* before, const kube::Object* now) {
  if (kind == kNode) return nodes_.views.change(before, now);  // the jobs' next reconciles see it
  const std::string key = job_key_of(kind, now ? *now : *before);
  if (kind == kPod) {
    usage_.change(before, now);
    reservations_->pods_changed(text_at(part_at(now ? *now : *before, "spec"), "nodeName"));
  }
  if (kind == kBspJob) {
    waiting_jobs_.note(key, now);
    const std::lock_guard lock(mutex_);
    if (now)
      job_metrics_[key] = job_metrics(*now);
    else
      job_metrics_.erase(key);
  }
  if (kind == kBspJob)
    queue_.set_lane(key, now && text_at(part_at(*now, "status"), "phase") == crds::to_string(crds::JobPhase::kMigrating)
                             ? kube::Lane::kUrgent
                             : kube::Lane::kOrdinary);
  if (!key.empty() && !RunsFor::is(key)) queue_.add(key);
}

void Shell::work(kube::Lane lane) {
  // Until the cache is filled, an object that is missing there may exist.
  while (!cache_->wait_filled(250ms))
    if (stop_) return;
  reservations_->begin();
  while (const auto key = queue_.get(lane)) {
    const auto began = std::chrono::steady_clock::now();
    bool gone = false;
    const auto next = guarded([&] {
      const RunsFor here(*key);
      return reconcile(*key, gone);
    });
    {
      const std::lock_guard lock(mutex_);
      reconciles_.add(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
    }
    queue_.done(*key);
    if (!next) {
      log_error("failed to reconcile a job", {{"job", *key}, {"error", next.error().message}});
      reconcile_retries.add({"error"});
      queue_.add_rate_limited(*key);
    } else {
      queue_.forget(*key);
      if (!gone || *next > Duration{}) queue_.add_after(*key, *next);
    }
    if (const auto kept = guarded([&] { authority_.keep(); }); !kept)
      log_error("failed to keep the seed of the jobs' certificates", {{"error", kept.error().message}});
  }
}

Duration Shell::reconcile(const std::string& key, bool& gone) {
  const std::size_t slash = key.find('/');
  const kube::Key at{kBspJob, key.substr(0, slash), key.substr(slash + 1)};
  const auto object = cache_->get(at);
  gone = !object;
  // Costs no API request unless the job was deleted mid-wave.
  if (gone)
    if (auto released = reservations_->release(key, SystemClock{}.now()); !released)
      log_warning("failed to release a reservation", {{"job", key}, {"error", released.error().message}});
  const Duration strays_wait = gone ? spaces_.strays.answer(*cache_, key) : Duration{};
  if (gone)
    spaces_.holds.job_is_gone(key, !has_jobs(at.name_space));
  else
    spaces_.strays.job_exists(key);
  std::shared_ptr<JobShell> job, former;  // replaced; it is destroyed outside of the lock
  if (!gone)
    if (const auto holder = spaces_.holds.ask(at.name_space); !holder.ours) {
      {
        const std::lock_guard lock(mutex_);
        if (const auto it = jobs_.find(key); it != jobs_.end()) former = std::move(it->second), jobs_.erase(it);
      }
      if (!holder.other.empty()) spaces_.holds.tell(*object, holder.other);
      return NamespaceHolds::kAsksAgain;
    }
  {
    const std::lock_guard lock(mutex_);
    const auto it = jobs_.find(key);
    // A job that was deleted and created again under the same name is another job, with certificates of its own.
    if (it != jobs_.end() && (gone || it->second->uid() != kube::metadata_text(*object, "uid"))) {
      former = std::move(it->second);
      jobs_.erase(it);
    }
    if (gone) return strays_wait;
    auto& place = jobs_[key];
    if (!place)
      place = std::make_shared<JobShell>(
          ShellParts{client_, *cache_, nodes_.views, nodes_.benchmarks, usage_, *reservations_, waiting_jobs_,
                     authority_, sidecar_thread_, *call_pool_, options_},
          JobRef{at, kube::metadata_text(*object, "uid")}, [this, key] { queue_.add(key); });
    job = place;
  }
  const Duration next = job->reconcile();
  reservations_->reconciled(key);
  return next;
}

bool Shell::has_jobs(const std::string& name_space) {
  const std::lock_guard lock(mutex_);
  const auto first = job_metrics_.lower_bound(name_space + "/");
  return first != job_metrics_.end() && first->first.starts_with(name_space + "/");
}

ShellMetrics Shell::metrics() {
  ShellMetrics metrics;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, job] : job_metrics_) metrics.jobs.push_back(job);
    metrics.reconciles = reconciles_;
  }
  metrics.waiting = queue_.size();
  metrics.cached_pods = cache_->count(kPod);
  metrics.rejected_messages = sidecar_thread_.rejected();
  metrics.cached_bytes = cache_->bytes();
  return metrics;
}

}  // namespace bsp::reconcile
