// What the sidecar and bsp-init (PID 1 of the app container) say to each other.
//
// Transport: the unix SOCK_SEQPACKET socket names::kControlSocket. The sidecar listens, bsp-init
// connects and reconnects for as long as it lives. One message per packet, as text:
//
//   verb key=value key=value
//
// Space, '=', '%', control bytes and everything outside ASCII are %XX in keys and values, so a packet
// can be read in strace and a message may hold any text. Unknown keys are ignored, unknown verbs are
// answered by nothing: either end may be newer.
//
// Who keeps what: bsp-init alone knows the program's state and tells it whole in each `hello`, so a
// sidecar that was killed and restarted needs no memory of its own. Every request is idempotent.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/core/error.h"

namespace bsp::control {

inline constexpr std::size_t kMaxPacket = 32 * 1024;

// --- bsp-init -> sidecar ---------------------------------------------------------------------------
// hello  {protocol, mode=run|restore, uid, gid, pid, state, code, signal, message, migration}
//        First packet after each connect: the whole state. `state` is one of kState… below; pid is 0
//        while there is no program; code, signal, message as in `exited`; migration names the last
//        dump or restore that is under way or done.
// running        {pid}                  the program was started or continued
// stopped        {pid}                  its main process stopped (SIGSTOP); its output is drained
// exited         {code, signal, message}  it ended: exit code, or signal != 0; message says why it
//                                       could not be started or what is odd. Answer with `bye`.
// dumping        {migration, pid}       criu was started
// dumped         {migration, ns}        criu succeeded; all files were written to the capture socket
// dump-failed    {migration, message}   the program is still there, stopped
// restored       {migration, pid, ns}   the process is there, stopped
// restore-failed {migration, message}   nothing of it is left; bsp-init waits again
// discarded      {migration}            answer to discard: no copy of it is left here
// throttled      {ns}                   for how long the container's CPU limit has held it back in all; when it grows,
//                                       at most once a second
inline constexpr std::string_view kHello = "hello";
inline constexpr std::string_view kRunning = "running";
inline constexpr std::string_view kStopped = "stopped";
inline constexpr std::string_view kExited = "exited";
inline constexpr std::string_view kDumping = "dumping";
inline constexpr std::string_view kDumped = "dumped";
inline constexpr std::string_view kDumpFailed = "dump-failed";
inline constexpr std::string_view kRestored = "restored";
inline constexpr std::string_view kRestoreFailed = "restore-failed";
inline constexpr std::string_view kDiscarded = "discarded";
inline constexpr std::string_view kThrottled = "throttled";

// --- sidecar -> bsp-init ---------------------------------------------------------------------------
// dump     {migration}   the capture socket is open: dump the stopped program into it
// abandon  {migration}   give up a dump or restore under way: criu dies, answered by …-failed
// restore  {migration}   restore names::kImagesDir/<migration>, leave the process stopped
// continue {epoch}       SIGCONT. The ONLY way a stopped or restored program runs on.
// discard  {migration}   kill a restored copy that was never continued and wait for another
// kill     {reason?}     SIGKILL the program; answered by `exited`, whose message then ends with the reason
// bye      {}            `exited` was noted: bsp-init may end
// stay     {}            `exited` was noted, but the pod is needed yet: wait for `bye` once more as long
// quit     {code}        end now: kill whatever is left (job end, unused target)
// fresh    {ns}          this pod was certainly not cut off then, by the machine's steady clock (crds/fencing.h)
inline constexpr std::string_view kDump = "dump";
inline constexpr std::string_view kAbandon = "abandon";
inline constexpr std::string_view kRestore = "restore";
inline constexpr std::string_view kContinue = "continue";
inline constexpr std::string_view kDiscard = "discard";
inline constexpr std::string_view kKill = "kill";
inline constexpr std::string_view kBye = "bye";
inline constexpr std::string_view kStay = "stay";
inline constexpr std::string_view kQuit = "quit";
inline constexpr std::string_view kFresh = "fresh";

// --- hello.state -----------------------------------------------------------------------------------
inline constexpr std::string_view kStateWaiting = "waiting";  // --restore: no program yet
inline constexpr std::string_view kStateRunning = "running";
inline constexpr std::string_view kStateStopped = "stopped";  // stopped here, by itself (gate)
inline constexpr std::string_view kStateDumping = "dumping";  // stopped, criu at work
inline constexpr std::string_view kStateDumped = "dumped";    // stopped, hello.migration was dumped
inline constexpr std::string_view kStateRestoring = "restoring";
inline constexpr std::string_view kStateRestored = "restored";  // stopped, never continued here
inline constexpr std::string_view kStateExited = "exited";

struct Message {
  std::string verb;
  std::map<std::string, std::string, std::less<>> fields;

  // "" or fallback if the key is absent (or, for number, not a decimal).
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::int64_t number(std::string_view key, std::int64_t fallback = 0) const;

  bool operator==(const Message&) const = default;
};

std::string encode(const Message& message);
// kInvalid for an empty verb, a pair without '=', a broken escape or more than kMaxPacket bytes.
Result<Message> decode(std::string_view packet);

// One packet each. send: kUnavailable if the peer is gone (never SIGPIPE). receive: kUnavailable at
// end of file, kTimeout if nothing is there (non-blocking socket).
Result<void> send(int socket, const Message& message);
Result<Message> receive(int socket);

}  // namespace bsp::control
