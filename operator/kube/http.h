// One HTTP/1.1 request at a time over kept-alive TLS connections (cpprestsdk), with deadlines.
//
// All of cpprestsdk runs on one thread, because its connections aren't safe if one thread starts or cancels a request
// while another handles the answer. Callers post work to that thread and wait for the result, so no call outlives its
// deadline, whatever the server does.
// Redirects aren't followed: they would send our credentials elsewhere.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/core/error.h"
#include "operator/kube/config.h"

namespace bsp::kube {

using SteadyTime = std::chrono::steady_clock::time_point;

struct HttpRequest {
  std::string method = "GET";
  std::string target;  // path and query, encoded
  std::string body = {};
  std::string content_type = "application/json";
  // Uses a new connection. If a kept-alive connection breaks before the answer, the library repeats the request, so a
  // request that must not be carried out twice can't use one.
  bool once = false;
};

struct HttpHead {
  int status = 0;
  std::optional<std::chrono::milliseconds> retry_after;
  bool repeated = false;  // the library sent the request more than once (see HttpRequest::once)
};

struct HttpResponse {
  HttpHead head;
  std::string body;
};

struct HttpFailure {
  Error error;
  bool sent = true;  // the server may have carried the request out
};

// The answer to one request, read as it arrives. Destroying it cancels the request.
class HttpStream {
 public:
  struct State;
  explicit HttpStream(std::shared_ptr<State> state);
  ~HttpStream();
  HttpStream(HttpStream&&) noexcept;
  HttpStream& operator=(HttpStream&&) noexcept;

  std::expected<HttpHead, HttpFailure> head(SteadyTime deadline);
  // What has arrived since the last read, at least one byte; "" at the end of a complete body. kTimeout.
  std::expected<std::string, HttpFailure> read(SteadyTime deadline);

 private:
  std::shared_ptr<State> state_;
};

struct HttpOptions {
  std::chrono::milliseconds idle = std::chrono::seconds(15);         // longest silence during a request
  std::chrono::milliseconds stream_idle = std::chrono::seconds(80);  // and during a stream
  std::string user_agent = "bsp-operator";
};

// Thread-safe.
class Http {
 public:
  // kInvalid if the configuration can't be used.
  static Result<std::unique_ptr<Http>> create(const Config& config, const HttpOptions& options = {});
  ~Http();

  std::expected<HttpResponse, HttpFailure> send(const HttpRequest& request, SteadyTime deadline);
  // For watches: reads the body as it arrives.
  HttpStream stream(const HttpRequest& request);
  // Ends every stream with kUnavailable, when the connection to the server turns out to be broken.
  void end_streams();
  // Ends everything; later calls fail with kUnavailable.
  void close();
  // Returns false if close() is called before `time`.
  bool sleep_until(SteadyTime time);
  [[nodiscard]] const Config& config() const;

 private:
  struct Impl;
  explicit Http(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Encodes a path segment or a query value.
std::string percent_encode(std::string_view text);

}  // namespace bsp::kube
