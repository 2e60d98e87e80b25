#include "sidecar/shim/messages/synchronous_sends.h"

#include <map>

namespace bsp::shim {

std::atomic<int> synchronous_under_way{0};

namespace {
// Messages of each key since the oldest synchronous send under way began. Protected by the list's lock.
std::map<MessageKey, std::uint64_t> numbers;
}  // namespace

void number_message(const MessageKey& key) {
  RequestsLock guard;
  ++numbers[key];
}

void begin_synchronous(Request& request) {
  RequestsLock guard;
  if (synchronous_under_way.fetch_add(1) == 0) numbers.clear();
  request.number = numbers[request.key];
}

void end_synchronous() { synchronous_under_way.fetch_sub(1); }

void continue_synchronous(Request& request) {
  synchronous_under_way.fetch_add(1);
  request.completed = false;
}

std::vector<Request*> pending_synchronous() {
  std::vector<Request*> pending;
  for (Request* r = youngest_request(); r != nullptr; r = r->next)
    if (r->synchronous && r->active && !r->completed && !r->orphan) pending.push_back(r);
  return pending;
}

std::uint64_t followers(const Request& request) { return numbers[request.key] - request.number; }

}  // namespace bsp::shim
