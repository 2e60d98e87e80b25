#include "tests/swarm/operator.h"

#include <algorithm>
#include <deque>
#include <format>

#include "base/json/fields.h"
#include "operator/kube/cache.h"
#include "operator/kube/fields.h"
#include "operator/reconcile/shell/holds.h"
#include "operator/reconcile/shell/job/job_shell.h"
#include "operator/reconcile/shell/objects.h"
#include "tests/swarm/network.h"
#include "tests/swarm/world.h"

namespace bsp::simulation {

using nlohmann::json;

namespace {
constexpr int kCompetesAgain = 2 * kTicksPerSecond;

reconcile::ShellOptions shell_options(const std::string& release, const Swarm& swarm) {
  reconcile::ShellOptions options;
  if (swarm.releases > 1) options.holder = release;  // else the worlds of seeds that show a fault would be others
  options.reservations_name = release + "-reservations";
  options.authority_name = release + "-authority";
  options.name_space = kNameSpace;
  options.pods.scheduled = true;
  options.collects_garbage = true;
  options.progress = std::chrono::seconds(10);
  options.calls = std::chrono::seconds(10);
  options.image_defaults = [](const std::string&) {
    return reconcile::ImageDefaults{.entrypoint = {}, .command = {}, .user = "1000"};
  };
  options.log_tail = [](const std::string&, const Seat&) { return std::string(); };
  options.record = [](const std::string&, const std::string&, const std::string&) {};
  return options;
}
}  // namespace

// What it has while it leads. Its calls are done some ticks later, one after the other.
class Operator::Term {
 public:
  Term(World& world, kube::Client& client, const std::string& release, std::function<bool()> cut)
      : world_(world),
        client_(client),
        options_(shell_options(release, world.swarm())),
        network_(world, "", std::move(cut)),
        reservations_(client, kNameSpace, options_.reservations_name),
        authority_(client, kNameSpace, options_.authority_name),
        holds_(client, options_.holder),
        links_(network_),
        pool_([this](std::function<void()> call) {
          calls_.push_back({world_.tick() + world_.draw(0, 3), std::move(call)});
        }),
        cache_(client, cache_options()) {}
  ~Term() {
    for (Call& call : std::exchange(calls_, {}))
      if (world_.chance(0.5)) call.run();  // it was under way
    calls_.clear();
    jobs_.clear();
    calls_.clear();
  }

  void run() {
    if (world_.chance(0.9)) (void)cache_.refresh({});
    network_.take_in();
    links_.loop().run_due();
    for (std::size_t left = calls_.size(); left > 0 && !calls_.empty() && calls_.front().at <= world_.tick(); --left) {
      const Call call = std::move(calls_.front());
      calls_.pop_front();
      call.run();
    }
    if (!cache_.filled()) return;
    for (auto& [key, at] : due_) {
      if (at > world_.tick()) continue;
      at = 1 << 30;
      const auto next = reconcile(key);
      at = std::min(at, world_.tick() + 1 + static_cast<int>((next - Duration(1)) / Duration(kTick)));
    }
    authority_.keep();
    links_.loop().run_due();  // what has been asked for leaves
  }

 private:
  struct Call {
    int at;
    std::function<void()> run;
  };

  kube::CacheOptions cache_options() {
    kube::CacheOptions cached = reconcile::watched_objects(kNameSpace);
    cached.own_thread = false;
    cached.on_change = [this](const kube::Kind& kind, const kube::Object* before, const kube::Object* now) {
      if (kind == kNode) return nodes_.change(before, now);
      const std::string key = reconcile::job_key_of(kind, now ? *now : *before);
      if (kind == kPod) usage_.change(before, now);
      if (kind == kBspJob) waiting_jobs_.note(key, now);
      if (!key.empty() && !reconcile::RunsFor::is(key)) due_[key] = world_.tick();
    };
    return cached;
  }

