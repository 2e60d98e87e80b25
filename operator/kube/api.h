// Requests to the API server as the rest of this directory makes them: tried again while that makes sense,
// and a refusal told as an Error in the server's own words.
//
// Tried again, until the call's deadline: 429 and 503 (the server did nothing) for every request; other
// failures (500, 502, 504, a broken or silent connection) too, because every request of ours may be repeated:
// reads, writes of one version of an object, a deletion, a creation under a given name. Only a creation whose
// name the server makes is not. Between two tries lies what Retry-After asks for, else 0.1 s, doubled up to
// 5 s; both vary at random, so that clients that failed together do not come back together.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube/http.h"

namespace bsp::kube {

struct ApiOptions {
  std::chrono::milliseconds call = std::chrono::seconds(30);     // with all its tries
  std::chrono::milliseconds attempt = std::chrono::seconds(10);  // one of them
  std::chrono::milliseconds first_pause = std::chrono::milliseconds(100);
  std::chrono::milliseconds last_pause = std::chrono::seconds(5);
};

// Doubles from first to last; each pause is between half and one and a half of that. Thread-safe.
std::chrono::milliseconds backoff(unsigned failures, std::chrono::milliseconds first, std::chrono::milliseconds last);
// `pause` and up to half as much again.
std::chrono::milliseconds jittered(std::chrono::milliseconds pause);

// What a metav1.Status says. `status` is HTTP's code.
Error error_of(int status, const std::string& body);

struct Answer {
  int status = 0;
  std::string body;
  bool repeated = false;  // an earlier try may have been carried out
  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
};

// Thread-safe.
class Api {
 public:
  Api(Http& http, const ApiOptions& options) : http_(http), options_(options) {}

  // The server's last answer, good or bad; an error if there was none in time.
  Result<Answer> send(const HttpRequest& request, bool repeatable = true);
  // The same; an answer that is not good is an error too.
  Result<Answer> call(const HttpRequest& request, bool repeatable = true);

  [[nodiscard]] Http& http() { return http_; }
  [[nodiscard]] const ApiOptions& options() const { return options_; }
  // Requests sent since the start, for measurements.
  [[nodiscard]] std::uint64_t requests() const { return requests_; }
  void count_request() { ++requests_; }

 private:
  Http& http_;
  ApiOptions options_;
  std::atomic<std::uint64_t> requests_ = 0;
};

// Parses one object; metadata.managedFields, often half of it, is left out while parsing, and what is nested more than
// 100 levels deep is replaced by a text. kFailed if it is none.
Result<nlohmann::json> parse_object(std::string_view text, const std::string& what);

}  // namespace bsp::kube
