// The operator's end of the links to the sidecars of one job: a watch on each one's status, verbs that are sent
// until they are answered, and superstep reports through the Set Managers.
//
// What the sidecars said is kept as SidecarFacts; none of it is needed after a restart.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/net/link.h"
#include "operator/reconcile/kernel/observed.h"

namespace bsp::reconcile {

// Admits so many calls at a time, the others in order. All in one thread.
class CallLimit {
 public:
  explicit CallLimit(std::size_t at_once) : at_once_(at_once) {}
  // Runs `call` as soon as fewer are under way, maybe at once. It returns false if it is no longer wanted.
  void begin(std::function<bool()> call);
  void end();  // of one whose `call` returned true

 private:
  void begin_waiting();

  const std::size_t at_once_;
  std::size_t under_way_ = 0;
  std::deque<std::function<bool()>> waiting_;
};

// The thread that all links of a shell share, in the network namespace from which pods can be reached.
class SidecarThread {
 public:
  explicit SidecarThread(std::string network);  // path of a network namespace; "": the operator's own
  // Without a thread: whoever turns the clock runs what is due on the loop.
  explicit SidecarThread(net::Transport& transport) { loop_.set_transport(&transport); }
  ~SidecarThread();  // no Sidecars on it may be left
  SidecarThread(const SidecarThread&) = delete;
  SidecarThread& operator=(const SidecarThread&) = delete;

  [[nodiscard]] net::Loop& loop() { return loop_; }
  // A handshake holds some 25 KiB while it waits for its answer, and thousands of pods may never answer.
  [[nodiscard]] CallLimit& first_contacts() { return first_contacts_; }  // on the loop
  // Runs that on the loop, behind what was posted before, and waits for it. From any other thread.
  void run(std::function<void()> work);
  // How many sidecars of that job answer; how many do of all jobs.
  Hearing note_hearing(const std::string& job_uid, const Hearing& hearing);
  // For large answers: only so many are under way at once, however many jobs and Sets there are.
  [[nodiscard]] CallLimit& pages() { return pages_; }  // on the loop
  // Messages of sidecars that were rejected since the start. From any thread.
  [[nodiscard]] std::uint64_t rejected() const { return rejected_.load(); }
  void count_rejected() { ++rejected_; }

 private:
  std::mutex mutex_;  // of hearing_
  std::map<std::string, Hearing> hearing_;
  CallLimit first_contacts_{512};
  CallLimit pages_{64};
  std::atomic<std::uint64_t> rejected_{0};
  net::Loop loop_;
  std::thread thread_;
};

// The request that prepares an epoch. Its plan names every rank and goes to every rank, so it is encoded once.
class PlanRequest {
 public:
  // Encoded anew only if plan or token has changed since the last call.
  const net::EncodedRequest& of(const migrate::Action& action);

 private:
  migrate::Action::Plan plan_;
  std::optional<wire::Token> token_;
  net::EncodedRequest encoded_;
};

class Sidecars {
 public:
  // As many plans are sent at once: if all were, those sent last would miss their time limit and be sent again.
  static constexpr std::size_t kPlansAtOnce = 64;

  struct Options {
    net::TlsContext tls;
    std::function<void()> changed;  // called from the loop's thread whenever facts() may differ
    std::string job = {};           // namespace/name, for the log
  };
  Sidecars(SidecarThread& thread, Options options);
  ~Sidecars();  // from any thread but the loop's; `changed` is not called any more after it
  Sidecars(const Sidecars&) = delete;
  Sidecars& operator=(const Sidecars&) = delete;

