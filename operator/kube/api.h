// Requests to the API server for the rest of this directory: retries failures that may pass, and returns a refusal as
// an Error in the server's own words.
//
// Until the call's deadline, it retries any request after 429 and 503 (the server did nothing). It retries after other
// failures (500, 502, 504, a broken or silent connection) too, because nearly all our requests are safe to repeat:
// reads, writes of one version of an object, deletions, creations under a given name. The exception is a creation whose
// name the server generates. The pause before a retry is what Retry-After asks for, otherwise 0.1 s, doubled up to 5 s.
// Both have jitter, so that clients that failed together don't retry together.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube/http.h"

namespace bsp::kube {

struct ApiOptions {
  std::chrono::milliseconds call = std::chrono::seconds(30);     // deadline of a call with all its attempts
  std::chrono::milliseconds attempt = std::chrono::seconds(10);  // deadline of one attempt
  std::chrono::milliseconds first_pause = std::chrono::milliseconds(100);
  std::chrono::milliseconds last_pause = std::chrono::seconds(5);
};

// A Backoff (base/core) times a random factor between 0.5 and 1.5, so that clients do not return together. Thread-safe.
std::chrono::milliseconds backoff(unsigned failures, std::chrono::milliseconds first, std::chrono::milliseconds last);
// `pause`, lengthened at random by up to half.
std::chrono::milliseconds jittered(std::chrono::milliseconds pause);

// Converts a metav1.Status. `status` is the HTTP status code.
Error error_of(int status, const std::string& body);

struct Answer {
  int status = 0;
  std::string body;
  bool repeated = false;  // the server may have carried out an earlier attempt
  [[nodiscard]] bool ok() const { return status >= 200 && status < 300; }
};

// Thread-safe.
class Api {
 public:
  Api(Http& http, const ApiOptions& options) : http_(http), options_(options) {}

  // The server's last answer, whatever its status; an error if none came in time.
  Result<Answer> send(const HttpRequest& request, bool repeatable = true);
  // The same, but a status other than 2xx is an error too.
  Result<Answer> call(const HttpRequest& request, bool repeatable = true);

  [[nodiscard]] Http& http() { return http_; }
  [[nodiscard]] const ApiOptions& options() const { return options_; }
  // Number of requests sent since the start, for measurements.
  [[nodiscard]] std::uint64_t requests() const { return requests_; }
  void count_request() { ++requests_; }

 private:
  Http& http_;
  ApiOptions options_;
  std::atomic<std::uint64_t> requests_ = 0;
};

// Parses one object. Drops metadata.managedFields, often half of an object, while parsing, and replaces anything nested
// more than 100 levels deep by a string. kFailed if the text isn't an object.
Result<nlohmann::json> parse_object(std::string_view text, const std::string& what);

}  // namespace bsp::kube
