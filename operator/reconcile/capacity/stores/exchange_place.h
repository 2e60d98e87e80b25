// Where an exchange of loads between operators takes place.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace bsp::exchange {
class LinkGroup;
}

namespace bsp::reconcile {

// This operator's place among several that exchange loads. The group listens and has not been joined.
struct ExchangePlace {
  std::shared_ptr<exchange::LinkGroup> group;  // null: reservations are kept in an object
  std::vector<std::string> addresses;          // of its members
};

}  // namespace bsp::reconcile
