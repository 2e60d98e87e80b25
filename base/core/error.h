// The environment's failures are values; a broken invariant ends the process, or the unit of work (guard.h) that met it.
//
// Everything outside this process (files, sockets, CRIU, Podman, user input) fails by returning
// an Error inside a Result. check() is only for what can't happen unless our own code is wrong.
#pragma once

#include <expected>
#include <format>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace bsp {

enum class ErrorCode {
  kInvalid,      // the input is wrong; the message names the field and the remedy
  kNotFound,     // the thing named does not exist
  kConflict,     // it changed meanwhile (optimistic locking), or exists already
  kUnavailable,  // the other side can't be reached now
  kTimeout,      // no answer within the limit
  kRefused,      // the other side answered no
  kUntrusted,    // one side of a link does not accept the other's certificate; renewed ones may be accepted
  kNoSpace,      // disk, tmpfs or memory is full
  kFailed,       // a tool or system call failed
};

struct Error {
  ErrorCode code = ErrorCode::kFailed;
  std::string message;     // one sentence, ready for a user
  bool retryable = false;  // the same call may succeed later

  // The same error, told from further out: "restoring rank 3: no space left on /run/bsp".
  [[nodiscard]] Error in(std::string_view context) const {
    return {code, std::format("{}: {}", context, message), retryable};
  }
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(ErrorCode code, std::string message, bool retryable = false) {
  return std::unexpected(Error{code, std::move(message), retryable});
}

// kFailed (or kNoSpace, kNotFound, … where errno says so) with strerror(errno) appended.
std::unexpected<Error> fail_errno(std::string_view what);
std::unexpected<Error> fail_errno(std::string_view what, int error_number);

// The name used on the wire and in logs: "Invalid", "NotFound", …
std::string_view to_string(ErrorCode code);
ErrorCode error_code_from(std::string_view name);  // kFailed if unknown

// Ends the process, or throws where checks do (guard.h).
[[noreturn]] void break_invariant(std::string_view what, std::source_location where);

inline void check(bool ok, std::string_view what, std::source_location where = std::source_location::current()) {
  if (ok) [[likely]]
    return;
  break_invariant(what, where);
}

}  // namespace bsp

// Unwraps a Result into a new variable, or returns its error from the enclosing function.
#define BSP_TRY_CONCAT_(a, b) a##b
#define BSP_TRY_NAME_(a, b) BSP_TRY_CONCAT_(a, b)
#define BSP_TRY(decl, expr)                                                                                           \
  auto BSP_TRY_NAME_(result_, __LINE__) = (expr);                                                                     \
  if (!BSP_TRY_NAME_(result_, __LINE__)) return std::unexpected(std::move(BSP_TRY_NAME_(result_, __LINE__)).error()); \
  decl = std::move(*BSP_TRY_NAME_(result_, __LINE__))

// The same for Result<void>.
#define BSP_CHECK_OK(expr)                                                                   \
  do {                                                                                       \
    if (auto result_ = (expr); !result_) return std::unexpected(std::move(result_).error()); \
  } while (0)
