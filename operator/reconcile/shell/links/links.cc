#include "operator/reconcile/shell/links/link_node.h"

#include <algorithm>
#include <format>
#include <future>
#include <utility>

#include "base/core/guard.h"
#include "base/core/log.h"
#include "base/core/log_context.h"
#include "base/core/network_namespace.h"
#include "base/json/fields.h"
#include "crds/fencing.h"
#include "crds/requests.h"

namespace bsp::reconcile {

using namespace std::chrono_literals;
using migrate::ActionKind;

namespace {
constexpr auto kWatchWait = 2000ms;
// A silent sidecar is asked again after a tenth of the time for which it has been silent, within these bounds: one that
// starts is found soon, and thousands that never do cost little.
constexpr auto kAskAgainLeast = 100ms;
constexpr auto kAskAgainMost = 5000ms;
constexpr auto kWhoHearsAgain = 2s;
constexpr auto kRepeatAfter = 150ms;  // the same verb again, if the status still asks for it
constexpr auto kPushAgain = 100ms;
constexpr auto kReportAgain = 60s;

}  // namespace

void CallLimit::begin(std::function<bool()> call) {
  waiting_.push_back(std::move(call));
  begin_waiting();
}

void CallLimit::end() {
  --under_way_;
  begin_waiting();
}

void CallLimit::begin_waiting() {
  while (under_way_ < at_once_ && !waiting_.empty()) {
    const std::function<bool()> next = std::move(waiting_.front());
    waiting_.pop_front();
    if (next()) ++under_way_;
  }
}

const net::EncodedRequest& PlanRequest::of(const migrate::Action& action) {
  const bool same = plan_ && token_ == action.token && (plan_ == action.plan || *plan_ == *action.plan);
  if (!same) encoded_ = net::encode_request(wire::kPrepareEpoch, *action.encoded());
  plan_ = action.plan;
  token_ = action.token;
  return encoded_;
}

SidecarThread::SidecarThread(std::string network)
    : thread_([this, network = std::move(network)] {
        if (!network.empty())
          if (auto entered = enter_network_namespace(network); !entered)
            log_error("failed to enter the pod network", {{"error", entered.error().message}});
        const ChecksThrow here;  // this thread serves all jobs
        loop_.run();
      }) {}

SidecarThread::~SidecarThread() {
  if (!thread_.joinable()) return;
  loop_.stop();
  thread_.join();
}

void SidecarThread::run(std::function<void()> work) {
  if (!thread_.joinable()) {
    loop_.run_due();
    return work();
  }
  std::promise<void> done;
  loop_.post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

Hearing SidecarThread::note_hearing(const std::string& job_uid, const Hearing& hearing) {
  std::lock_guard lock(mutex_);
  if (hearing == Hearing{})
    hearing_.erase(job_uid);
  else
    hearing_[job_uid] = hearing;
  Hearing all;
  for (const auto& [job, one] : hearing_) {
    all.heard += one.heard;
    all.silent += one.silent;
  }
  return all;
}

Sidecars::Sidecars(SidecarThread& thread, Options options)
    : thread_(thread), loop_(thread.loop()), options_(std::move(options)) {}

Sidecars::~Sidecars() {
  // Nothing on the loop refers to this object afterwards.
  thread_.run([this] { nodes_.clear(); });
}

void Sidecars::track(const std::map<Seat, std::string>& seats) {
  {
    std::lock_guard lock(mutex_);
    if (tracked_ == seats) return;
    tracked_ = seats;
    std::erase_if(facts_, [&](const auto& entry) { return !seats.contains(entry.first); });
    std::erase_if(never_answered_, [&](const auto& entry) { return !seats.contains(entry.first); });
  }
  loop_.post([this, seats] {
    std::erase_if(nodes_, [&](const auto& entry) {
      const auto it = seats.find(entry.first);
      return it == seats.end() || it->second != entry.second->address();
    });
    for (const auto& [seat, address] : seats) {
      if (nodes_.contains(seat)) continue;
      auto node = std::make_shared<Node>(loop_, options_.tls, seat, address);
      nodes_[seat] = node;
      contact(node);
    }
  });
}

// Contact one that has answered before at once: its rank may be computing, and silence counts against it.
void Sidecars::contact(const std::shared_ptr<Node>& node) {
  if (node->answered) return watch(node);
  thread_.first_contacts().begin([this, weak = std::weak_ptr(node)] {
    const auto self = weak.lock();  // it keeps this object alive
    if (self) watch(self);
    return self != nullptr;
  });
}

void Sidecars::watch(const std::shared_ptr<Node>& node) {
  std::weak_ptr<Node> weak = node;
  CallLimit* first_contact = node->answered ? nullptr : &thread_.first_contacts();
  node->watch.call(wire::kWatch, node->of_seat(reflect::write(wire::WatchRequest{node->version, kWatchWait.count()})),
                   {}, kWatchWait + kAnswerLimit,
                   [this, weak, first_contact, known = node->version](Result<net::Answer> answer) {
                     const auto self = weak.lock();
                     // An unreadable answer counts as none, so the request must be repeated.
                     if (self)
                       if (const auto taken = guarded([&] { heard(self, known, answer); }); !taken)
                         heard(self, known, std::unexpected(taken.error()));
                     if (first_contact) first_contact->end();
                   });
}

void Sidecars::heard(const std::shared_ptr<Node>& node, std::uint64_t known, const Result<net::Answer>& answer) {
  const auto again = [this, weak = std::weak_ptr(node)] {
    if (const auto still = weak.lock()) contact(still);
  };
  if (answer) {
    node->answered = true;
    node->silent_since.reset();
    const std::uint64_t before = node->version;
    node->opened(node->command).connect();  // it answers; connect before a verb is urgent
    if (!note_status(*node, known, answer->header)) note_unreachable(node->seat);
    const auto now = std::chrono::steady_clock::now();
    if (node->version != before) notify();  // else the watch has timed out
    if (node->may_push(now))
      loop_.post(again);
    else
      loop_.after(kPushAgain, again);
    return;
  }
  const LogsFor here(options_.job);
  const auto now = std::chrono::steady_clock::now();
  const auto silent = now - node->silent_since.value_or(now);
  node->silent_since = now - silent;
  node->version = 0;
  if (answer.error().code == ErrorCode::kUntrusted) {
    // It answers, so it is not silent; its credentials must be renewed.
    log_debug("a sidecar's credentials or ours are not accepted", {{"error", answer.error().message}});
    note_untrusted(node->seat);
    if (!untrusted_.exchange(true)) notify();
  } else {
    note_unreachable(node->seat);
  }
  if (answer.error().code == ErrorCode::kInvalid) note_rejected(node->seat, answer.error().message);
  loop_.after(std::clamp<net::SteadyTime::duration>(silent / 10, kAskAgainLeast, kAskAgainMost), again);
}

void Sidecars::call(const migrate::Action& action) {
  loop_.post([this, action] {
    if (const auto it = nodes_.find(action.seat); it != nodes_.end()) send(it->second, action);
  });
}

void Sidecars::send(const std::shared_ptr<Node>& node, const migrate::Action& action) {
  const auto now = std::chrono::steady_clock::now();
  // What was answered longer ago says nothing; and a sidecar can make up gates to be cancelled, each with another number.
  std::erase_if(node->sent, [&](const auto& verb) {
    const Node::Sent& one = verb.second;
    return !one.under_way && now >= one.at + kRepeatAfter;
  });
  const auto [sent, is_due] = node->sent.try_emplace(Node::verb_of(action));
  if (!is_due) return;
  sent->second.under_way = true;
  if (!action.plan) return send_now(node, action);
  plans_->begin([this, action, weak = std::weak_ptr(node)] {
    const auto self = weak.lock();
    if (self) send_now(self, action);
    return self != nullptr;
  });
}

// The status is asked for on the same connection right behind the verb, and the verb counts as answered only with it: so
// the status is never older than the answer.
void Sidecars::send_now(const std::shared_ptr<Node>& node, const migrate::Action& action) {
  const LogsFor here(options_.job);
  log_debug("verb", {{"pod", name_of(action.seat)}, {"verb", to_string(action.kind)}, {"number", action.number}});
  auto outcome = std::make_shared<Result<net::Answer>>(fail(ErrorCode::kUnavailable, "no answer"));
  auto answered = [outcome](Result<net::Answer> answer) { *outcome = std::move(answer); };
  net::LinkPeer& command = node->opened(node->command);
  if (action.plan)
    command.call(plan_request_.of(action), kAnswerLimit, std::move(answered));
  else
    command.call(std::string(to_string(action.kind)), node->of_seat(*action.encoded()), {}, kAnswerLimit,
                 std::move(answered));
  const auto began = std::chrono::steady_clock::now();
  command.call(wire::kStatus, node->of_seat(nlohmann::json::object()), {}, kAnswerLimit,
               [this, weak = std::weak_ptr(node), plans = plans_, action, outcome, began,
                known = node->version](Result<net::Answer> status) {
                 if (const auto self = weak.lock()) note_sent(*self, action, began, known, *outcome, status);
                 if (action.plan) plans->end();
               });
}

void Sidecars::note_sent(Node& node, const migrate::Action& action, net::SteadyTime began, std::uint64_t known,
                         const Result<net::Answer>& outcome, const Result<net::Answer>& status) {
  Node::Sent& sent = node.sent[Node::verb_of(action)];
  sent.under_way = false;
  sent.at = std::chrono::steady_clock::now();
  if (status) {
    // A discard is answered once criu has ended, so it doesn't measure a round trip.
    if (action.kind != ActionKind::kDiscard) {
      std::lock_guard lock(mutex_);
      round_trip_ += 0.2 * (std::chrono::duration<double>(sent.at - began).count() - round_trip_);
    }
    note_status(node, known, status->header);
  }
  note_answer(node.seat, action, outcome);
  notify();
}

// The watch and the verbs have a connection each, so answers may arrive in another order than they were given. If a newer status
// has arrived since the request was sent, an older one is dropped. Without one it counts, however low its version is: the sidecar
// was restarted, and its node's clock has gone back.
bool Sidecars::note_status(Node& node, std::uint64_t known, const nlohmann::json& header) {
  const Seat& seat = node.seat;
  const auto version = count_at<std::uint64_t>(header, "version");
  if (node.version != known && version < node.version) return true;
  node.version = version;
  auto status = wire::rank_status_from_json(header);
  if (!status) {
    note_rejected(seat, status.error().message);
    return false;
  }
  const SteadyTime now = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    if (!tracked_.contains(seat)) return true;
    never_answered_.erase(seat);
    SidecarFacts& facts = facts_[seat];
    facts.untrusted = false;
    facts.vouchers = {};
    facts.throttled = status->throttled;
    migrate::note_status(facts, std::move(*status), now);
  }
  return true;
}

void Sidecars::note_unreachable(const Seat& seat) {
  bool first = false;
  {
    std::lock_guard lock(mutex_);
    // Also for one that never answered, since a new operator has heard none and must not wait forever.
    if (!tracked_.contains(seat)) return;
    const auto known = facts_.find(seat);
    (known == facts_.end() ? never_answered_[seat].untrusted : known->second.untrusted) = false;
    SteadyTime& since = known == facts_.end() ? never_answered_[seat].since : known->second.unreachable_since;
    if (since == SteadyTime{}) {
      since = std::chrono::steady_clock::now();
      first = true;
    }
  }
  if (first) notify();
}

void Sidecars::note_untrusted(const Seat& seat) {
  const std::lock_guard lock(mutex_);
  if (!tracked_.contains(seat)) return;
  // One that did not answer may be gone all the same, and another pod have its address.
  const auto known = facts_.find(seat);
  (known == facts_.end() ? never_answered_[seat].untrusted : known->second.untrusted) = true;
}

// nullptr: it has neither answered nor failed to answer. With the lock held.
SidecarFacts* Sidecars::facts_of(const Seat& seat) {
  if (const auto it = facts_.find(seat); it != facts_.end()) return &it->second;
  const auto silent = never_answered_.find(seat);
  if (silent == never_answered_.end()) return nullptr;
  SidecarFacts& facts = facts_[seat];
  facts.unreachable_since = silent->second.since;
  facts.untrusted = silent->second.untrusted;
  never_answered_.erase(silent);
  return &facts;
}

void Sidecars::note_answer(const Seat& seat, const migrate::Action& action, const Result<net::Answer>& answer) {
  std::lock_guard lock(mutex_);
  if (action.token && action.token->wave != wave_) return;  // as begin_wave() says
  SidecarFacts* const facts = facts_of(seat);
  if (!facts) return;
  const auto fields = answer.transform([](const net::Answer& a) { return a.header; });
  const LogsFor here(options_.job);
  if (!migrate::note_answer(*facts, action, fields))
    log_warning("a sidecar refused",
                {{"pod", name_of(seat)}, {"verb", to_string(action.kind)}, {"error", answer.error().message}});
}

void Sidecars::ask_who_hears(const Seat& seat, const std::string& who, const std::vector<std::string>& silent) {
  loop_.post([this, seat, who, silent] {
    const auto it = nodes_.find(seat);
    const auto now = std::chrono::steady_clock::now();
    if (it == nodes_.end() || it->second->asked_who_hears || now < it->second->asked_at + kWhoHearsAgain) return;
    it->second->asked_who_hears = true;
    it->second->asked_at = now;
    // On a link of its own: the answer takes as long as the slowest pod's.
    it->second->opened(it->second->who_hears)
        .call(fencing::kHears, {{fencing::kPods, silent}}, {}, 2 * kAnswerLimit,
              [this, who, weak = std::weak_ptr(it->second)](Result<net::Answer> answer) {
                if (const auto self = weak.lock()) self->asked_who_hears = false;
                if (answer) note_who_hears(who, answer->header);
              });
  });
}

void Sidecars::note_who_hears(const std::string& who, const nlohmann::json& answer) {
  const SteadyTime now = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(mutex_);
    for (const auto& [list, hears] : {std::pair{fencing::kHeard, true}, {fencing::kUnheard, false}})
      for (const nlohmann::json& pod : part_at(answer, list))
        if (pod.is_string()) note_heard(pod.get<std::string>(), hears, who, now);
  }
  notify();
}

