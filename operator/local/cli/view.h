// How `local run` displays a running job: on a terminal the frame of `local top`, redrawn in place, elsewhere one line per second.
// Above it, once each: decisions with their reasons, moves with their phases, changes of the job's phase.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "crds/bspjob.h"
#include "crds/rankmigration.h"

namespace bsp::local {

class View {
 public:
  View(std::FILE* out, bool terminal) : out_(out), terminal_(terminal) {}
  ~View();

  // Call it whenever anything may have changed; it prints each change once.
  void update(const crds::BspJob& job, const std::vector<crds::RankMigration>& migrations);
  // Prints a line above the block.
  void say(const std::string& line);

 private:
  void erase_block();
  void draw_block(const crds::BspJob& job, const std::vector<crds::RankMigration>& migrations);

  std::FILE* out_;
  bool terminal_;
  std::size_t block_lines_ = 0;  // on the terminal now
  std::vector<std::string> block_;
  std::string phase_;
  Time decision_{};
  std::map<std::string, std::size_t> phases_shown_;  // of each migration
  std::map<std::string, bool> gain_shown_;
  std::chrono::steady_clock::time_point progress_{};
  std::optional<Superstep> superstep_;  // of the last plain line
};

// Also for `local describe`.
std::vector<std::string> decision_lines(const crds::Decision& decision);
std::string pause_line(const crds::PauseParts& pause);

}  // namespace bsp::local
