#include "sidecar/shim/messages/matched_messages.h"

#include <algorithm>

#include "sidecar/shim/handles/errors_after.h"
#include "sidecar/shim/messages/counters.h"
#include "sidecar/shim/messages/interruptible.h"
#include "sidecar/shim/messages/requests.h"

namespace bsp::shim {

std::string matched_blocker() {
  const std::vector<Comm*> all = comms.live();
  const auto is_live = [&](const Comm* comm, std::uint64_t seq) {
    return comm == &world || comm == &self || (std::ranges::contains(all, comm) && comm->seq == seq);
  };
  for (const Message* message : matched_messages.live())
    if (!is_live(message->comm, message->comm_seq)) return "a message that was probed on a communicator since freed";
  return "";
}

}  // namespace bsp::shim

using namespace bsp::shim;  // NOLINT: this part of the file speaks MPI

namespace {

// Replaces MPI's handle by a virtual one.
void wrap_matched(MPI_Message* handle, const MPI_Status& status, MPI_Comm comm) {
  const Comm* of = comm_of(comm);
  if (of == nullptr || *handle == pre.message_null || *handle == pre.message_no_proc) return;
  Message* message = matched_messages.create(*handle);
  message->comm = of;
  message->comm_seq = of->seq;
  message->peers = of->peers;
  message->source = status.MPI_SOURCE;
  message->tag = status.MPI_TAG;
  message->bytes = status._ucount;
  *handle = reinterpret_cast<MPI_Message>(message);
}

Message* message_of(const MPI_Message* handle) { return handle != nullptr ? object_of<Message>(*handle) : nullptr; }

// MPI has received the message, or begun to.
void settle(Message* message, MPI_Message* handle) {
  if (message == nullptr || message->real != pre.message_null) return;
  matched_messages.destroy(message);
  *handle = pre.message_null;
}

}  // namespace

extern "C" {

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  Call call;
  if (is_interruptible())
    return poll_until([&](int* flag) { return MPI_Improbe(source, tag, comm, flag, message, status); });
  MPI_Status own{};
  const int rc = real.Mprobe(source, tag, to_real(comm), message, &own);
  if (rc != MPI_SUCCESS) return rc;
  put(status, own);
  wrap_matched(message, own, comm);
  return rc;
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
  Call call;
  MPI_Status own{};
  const int rc = real.Improbe(source, tag, to_real(comm), flag, message, &own);
  if (rc != MPI_SUCCESS || !*flag) return rc;
  put(status, own);
  wrap_matched(message, own, comm);
  return rc;
}

int MPI_Mrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  Call call;
  ErrorsAfter errors;
  Message* const matched = message_of(message);
  MPI_Status own{};
  const int rc = real.Mrecv(buf, count, to_real(type), matched != nullptr ? &matched->real : message, &own);
  if (matched != nullptr) own.MPI_TAG = matched->tag;  // MPI's may be hidden, after a gate
  if (matched != nullptr && consumed(rc)) received(matched->peers, own);
  settle(matched, message);
  put(status, own);
  return errors.raised(rc);
}

int MPI_Imrecv(void* buf, int count, MPI_Datatype type, MPI_Message* message, MPI_Request* request) {
  Call call;
  Message* const matched = message_of(message);
  const int rc = real.Imrecv(buf, count, to_real(type), matched != nullptr ? &matched->real : message, request);
  if (rc == MPI_SUCCESS) {
    Request* r = make_request(request, RequestKind::kReceive, "MPI_Imrecv", pre.comm_null);
    if (r != nullptr && matched != nullptr) r->peers = matched->peers, r->shown_tag = matched->tag;
  }
  settle(matched, message);
  return rc;
}

}  // extern "C"