  Duration reconcile(const std::string& key) {
    const reconcile::RunsFor here(key);
    const kube::Key at{kBspJob, kNameSpace, key.substr(key.find('/') + 1)};
    const auto object = cache_.get(at);
    auto& job = jobs_[key];
    if (!object || (job && job->uid() != kube::metadata_text(*object, "uid"))) job.reset();
    if (!object) return std::chrono::seconds(15);
    if (const auto holder = holds_.ask(kNameSpace); !holder.ours) {
      if (job) world_.say(std::format("{} leaves the job to {}", options_.holder, holder.other));
      job.reset();
      return reconcile::NamespaceHolds::kAsksAgain;
    }
    if (!job)
      job = std::make_unique<reconcile::JobShell>(
          reconcile::ShellParts{client_, cache_, nodes_, benchmarks_, usage_, reservations_, waiting_jobs_, authority_,
                                links_, pool_, options_},
          reconcile::JobRef{at, kube::metadata_text(*object, "uid")}, [this, key] { due_[key] = world_.tick(); });
    return job->reconcile();
  }

  World& world_;
  kube::Client& client_;
  const reconcile::ShellOptions options_;
  Transport network_;
  reconcile::NodeViews nodes_;
  reconcile::NodeBenchmarks benchmarks_;
  reconcile::NodeUsage usage_;
  reconcile::WaitingJobs waiting_jobs_;
  reconcile::ObjectReservations reservations_;
  reconcile::Authority authority_;
  reconcile::NamespaceHolds holds_;
  reconcile::SidecarThread links_;
  std::deque<Call> calls_;
  reconcile::CallPool pool_;
  std::map<std::string, int> due_;
  kube::Cache cache_;
  std::map<std::string, std::unique_ptr<reconcile::JobShell>> jobs_;
};

Operator::Operator(World& world, int number)
    : world_(world), number_(number), release_(std::format("release-{}", number % world.swarm().releases)) {
  client_ = std::make_unique<StoreClient>(
      world.store(),
      StoreClient::Weather{.reachable = [this] { return world_.tick() >= api_silent_until_; },
                           .loses_answer = [this] { return world_.chance(world_.swarm().write_loss); },
                           .seen_until =
                               [this] {
                                 if (world_.tick() >= watch_stalled_until_)
                                   seen_until_ =
                                       std::max(seen_until_, world_.tick() - world_.draw(0, world_.swarm().watch_lag));
                                 return seen_until_;
                               }});
  die(number * 3);
}

Operator::~Operator() = default;

bool Operator::is_cut_off() const { return world_.tick() < cut_until_; }

void Operator::die(int down_for) {
  term_.reset();
  ++life_;
  up_at_ = world_.tick() + down_for;
  awake_at_ = 0;
  competes_at_ = 0;
  candidate_ = std::make_unique<kube::Candidate>(kube::LeaderOptions{
      .name_space = kNameSpace, .name = release_, .identity = std::format("operator-{}-{}", number_, life_)});
}

void Operator::sleep(int ticks) {
  awake_at_ = world_.tick() + ticks;
  // Its threads wake up in any order: the one that knows the time may be the last.
  notices_at_ = awake_at_ + world_.draw(0, 20);
}

void Operator::cut_off(int ticks) { cut_until_ = world_.tick() + ticks; }
void Operator::lose_api(int ticks) { api_silent_until_ = world_.tick() + ticks; }
void Operator::stall_watch(int ticks) { watch_stalled_until_ = world_.tick() + ticks; }

void Operator::compete() {
  if (world_.tick() < competes_at_) return;
  competes_at_ = world_.tick() + kCompetesAgain;
  const Duration began = kube::boot_time();
  const auto lease = client_->get({kube::kLease, kNameSpace, release_});
  if (!lease && lease.error().code != ErrorCode::kNotFound) return;
  const auto next = candidate_->next(lease ? &*lease : nullptr, began, SystemClock::now());
  if (next && (lease ? client_->update(*next) : client_->create(*next))) candidate_->written(began);
}

void Operator::run() {
  if (world_.tick() < up_at_ || world_.tick() < awake_at_) return;
  if (world_.tick() >= notices_at_) {
    compete();
    const bool leads = candidate_->leads(kube::boot_time());
    if (leads && !term_) {
      world_.say(std::format("operator {} leads", number_));
      term_ = std::make_unique<Term>(world_, *client_, release_, [this] { return is_cut_off(); });
    } else if (!leads && term_) {
      world_.say(std::format("operator {} leads no longer", number_));
      term_.reset();
      candidate_->resign();
    }
  }
  if (term_) term_->run();
}

}  // namespace bsp::simulation