  // Exactly these seats (each with its pod's ip:port) are watched from now on.
  void track(const std::map<Seat, std::string>& seats);
  // Sends the action's verb unless the same one is under way or was answered just now.
  void call(const migrate::Action& action);
  // Asks the manager for the reports of its Set, page by page; the answers are given by take_reports().
  struct SetRequest {
    Seat manager;
    nlohmann::json members;
    std::uint64_t every = 1;  // wire::sampled()
  };
  void ask_reports(const SetRequest& request);
  std::vector<wire::RankReport> take_reports();
  // Asks the pod of that seat whether it hears those, and notes the answer in their facts as that of `who`.
  void ask_who_hears(const Seat& seat, const std::string& who, const std::vector<std::string>& silent);
  void note_completed(const Seat& seat, std::uint64_t superstep);
  // What was refused or answered in an earlier wave does not count in this one.
  void begin_wave(std::uint32_t number);

  [[nodiscard]] std::map<Seat, SidecarFacts> facts() const;
  // The last that this pod's sidecar said is that the program in each of its seats has ended.
  [[nodiscard]] bool has_exited(const std::string& pod) const;
  [[nodiscard]] double round_trip_seconds() const;
  // How many verbs it knows to be under way or answered just now; they take memory. Waits for the loop's thread.
  [[nodiscard]] std::size_t remembered_verbs();
  // Since the last call a sidecar has not accepted our certificate, or we not its own.
  [[nodiscard]] bool take_untrusted() { return untrusted_.exchange(false); }

 private:
  struct Node;
  void contact(const std::shared_ptr<Node>& node);
  void watch(const std::shared_ptr<Node>& node);
  // `known`, here and below: the node's version when the request was sent.
  void heard(const std::shared_ptr<Node>& node, std::uint64_t known, const Result<net::Answer>& answer);
  void send(const std::shared_ptr<Node>& node, const migrate::Action& action);
  void send_now(const std::shared_ptr<Node>& node, const migrate::Action& action);
  void note_sent(Node& node, const migrate::Action& action, net::SteadyTime began, std::uint64_t known,
                 const Result<net::Answer>& outcome, const Result<net::Answer>& status);
  bool note_status(Node& node, std::uint64_t known, const nlohmann::json& header);  // false: it can't be read
  void ask_page(const std::shared_ptr<Node>& node);
  struct Page;  // the members asked for it
  void heard_page(const std::shared_ptr<Node>& of, const Page& page, const Result<net::Answer>& answer);
  // False: there is nothing more to ask for now.
  bool take_page(Node& node, const Page& page, const nlohmann::json& header);
  void note_rejected(const Seat& seat, std::string why);
  void note_unreachable(const Seat& seat);
  void note_untrusted(const Seat& seat);
  void note_answer(const Seat& seat, const migrate::Action& action, const Result<net::Answer>& answer);
  void note_heard(const std::string& pod, bool hears, const std::string& who, SteadyTime now);
  void note_who_hears(const std::string& who, const nlohmann::json& answer);
  SidecarFacts* facts_of(const Seat& seat);
  void notify() const {
    if (options_.changed) options_.changed();
  }

  struct Unheard {
    SteadyTime since{};      // as SidecarFacts::unreachable_since
    bool untrusted = false;  // likewise
  };

  SidecarThread& thread_;
  net::Loop& loop_;
  const Options options_;
  std::map<Seat, std::shared_ptr<Node>> nodes_;  // loop's thread only, as the next two
  PlanRequest plan_request_;
  // Shared, because the end of a call may come after this object's.
  const std::shared_ptr<CallLimit> plans_ = std::make_shared<CallLimit>(kPlansAtOnce);
  mutable std::mutex mutex_;  // of all below
  std::map<Seat, std::string> tracked_;
  std::map<Seat, SidecarFacts> facts_;      // of sidecars that have said something; and …
  std::map<Seat, Unheard> never_answered_;  // … the others; facts take ten times the memory
  std::vector<wire::RankReport> reports_;
  std::size_t held_ = 0;  // supersteps in them
  double round_trip_ = 0.002;
  std::uint32_t wave_ = 0;
  std::atomic<bool> untrusted_ = false;
};

}  // namespace bsp::reconcile
