#include "tests/swarm/network.h"

#include <algorithm>

#include "tests/swarm/world.h"

namespace bsp::simulation {

void Mail::deliver(int now) {
  while (!under_way_.empty() && under_way_.begin()->first.first <= now) {
    auto first = under_way_.extract(under_way_.begin());
    first.mapped()();
  }
}

std::uint64_t Transport::connect(const net::Peer&) { return world_.mail().connect(); }

void Transport::send(std::uint64_t connection, const net::Peer& peer, std::string_view verb, nlohmann::json fields,
                     std::string, Answered answered) {
  const Swarm& swarm = world_.swarm();
  if ((*cut_)() || world_.chance(swarm.loss)) return;
  int& last = last_at_[connection];
  last = std::max(last, world_.tick() + world_.draw(0, 1));
  if (world_.chance(swarm.late)) last += world_.draw(1, swarm.late_by);
  auto reply = [&world = world_, inbox = std::weak_ptr(inbox_), cut = cut_,
                answered = std::move(answered)](Result<nlohmann::json> result) mutable {
    if (world.chance(world.swarm().loss)) return;
    world.mail().send(world.tick() + world.draw(0, 1), [inbox, cut, result = std::move(result),
                                                        answered = std::move(answered)]() mutable {
      const auto box = inbox.lock();
      if (!box || (*cut)()) return;
      box->push_back([result = std::move(result), answered = std::move(answered)]() mutable {
        answered(result.transform([](nlohmann::json& header) { return net::Answer{std::move(header), {}}; }));
      });
    });
  };
  // The first copy of a message that its sender has repeated over a new connection: it comes when the old one lets it go.
  if (world_.chance(swarm.again))
    world_.mail().send(last + world_.draw(5, swarm.again_by),
                       [&world = world_, node = node_, peer, verb = std::string(verb), fields] {
                         world.arrive(node, peer, verb, fields, [](const Result<nlohmann::json>&) {});
                       });
  world_.mail().send(
      last, [&world = world_, node = node_, peer, verb = std::string(verb), fields = std::move(fields),
             reply = std::move(reply)]() mutable { world.arrive(node, peer, verb, fields, std::move(reply)); });
}

void Transport::take_in() {
  for (auto& arrived : std::exchange(*inbox_, {})) arrived();
}

}  // namespace bsp::simulation
