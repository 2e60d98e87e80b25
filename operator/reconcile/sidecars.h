// The operator's end of the links to the sidecars of one job: a watch on each one's status, verbs sent
// once until they are answered, superstep reports by way of the Set Managers.
//
// What the sidecars said is kept as SidecarFacts; nothing of it is needed after a restart.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/net/link.h"
#include "operator/reconcile/observed.h"

namespace bsp::reconcile {

// The thread that all links of a shell share, in the network namespace from which pods can be reached.
class SidecarThread {
 public:
  explicit SidecarThread(std::string network);  // path of a network namespace; "": the operator's own
  ~SidecarThread();                             // no Sidecars on it may be left
  SidecarThread(const SidecarThread&) = delete;
  SidecarThread& operator=(const SidecarThread&) = delete;

  [[nodiscard]] net::Loop& loop() { return loop_; }

 private:
  net::Loop loop_;
  std::thread thread_;
};

class Sidecars {
 public:
  struct Options {
    net::TlsContext tls;
    std::function<void()> changed;  // called from the loop's thread whenever facts() may differ
  };
  Sidecars(net::Loop& loop, Options options);
  ~Sidecars();  // from any thread but the loop's; `changed` is not called any more after it
  Sidecars(const Sidecars&) = delete;
  Sidecars& operator=(const Sidecars&) = delete;

  // Exactly these pods (name -> ip:port) are watched from now on.
  void track(const std::map<std::string, std::string>& pods);
  // Sends the verb unless the same one is under way or was answered just now.
  void call(const Verb& verb);
  // Asks the manager for the reports of its Set; the answer is given by take_reports().
  struct SetRequest {
    std::string manager;  // pod
    nlohmann::json members;
  };
  void ask_reports(const SetRequest& request);
  std::vector<wire::RankReport> take_reports();
  void note_completed(const std::string& pod, std::uint64_t superstep);
  // What was refused or answered in an earlier wave says nothing about this one.
  void begin_wave(std::uint32_t number);

  [[nodiscard]] std::map<std::string, SidecarFacts> facts() const;
  [[nodiscard]] double round_trip_seconds() const;

 private:
  struct Node;
  void watch(const std::shared_ptr<Node>& node);
  void send(const std::shared_ptr<Node>& node, const Verb& verb);
  void note_status(const std::string& pod, const nlohmann::json& header);
  void note_unreachable(const std::string& pod);
  void note_answer(const std::string& pod, const Verb& verb, const Result<net::Answer>& answer);
  void tell() const {
    if (options_.changed) options_.changed();
  }

  net::Loop& loop_;
  const Options options_;
  std::map<std::string, std::shared_ptr<Node>> nodes_;  // loop's thread only
  mutable std::mutex mutex_;                            // of all below
  std::map<std::string, std::string> tracked_;
  std::map<std::string, SidecarFacts> facts_;
  std::vector<wire::RankReport> reports_;
  double round_trip_ = 0.002;
  std::uint32_t wave_ = 0;
};

}  // namespace bsp::reconcile
