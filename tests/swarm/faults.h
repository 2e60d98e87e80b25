// What happens to a simulated world: moves by hand, and faults of the kinds that its swarm has drawn.
#pragma once

#include <cstdint>
#include <string>

#include "tests/swarm/world.h"

namespace bsp::simulation {

class Faults {
 public:
  explicit Faults(World& world) : world_(world) {}

  void strike();  // once a tick
  [[nodiscard]] int struck() const { return struck_; }
  [[nodiscard]] std::uint32_t moved() const;

 private:
  void ask_for_move();
  void strike(Fault fault);
  void make_unreadable();
  void make_readable();
  void cordon(bool on);
  void restore_store(int tick);
  void heal();
  Running* any_pod();
  Operator* any_operator();

  World& world_;
  int struck_ = 0, migrations_ = 0;
  nlohmann::json readable_;  // the internal status that somebody has overwritten
  std::uint64_t made_unreadable_ = 0;
  int readable_at_ = 0, uncordon_at_ = 0;
  std::string cordoned_;
  bool healed_ = false, restored_ = false;
};

}  // namespace bsp::simulation
