// An operator of a simulated world: the real shell of a job, caches and all, without threads. What shell.cc and
// controller.cc do with workers is done here in turns; it leads while its Candidate says so, and notices late that it no longer does.
#pragma once

#include <memory>
#include <string>

#include "operator/kube/leader.h"
#include "tests/swarm/store.h"

namespace bsp::simulation {

class World;

class Operator {
 public:
  Operator(World& world, int number);
  ~Operator();

  void run();  // one tick

  void die(int down_for);
  void sleep(int ticks);    // as a stopped process; it notices nothing of it
  void cut_off(int ticks);  // from all pods
  void lose_api(int ticks);
  void stall_watch(int ticks);
  [[nodiscard]] bool leads() const { return term_ != nullptr; }
  [[nodiscard]] bool is_cut_off() const;

 private:
  class Term;
  void compete();

  World& world_;
  const int number_;
  const std::string release_;
  int life_ = 0;
  int up_at_ = 0, awake_at_ = 0, cut_until_ = 0, api_silent_until_ = 0, watch_stalled_until_ = 0;
  int competes_at_ = 0, notices_at_ = 0;
  int seen_until_ = 0;  // by its watch
  std::unique_ptr<StoreClient> client_;
  std::unique_ptr<kube::Candidate> candidate_;
  std::unique_ptr<Term> term_;
};

}  // namespace bsp::simulation