// For all seats of the pod, which share one sidecar. Call it with the lock held.
void Sidecars::note_heard(const std::string& pod, bool hears, const std::string& who, SteadyTime now) {
  for (auto it = tracked_.lower_bound({pod, 0}); it != tracked_.end() && it->first.pod == pod; ++it)
    if (SidecarFacts* const facts = facts_of(it->first); facts && facts->unreachable_since != SteadyTime{})
      facts->vouchers.note(hears, who, now);
}

// Logs one line per sidecar and minute, however many messages are rejected.
void Sidecars::note_rejected(const Seat& seat, std::string why) {
  thread_.count_rejected();
  cut_text(why, 300);
  const SteadyTime now = std::chrono::steady_clock::now();
  bool news = false;
  {
    std::lock_guard lock(mutex_);
    if (!tracked_.contains(seat)) return;
    SidecarFacts* facts = facts_of(seat);
    if (!facts) facts = &facts_[seat];
    facts->rejected = why;
    facts->rejected_at = now;
    news = now >= facts->rejected_logged + kReportAgain;
    if (news) facts->rejected_logged = now;
  }
  if (!news) return;
  const LogsFor here(options_.job);
  log_warning("a sidecar's message is rejected", {{"pod", name_of(seat)}, {"error", why}});
  notify();
}

