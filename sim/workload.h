// An application's demand on a platform, superstep by superstep: the simulator's other input.
//
//   Demand of superstep t:  instructions(i)     computed by rank i; 0 = it doesn't compute
//                           messages from→to    bytes, sent once the sender has finished computing
//   then a barrier.
//
// A workload is a pure description: a superstep's demand never depends on the mapping. Nothing here uses SimGrid.
// sim/applications has the workloads, selected by name: `lu:order=1000,cell=4`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/error.h"
#include "base/core/ids.h"

namespace bsp::sim {

struct Message {
  RankId from, to;   // different ranks
  double bytes = 0;  // > 0

  bool operator==(const Message&) const = default;
};

struct Demand {
  std::vector<double> instructions{};  // by rank, >= 0
  std::vector<Message> messages{};     // in the order in which ranks send and receive them

  bool operator==(const Demand&) const = default;
};

class Workload {
 public:
  virtual ~Workload() = default;
  [[nodiscard]] virtual std::string name() const = 0;  // for people: "lu, order 1000"
  [[nodiscard]] virtual std::uint32_t ranks() const = 0;
  [[nodiscard]] virtual std::uint64_t supersteps() const = 0;
  // The demand of superstep t, from 1 to supersteps(). `out` may hold an earlier one: overwrite all of it.
  virtual void demand(std::uint64_t t, Demand& out) const = 0;
  // M(i) in bytes after superstep t (t = 0: at the start).
  [[nodiscard]] virtual double memory_bytes(RankId i, std::uint64_t t) const = 0;
};

// --- Selection by name ---------------------------------------------------------------------------------------------

struct Parameter {
  std::string_view name;
  std::string_view value;    // the default; "" = required
  std::string_view meaning;  // with its unit
};

// The values of all of an application's parameters, given or default.
class Parameters {
 public:
  Parameters() = default;
  Parameters(std::string application, std::map<std::string, std::string> values)
      : application_(std::move(application)), values_(std::move(values)) {}

  [[nodiscard]] const std::string& text(const std::string& name) const { return values_.at(name); }
  // kInvalid names the parameter and its range.
  [[nodiscard]] Result<double> number(const std::string& name, double least, double most = 1e18) const;
  [[nodiscard]] Result<std::uint64_t> whole(const std::string& name, std::uint64_t least,
                                            std::uint64_t most = 1'000'000'000) const;

 private:
  std::string application_;
  std::map<std::string, std::string> values_;
};

struct Application {
  std::string_view name;     // "lattice-boltzmann"
  std::string_view summary;  // one line
  std::vector<Parameter> parameters;
  std::function<Result<std::unique_ptr<Workload>>(std::uint32_t ranks, const Parameters& parameters)> make;
};

// The applications with their parameters and defaults, for a command's help.
std::string describe(std::span<const Application> table);

// Creates "NAME[:key=value,…]" from the table (sim/applications: applications()). kInvalid names the mistake and the
// choices.
Result<std::unique_ptr<Workload>> make_workload(std::span<const Application> table, std::string_view choice,
                                                std::uint32_t ranks);

}  // namespace bsp::sim
