// A simulated cluster: pods with sidecars, and an MPI program that computes in them in lock-step. Time is a number of
// ticks; one seed makes one run. The operator that works on it is the test's (tests/unit/migrate, tests/unit/reconcile).
//
// While it runs it checks what must never happen: two copies of a rank that compute, an epoch that is opened and not
// committed, a gate at which only some ranks vote. The first of these is `violation`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/simulated_cluster/pod.h"

namespace bsp::simulated {

struct Range {
  int low = 1, high = 1;
};

struct Pace {  // ticks
  Range superstep, close, dump, stream, restore;
  Range enter = {0, 0};  // from SIGCONT until the program says that it is in the epoch
  std::uint64_t tick_ns = 200'000'000;
};

struct ProgramOptions {
  std::uint32_t ranks = 2;
  std::uint64_t supersteps = 1'000'000;  // then every rank exits with 0
  Pace pace = {};
  std::uint64_t seed = 0;
};

class Cluster {
 public:
  explicit Cluster(const ProgramOptions& options) : program_(options), random_(options.seed) {}
  virtual ~Cluster() = default;

  Pod* find(const Seat& seat);
  // The program of that rank ends, wherever it is; `reports`: its sidecar hears of it before the node does.
  virtual void end_program(std::uint32_t rank, int exit_code, int signal, bool reports = true);
  // It takes up what it has stored: epochs, and a checkpoint that is whole. A stream is lost, and every order.
  void restart_sidecar(const std::string& pod, int down_for);

  bool messages_come_again = false;  // seconds later: then the sidecar refuses what nobody asks for now
  bool never_migratable = false;     // every committed gate is postponed
  std::string violation, trace;
  // The images in the storage, by set and rank. Tests damage it by taking some out.
  struct Image {
    std::uint64_t superstep = 0, epoch = 0;
    std::uint64_t base = 0;  // the set on whose image of this rank it builds; 0: it is whole
  };
  std::map<std::pair<std::uint64_t, std::uint32_t>, Image> storage;
  bool shares_blocks = false;  // images build on those of their group's first set, where they may; but for these:
  bool some_are_whole = true;
  bool removes_as_older = false;  // sidecars that remove sets know nothing of that

 protected:
  virtual void for_each_pod(const std::function<void(Pod&)>& f) = 0;
  [[nodiscard]] virtual std::uint64_t committed_epoch() const = 0;
  // Late messages name what was committed before the store went back.
  [[nodiscard]] virtual bool may_be_open(std::uint64_t epoch) const { return epoch == committed_epoch(); }
  // Though its process runs, the rank's peers may be gone.
  [[nodiscard]] virtual bool can_compute(const Pod& /*pod*/) { return true; }
  // What its sidecar says to a verb, before anything follows from it.
  virtual Answer answer_of(Pod& pod, std::string_view verb, const nlohmann::json& fields,
                           const std::shared_ptr<const wire::EpochPlan>& plan) {
    return answer(pod, verb, fields, plan);
  }
  // The node learns that the app container has ended.
  virtual void container_ended(Pod&, int /*exit_code*/) {}

  void advance();  // programs, transfers and openings by one tick
  // What the sidecar answers for that seat, with what follows from it. It prepares an epoch for all seats of its pod.
  Result<nlohmann::json> ask(Pod& pod, std::string_view verb, const std::shared_ptr<const nlohmann::json>& fields);
  void end(Pod& pod, int exit_code, int signal, bool reports);
  void violate(const std::string& what);
  void note(const std::string& what);
  int random(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  int random(const Range& range) { return range.low == range.high ? range.low : random(range.low, range.high); }
  [[nodiscard]] std::uint64_t stamp() const {
    return start_ns + static_cast<std::uint64_t>(tick_) * program_.pace.tick_ns;
  }

  bool counts_starting = true;  // a copy that has not reached MPI_Init, which can do nothing that counts, is one too
  bool of_the_dead = false;     // what is asked now was sent by an operator that has ended since
  int tick_ = 0;
  std::uint64_t superstep_ = 0;
  std::uint64_t start_ns = 0;

 private:
  std::vector<Pod*> pods_where(const std::function<bool(const Pod&)>& f);
  void pass_edge();
  void close_epoch(const std::vector<Pod*>& ranks);
  void advance_pod(Pod& pod);
  void stop(Pod& pod);
  void restart_for(Pod& seat, int down_for);
  void end_dump(Pod& source);
  void end_load(Pod& pod);
  void begin_save(Pod& pod) { pod.save_at = tick_ + random(program_.pace.dump); }
  void advance_save(Pod& pod);
  void share_blocks(Pod& pod, wire::SaveStatus& save);
  void keep_sets(const nlohmann::json& fields);
  void open_epochs();
  void begin_transfer(Pod& pod, const Range& takes) { pod.transfer_at = tick_ + random(takes); }
  void check_copies();

  ProgramOptions program_;
  std::mt19937_64 random_;
  // All ranks are sent the same plan: it is read once.
  std::shared_ptr<const nlohmann::json> plan_fields_;
  std::shared_ptr<const wire::EpochPlan> plan_;
  int next_edge_at_ = 0;
  std::uint64_t loaded_superstep_ = 0;
};

}  // namespace bsp::simulated
