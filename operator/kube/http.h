// One HTTP/1.1 request at a time over kept-alive TLS connections (cpprestsdk), with deadlines.
//
// All of cpprestsdk runs on the one thread of its pool: its connections are not safe against a request that is
// started or cancelled on one thread while another handles its answer. Callers only post work and wait for what
// comes back, so no call outlives its deadline, whatever the other side does.
// Redirects are not followed: they would carry our credentials elsewhere.
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
  // On a connection of its own. The library repeats a request by itself when a kept-alive connection breaks
  // before the answer; one that must not be carried out twice can't use such a connection.
  bool once = false;
};

struct HttpHead {
  int status = 0;
  std::optional<std::chrono::milliseconds> retry_after;
  bool repeated = false;  // the library has sent the request more than once (see HttpRequest::once)
};

struct HttpResponse {
  HttpHead head;
  std::string body;
};

struct HttpFailure {
  Error error;
  bool sent = true;  // the server may have carried the request out
};

// The answer to one request, as it comes in. Destroying it cancels the request.
class HttpStream {
 public:
  struct State;
  explicit HttpStream(std::shared_ptr<State> state);
  ~HttpStream();
  HttpStream(HttpStream&&) noexcept;
  HttpStream& operator=(HttpStream&&) noexcept;

  std::expected<HttpHead, HttpFailure> head(SteadyTime deadline);
  // What has come in since the last read, at least one byte; "" at the end of a complete body. kTimeout.
  std::expected<std::string, HttpFailure> read(SteadyTime deadline);

 private:
  std::shared_ptr<State> state_;
};

struct HttpOptions {
  std::chrono::milliseconds idle = std::chrono::seconds(15);         // nothing moves while a request is under way
  std::chrono::milliseconds stream_idle = std::chrono::seconds(80);  // the same for streams
  std::string user_agent = "bsp-operator";
};

// Thread-safe.
class Http {
 public:
  // kInvalid if the configuration can't be used.
  static Result<std::unique_ptr<Http>> create(const Config& config, const HttpOptions& options = {});
  ~Http();

  std::expected<HttpResponse, HttpFailure> send(const HttpRequest& request, SteadyTime deadline);
  // For watches: the body is read as it comes.
  HttpStream stream(const HttpRequest& request);
  // Ends every stream with kUnavailable: for when the connection to the server turns out to be broken.
  void end_streams();
  // Ends everything; calls from now on fail with kUnavailable.
  void close();
  // Sleeps until then; false if close() came first.
  bool sleep_until(SteadyTime time);
  [[nodiscard]] const Config& config() const;

 private:
  struct Impl;
  explicit Http(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// For a path's segment or a query's value.
std::string percent_encode(std::string_view text);

}  // namespace bsp::kube
