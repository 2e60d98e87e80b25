// What an application asks of a platform, superstep by superstep: the simulator's other input.
//
//   Demand of superstep t:  instructions(i)     computed by rank i; 0 = it did not compute
//                           messages from→to    bytes, sent once the sender has computed
//   then a barrier.
//
// A workload is a pure description: the same superstep always asks for the same, whoever runs where. Nothing here knows
// SimGrid. sim/applications holds the workloads; they are chosen by name, `lu:order=1000,cell=4`.
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
  std::vector<Message> messages{};     // in the order in which a rank sends and receives them

  bool operator==(const Demand&) const = default;
};

class Workload {
 public:
  virtual ~Workload() = default;
  [[nodiscard]] virtual std::string name() const = 0;  // for people: "lu, order 1000"
  [[nodiscard]] virtual std::uint32_t ranks() const = 0;
  [[nodiscard]] virtual std::uint64_t supersteps() const = 0;
  // What superstep t, from 1 to supersteps(), asks for. `out` may hold an earlier superstep's: write all of it.
  virtual void demand(std::uint64_t t, Demand& out) const = 0;
  // M(i), bytes, as it is after superstep t (t = 0: at the start).
  [[nodiscard]] virtual double memory_bytes(RankId i, std::uint64_t t) const = 0;
};

// --- Chosen by name ------------------------------------------------------------------------------------------------

struct Parameter {
  std::string_view name;
  std::string_view value;    // if it is not given; "" = it must be
  std::string_view meaning;  // with its unit
};

// The parameters of one choice: every one that the application has, given or not.
class Parameters {
 public:
  Parameters() = default;
  Parameters(std::string application, std::map<std::string, std::string> values)
      : application_(std::move(application)), values_(std::move(values)) {}

  [[nodiscard]] const std::string& text(const std::string& name) const { return values_.at(name); }
  // kInvalid names the parameter and what it may be.
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

// Each with its parameters and what they are if not given, for a command's help.
std::string describe(std::span<const Application> table);

// "NAME[:key=value,…]" from the table (sim/applications: applications()). kInvalid names what is wrong and what there
// is.
Result<std::unique_ptr<Workload>> make_workload(std::span<const Application> table, std::string_view choice,
                                                std::uint32_t ranks);

}  // namespace bsp::sim