void Sidecars::note_completed(const Seat& seat, std::uint64_t superstep) {
  std::lock_guard lock(mutex_);
  SidecarFacts* const facts = facts_of(seat);
  if (!facts) return;
  facts->completed = std::max(facts->completed, superstep);
  facts->completed_at = std::chrono::steady_clock::now();
}

void Sidecars::begin_wave(std::uint32_t number) {
  std::lock_guard lock(mutex_);
  if (wave_ == number) return;
  wave_ = number;
  for (auto& [seat, facts] : facts_) {
    facts.refused.clear();
    facts.armed.reset();  // the next gate may be at the same superstep
    facts.done.clear();
  }
  // A wave has epochs and supersteps of its own, so a long job would keep thousands for each rank.
  loop_.post([this] {
    for (auto& [seat, node] : nodes_)
      std::erase_if(node->sent, [](const auto& entry) { return !entry.second.under_way; });
  });
}

std::map<Seat, SidecarFacts> Sidecars::facts() const {
  std::lock_guard lock(mutex_);
  std::map<Seat, SidecarFacts> all = facts_;
  for (const auto& [seat, unheard] : never_answered_) {
    SidecarFacts& facts = all[seat];
    facts.unreachable_since = unheard.since;
    facts.untrusted = unheard.untrusted;
  }
  doubt_claims(all, std::chrono::steady_clock::now());
  return all;
}

bool Sidecars::has_exited(const std::string& pod) const {
  std::lock_guard lock(mutex_);
  bool any = false;
  for (auto it = tracked_.lower_bound({pod, 0}); it != tracked_.end() && it->first.pod == pod; ++it) {
    const auto facts = facts_.find(it->first);
    any = facts != facts_.end() && facts->second.status && facts->second.status->phase == wire::RankPhase::kExited;
    if (!any) return false;
  }
  return any;
}

std::size_t Sidecars::remembered_verbs() {
  std::size_t verbs = 0;
  thread_.run([&] {
    for (const auto& [seat, node] : nodes_) verbs += node->sent.size();
  });
  return verbs;
}

double Sidecars::round_trip_seconds() const {
  std::lock_guard lock(mutex_);
  return round_trip_;
}

}  // namespace bsp::reconcile
