#include "operator/exchange/protocol.h"

#include <algorithm>
#include <array>

#include "operator/exchange/increments.h"
#include "operator/exchange/naive.h"
#include "operator/exchange/snapshot.h"

namespace bsp::exchange {
namespace {

constexpr std::array<std::string_view, 3> kMechanisms{"Naive", "Increments", "Snapshot"};

}  // namespace

std::string_view to_string(Mechanism mechanism) { return kMechanisms[static_cast<std::size_t>(mechanism)]; }

std::optional<Mechanism> mechanism_from(std::string_view name) {
  const auto found = std::ranges::find(kMechanisms, name);
  if (found == kMechanisms.end()) return std::nullopt;
  return static_cast<Mechanism>(found - kMechanisms.begin());
}

double View::total(std::uint32_t resource) const {
  double sum = 0;
  for (std::size_t i = resource; i < loads_.size(); i += resources_) sum += loads_[i];
  return sum;
}

void View::grow(std::uint32_t resources) {
  check(resources >= resources_, "the number of resources never shrinks");
  std::vector<double> loads(members() * std::size_t{resources});
  for (Member m = 0; m < members(); ++m)
    std::ranges::copy(row(m), loads.begin() + static_cast<std::ptrdiff_t>(m * std::size_t{resources}));
  loads_ = std::move(loads);
  resources_ = resources;
}

Protocol::Protocol(Config config) : config_(std::move(config)), view_(config_.members, config_.resources) {
  check(config_.self < config_.members, "self is a member of the group");
  check(config_.initial.empty() || config_.initial.size() == std::size_t{config_.members} * config_.resources,
        "initial has the loads of all members");
  check(config_.carried.empty() || config_.carried.size() == std::size_t{config_.members} * config_.resources,
        "carried has the loads of all members");
  const std::vector<double>& known = config_.initial.empty() ? config_.carried : config_.initial;
  for (Member m = 0; m < config_.members && !known.empty(); ++m)
    std::ranges::copy_n(known.begin() + m * config_.resources, config_.resources, view_.row(m).begin());
}

std::unique_ptr<Protocol> make_protocol(Mechanism mechanism, Config config) {
  switch (mechanism) {
    case Mechanism::kNaive:
      return std::make_unique<Naive>(std::move(config));
    case Mechanism::kIncrements:
      return std::make_unique<Increments>(std::move(config));
    case Mechanism::kSnapshot:
      return std::make_unique<Snapshot>(std::move(config));
  }
  check(false, "a known mechanism");
  return nullptr;
}

}  // namespace bsp::exchange
