#include "sidecar/shim/messages/undelivered.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <ranges>
#include <set>
#include <vector>

#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/hidden_tags.h"
#include "sidecar/shim/messages/synchronous_sends.h"

namespace bsp::shim {
namespace {

constexpr std::uint64_t kPatienceNs = 3'000'000'000;
// That a rank takes at one gate, and MPI has no memory for yet. Two copies exist while they travel.
constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;
constexpr std::int64_t kPartBytes = std::int64_t{1} << 20;  // to one rank at a time
constexpr int kTokenTag = -kLargestTag - 1;
constexpr int kMatchedTag = -kLargestTag - 2;

using Bytes = std::vector<char>;

// A message that this rank has received for a program that hasn't.
struct Taken {
  MessageKey key;  // peer: the sender
  Bytes bytes;
};
std::vector<Taken> taken;
std::vector<Message*> matched;  // the first of `taken`, in the same order

// Noted before any rank takes a message. Afterwards MPI takes them for complete.
std::vector<Request*> synchronous;

struct SentAgain {
  std::shared_ptr<const Bytes> packed;  // holds it
  MPI_Request request = nullptr;
};
std::list<SentAgain> sent_again;  // and perhaps not received

std::vector<Comm*> all_comms() {
  std::vector<Comm*> all = comms.live();
  all.push_back(&world);
  all.push_back(&self);
  return all;
}

// The rank of a world rank among a communicator's peers; -1: none.
int peer_of(const Comm& comm, int world_rank) {
  const std::vector<int>& peers = comm.peers->world;
  const auto found = std::ranges::find(peers, world_rank);
  return found != peers.end() ? static_cast<int>(found - peers.begin()) : -1;
}

// `wanted` is a key or has wildcards. Whether there was such a message.
bool take_message(const MessageKey& wanted) {
  const MPI_Comm comm = wanted.comm->real;
  MPI_Status status{};
  int flag = 0;
  if (ob1::iprobe(wanted.peer, wanted.tag, comm, &flag, &status) != MPI_SUCCESS || !flag) return false;
  const std::size_t size = status._ucount;
  auto& [key, bytes] = taken.emplace_back(MessageKey{wanted.comm, status.MPI_SOURCE, status.MPI_TAG}, Bytes(size));
  must(ob1::recv(bytes.data(), static_cast<int>(size), pre.byte, key.peer, key.tag, comm),
       "receiving a message at a gate");
  count_received(world_rank(key.comm->peers, key.peer));
  return true;
}

void take_matched(Message& message) {
  auto& [key, bytes] = taken.emplace_back(MessageKey{message.comm, message.source, message.tag}, Bytes(message.bytes));
  must(real.Mrecv(bytes.data(), static_cast<int>(bytes.size()), pre.byte, &message.real, MPI_STATUS_IGNORE),
       "receiving a message at a gate");
  count_received(world_rank(message.peers, message.source));
}

// All that have arrived and that no receive waits for.
void take_messages() {
  matched = matched_messages.live();
  for (Message* message : matched) take_matched(*message);
  std::vector<MessageKey> wanted;
  for (const Comm* comm : all_comms()) wanted.emplace_back(comm, MPI_ANY_SOURCE, MPI_ANY_TAG);
  for (const Request* r = youngest_request(); r != nullptr; r = r->next)
    if (r->partitions != nullptr && !r->partitions->sending && r->comm != nullptr) wanted.push_back(r->key);
  for (const MessageKey& key : wanted)
    while (take_message(key)) {
    }
}

using Numbers = std::vector<std::int64_t>;  // one or more for each world rank

Numbers all_to_all(const Numbers& out) {
  Numbers in(out.size());
  const int each = static_cast<int>(out.size()) / state.size;
  must(real.Alltoall(out.data(), each, pre.int64, in.data(), each, pre.int64, private_world), "settling messages");
  return in;
}

std::int64_t highest(std::int64_t of_rank) {
  must(real.Allreduce(MPI_IN_PLACE, &of_rank, 1, pre.int64, pre.max, private_world), "settling messages");
  return of_rank;
}

// What the others have sent to this rank.
struct Incoming {
  std::vector<int> senders;        // of messages that this rank hasn't received
  std::int64_t pending_bytes = 0;  // of sends that haven't completed
};

Incoming find_incoming() {
  const auto ranks = static_cast<std::size_t>(state.size);
  Numbers out(2 * ranks);
  for (std::size_t i = 0; i < ranks; ++i)
    out[2 * i] = static_cast<std::int64_t>(counters.sent_to[i].load(std::memory_order_relaxed));
  for (const Request* r = youngest_request(); r != nullptr; r = r->next)
    if (r->send_to >= 0 && r->active && !r->completed)
      out[2 * static_cast<std::size_t>(r->send_to) + 1] += static_cast<std::int64_t>(r->bytes);
  const Numbers in = all_to_all(out);
  Incoming incoming;
  settle_receipt();
  for (std::size_t i = 0; i < ranks; ++i) {
    if (in[2 * i] != static_cast<std::int64_t>(counters.received_from[i].load(std::memory_order_relaxed)))
      incoming.senders.push_back(static_cast<int>(i));
    incoming.pending_bytes += in[2 * i + 1];
  }
  return incoming;
}

// Returns when all messages of these senders have arrived. Collective over all ranks.
void wait_for_messages(const std::vector<int>& senders) {
  Numbers asked(static_cast<std::size_t>(state.size));
  for (const int sender : senders) asked[static_cast<std::size_t>(sender)] = 1;
  const Numbers asking = all_to_all(asked);
  std::vector<MPI_Request> tokens;
  const auto for_each_comm_with = [](int rank, auto call) {
    for (const Comm* comm : all_comms())
      if (const int peer = peer_of(*comm, rank); peer >= 0) must(call(peer, comm->real), "exchanging tokens");
  };
  for (int rank = 0; rank < state.size; ++rank)
    if (asking[static_cast<std::size_t>(rank)] != 0)
      for_each_comm_with(rank, [&](int peer, MPI_Comm comm) {
        return ob1::isend(nullptr, 0, pre.byte, peer, kTokenTag, comm, &tokens.emplace_back());
      });
  for (const int sender : senders)
    for_each_comm_with(sender,
                       [](int peer, MPI_Comm comm) { return ob1::recv(nullptr, 0, pre.byte, peer, kTokenTag, comm); });
  must(real.Waitall(static_cast<int>(tokens.size()), tokens.data(), MPI_STATUSES_IGNORE), "exchanging tokens");
}

std::size_t requests_under_way() {
  std::size_t count = sent_again.size();
  for (const Request* r = youngest_request(); r != nullptr; r = r->next)
    if (r->active && !r->completed) ++count;
  return count;
}

// Returns when `is_over`, which tests this rank's requests, or when none has completed for a while.
template <class IsOver>
void wait_until(IsOver is_over) {
  std::size_t before = requests_under_way();
  for (std::uint64_t since = clock_ns(CLOCK_MONOTONIC); clock_ns(CLOCK_MONOTONIC) - since < kPatienceNs;) {
    if (is_over()) return;
    const std::size_t now = requests_under_way();
    if (now != before) since = clock_ns(CLOCK_MONOTONIC);
    before = now;
  }
}

void wait_for_requests() {
  wait_until([] { return pending_request().request == nullptr && !is_sending_again(); });
}

}  // namespace

void collect_sent_again() {
  std::erase_if(sent_again, [](SentAgain& message) {
    int done = 0;
    must(real.Test(&message.request, &done, MPI_STATUS_IGNORE), "sending a message again");
    return done != 0;
  });
}

bool is_sending_again() {
  collect_sent_again();
  return !sent_again.empty();
}

void wait_for_communicators() {
  wait_until([] { return !pending_request().makes_comm; });
}

std::string settle_messages(bool all_received) {
  synchronous = pending_synchronous();
  if (!all_received) {
    if (!ob1::is_used()) return " (it can't be carried by another pml than ob1)";
    const Incoming incoming = find_incoming();
    if (highest(incoming.pending_bytes) > kMostBytes) {
      wait_for_requests();  // receives may have been posted for them
      return incoming.pending_bytes > kMostBytes ? " (of more than " + std::to_string(kMostBytes >> 20) + " MiB)" : "";
    }
    wait_for_messages(incoming.senders);
    take_messages();
  }
  wait_for_requests();
  return "";
}

// --- Giving them back -----------------------------------------------------------------------------------
namespace {

// The header of a message on its way back.
struct Header {
  std::int64_t comm = 0;
  std::uint64_t bytes = 0;
  std::int32_t tag = 0;
  std::int32_t is_matched = 0;
};

constexpr std::int64_t kWorldId = -1;
constexpr std::int64_t kSelfId = -2;

std::int64_t id_of(const Comm* comm) { return comm == &world ? kWorldId : comm == &self ? kSelfId : comm->id; }

std::map<std::int64_t, Comm*> comms_by_id() {
  std::map<std::int64_t, Comm*> found;
  for (Comm* comm : all_comms()) found[id_of(comm)] = comm;
  return found;
}

using ByRank = std::vector<Bytes>;  // index: world rank

// What this rank has taken, by sender: headers, each with its bytes, which `taken` loses.
ByRank packed() {
  ByRank packed(static_cast<std::size_t>(state.size));
  for (std::size_t i = 0; i < taken.size(); ++i) {
    Taken& message = taken[i];
    const Header header{id_of(message.key.comm), message.bytes.size(), message.key.tag, i < matched.size() ? 1 : 0};
    Bytes& to = packed[static_cast<std::size_t>(world_rank(message.key.comm->peers, message.key.peer))];
    const auto* raw = reinterpret_cast<const char*>(&header);
    to.insert(to.end(), raw, raw + sizeof header);
    to.insert(to.end(), message.bytes.begin(), message.bytes.end());
    Bytes().swap(message.bytes);
  }
  return packed;
}

// Sends element i to rank i; returns what each rank has sent here. In parts, because MPI's counts are ints.
ByRank exchange(const ByRank& to) {
  const auto ranks = to.size();
  Numbers out;
  for (const Bytes& bytes : to) out.push_back(static_cast<std::int64_t>(bytes.size()));
  const Numbers in = all_to_all(out);
  const std::int64_t largest = highest(std::ranges::max(out));
  ByRank from(ranks);
  for (std::int64_t done = 0; done < largest; done += kPartBytes) {
    std::vector<int> sends(ranks), send_at(ranks), receives(ranks), receive_at(ranks);
    Bytes sent, received;
    for (std::size_t i = 0; i < ranks; ++i) {
      const auto part = [&](std::int64_t bytes) {
        return static_cast<int>(std::clamp<std::int64_t>(bytes - done, 0, kPartBytes));
      };
      sends[i] = part(out[i]), receives[i] = part(in[i]);
      send_at[i] = static_cast<int>(sent.size()), receive_at[i] = static_cast<int>(received.size());
      if (sends[i] != 0) sent.insert(sent.end(), to[i].begin() + done, to[i].begin() + done + sends[i]);
      received.resize(received.size() + static_cast<std::size_t>(receives[i]));
    }
    must(real.Alltoallv(sent.data(), sends.data(), send_at.data(), pre.byte, received.data(), receives.data(),
                        receive_at.data(), pre.byte, private_world),
         "giving messages back");
    for (std::size_t i = 0; i < ranks; ++i) {
      const auto begin = received.begin() + receive_at[i];
      from[i].insert(from[i].end(), begin, begin + receives[i]);
    }
  }
  return from;
}

// A message that has come back, to be sent to `key.peer`.
struct Returned {
  MessageKey key;
  const char* bytes;
  int size;
  bool is_matched;
};

// Those to `receiver`, a world rank.
std::vector<Returned> unpacked(const Bytes& packed, int receiver, const std::map<std::int64_t, Comm*>& by_id) {
  std::vector<Returned> messages;
  for (const char* at = packed.data(); at != packed.data() + packed.size();) {
    Header header;
    std::memcpy(&header, at, sizeof header);
    at += sizeof header;
    const Comm* comm = by_id.at(header.comm);
    messages.emplace_back(MessageKey{comm, peer_of(*comm, receiver), header.tag}, at, static_cast<int>(header.bytes),
                          header.is_matched != 0);
    at += header.bytes;
  }
  return messages;
}

// The synchronous send that each message is of, or nullptr. Those that the program has matched may be received in any order,
// so they have none: their sends have completed.
std::vector<Request*> owners(const std::vector<Returned>& messages) {
  std::map<MessageKey, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < messages.size(); ++i)
    if (!messages[i].is_matched) places[messages[i].key].push_back(i);
  std::vector<Request*> owners(messages.size(), nullptr);
  for (Request* request : synchronous) {
    const auto of_key = places.find(request->key);
    if (of_key == places.end()) continue;
    const std::uint64_t after = followers(*request);
    const std::size_t count = of_key->second.size();
    if (after < count) owners[of_key->second[count - 1 - after]] = request;
  }
  return owners;
}

// `packed` holds the message.
int send_again(const Returned& message, Request* owner, const std::shared_ptr<const Bytes>& packed) {
  const auto& [key, bytes, size, is_matched] = message;
  count_sent(world_rank(key.comm->peers, key.peer));
  if (owner == nullptr)
    return ob1::isend(bytes, size, pre.byte, key.peer, is_matched ? kMatchedTag : key.tag, key.comm->real,
                      &sent_again.emplace_back(packed).request);
  continue_synchronous(*owner);
  if (owner->persistent) return real.Start(&owner->real);
  owner->message = packed;
  return real.Issend(bytes, size, pre.byte, key.peer, key.tag, key.comm->real, &owner->real);
}

// In the order in which the program matched them: each is the first of its communicator and sender.
void match_again(Message& message) {
  for (int there = 0; !there;)
    must(ob1::improbe(message.source, kMatchedTag, message.comm->real, &there, &message.real),
         "waiting for a message sent again");
}

// The first one of each key that the program hasn't matched; the others follow in order.
void wait_for_arrival() {
  std::set<MessageKey> keys;
  for (const Taken& message : taken | std::views::drop(matched.size())) keys.insert(message.key);
  for (const MessageKey& key : keys)
    for (int there = 0; !there;)
      must(ob1::iprobe(key.peer, key.tag, key.comm->real, &there, MPI_STATUS_IGNORE),
           "waiting for a message sent again");
}

}  // namespace

void deliver_again() {
  const std::map<std::int64_t, Comm*> by_id = comms_by_id();
  ByRank back = exchange(packed());
  for (std::size_t rank = 0; rank < back.size(); ++rank) {
    const auto kept = std::make_shared<const Bytes>(std::move(back[rank]));
    const std::vector<Returned> messages = unpacked(*kept, static_cast<int>(rank), by_id);
    const std::vector<Request*> owner = owners(messages);
    for (std::size_t i = 0; i < messages.size(); ++i)
      must(send_again(messages[i], owner[i], kept), "sending a message again");
  }
  for (Message* message : matched) match_again(*message);
  wait_for_arrival();
  must(real.Barrier(private_world), "waiting for messages sent again");  // MPI sends only while it is called
  taken.clear();
  matched.clear();
  synchronous.clear();
}

}  // namespace bsp::shim
