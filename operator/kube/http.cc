#include "operator/kube/http.h"

#include <cpprest/http_client.h>
#include <openssl/ssl.h>
#include <pplx/threadpool.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <charconv>
#include <condition_variable>
#include <format>
#include <mutex>
#include <set>
#include <vector>

#include "base/core/log.h"
#include "operator/kube/credentials.h"
#include "operator/kube/http_tls.h"

namespace bsp::kube {
namespace {

namespace http = web::http;
using HttpClient = http::client::http_client;
constexpr std::size_t kMaxBody = 256u << 20;

template <class F>
void on_io_thread(F&& f) {
  boost::asio::post(crossplat::threadpool::shared_instance().service(), std::forward<F>(f));
}

thread_local bool is_io_thread = false;

void start_io_thread() {
  static std::once_flag once;
  std::call_once(once, [] {
    // Before the pool is created, so that OpenSSL is torn down after it: a thread's exit frees OpenSSL's data for it.
    OPENSSL_init_ssl(0, nullptr);
    try {
      crossplat::threadpool::initialize_with_threads(1);
      on_io_thread([] { is_io_thread = true; });
    } catch (const std::runtime_error&) {
      log_warning("cpprestsdk was in use before the API client, so its pool has more than one thread");
    }
  });
}

// In cpprestsdk only the message shows at which stage a request failed.
bool before_sending(std::string_view what) {
  return what.starts_with("Error resolving") || what.starts_with("Failed to resolve") ||
         what.starts_with("Failed to connect") || what.starts_with("Error in SSL") ||
         what.starts_with("Expected a 200 response from proxy");
}

}  // namespace

struct HttpStream::State : std::enable_shared_from_this<HttpStream::State> {
  std::string server;
  std::size_t limit = kMaxBody;                  // of the bytes not read yet
  pplx::cancellation_token_source cancellation;  // IO thread
  int sends = 0;                                 // IO thread

  std::mutex mutex;
  std::condition_variable changed;
  std::optional<HttpHead> head;
  std::string body;
  bool ended = false;
  std::optional<HttpFailure> failure;

  void fail_with(ErrorCode code, const std::string& message, bool sent = true, bool retryable = true) {
    {
      const std::lock_guard lock(mutex);
      if (!ended && !failure) failure = HttpFailure{{code, message, retryable}, sent};
    }
    changed.notify_all();
  }

  void fail_with(const std::exception_ptr& reason) {
    try {
      std::rethrow_exception(reason);
    } catch (const http::http_exception& e) {
      const bool timeout = e.error_code() == std::errc::timed_out;
      const bool sent = !before_sending(e.what());
      if (!timeout && std::string_view(e.what()).starts_with("Error in SSL")) {
        // Not retryable: we would reject the same certificate again.
        const std::string refusal = take_refusal();
        if (!refusal.empty())
          return fail_with(ErrorCode::kRefused, std::format("{}: its certificate was rejected: {}", server, refusal),
                           false,
                           /*retryable=*/false);
        return fail_with(ErrorCode::kUnavailable, server + ": the TLS handshake failed", false);
      }
      const std::string what = !timeout ? e.what() : sent ? "timed out waiting for an answer" : "timed out connecting";
      fail_with(timeout ? ErrorCode::kTimeout : ErrorCode::kUnavailable, std::format("{}: {}", server, what), sent);
    } catch (const std::exception& e) {
      fail_with(ErrorCode::kUnavailable, std::format("{}: {}", server, e.what()));
    }
  }

  void start(const std::shared_ptr<HttpClient>& client, const http::http_request& request) {
    on_io_thread([self = shared_from_this(), client, request]() mutable {
      try {
        client->request(request, self->cancellation.get_token()).then([self](const pplx::task<http::http_response>& t) {
          try {
            const http::http_response response = t.get();
            self->take_head(response);
            self->pump(response);
          } catch (...) {
            self->fail_with(std::current_exception());
          }
        });
      } catch (...) {
        self->fail_with(std::current_exception());
      }
    });
  }

  void take_head(const http::http_response& response) {
    HttpHead taken{response.status_code(), std::nullopt, sends > 1};
    if (const auto it = response.headers().find("Retry-After"); it != response.headers().end()) {
      int seconds = 0;  // no API server uses the other form, a date
      const std::string& text = it->second;
      if (std::from_chars(text.data(), text.data() + text.size(), seconds).ec == std::errc{} && seconds >= 0)
        taken.retry_after = std::chrono::seconds(std::min(seconds, 3600));
    }
    {
      const std::lock_guard lock(mutex);
      head = taken;
    }
    changed.notify_all();
  }

  // Waits for one byte, then takes everything that has arrived. (A read of n bytes would wait for all n.)
  void pump(const http::http_response& response) {
    auto buffer = response.body().streambuf();
    buffer.getc().then([self = shared_from_this(), buffer, response](const pplx::task<int>& next) mutable {
      try {
        next.get();
        std::string piece;
        unsigned char* block = nullptr;
        std::size_t size = 0;
        while (buffer.acquire(block, size) && size > 0) {
          piece.append(reinterpret_cast<const char*>(block), size);
          buffer.release(block, size);
        }
        if (piece.empty()) return self->finish(response);
        bool too_much = false;
        {
          const std::lock_guard lock(self->mutex);
          if (self->ended || self->failure) return;
          self->body += piece;
          too_much = self->body.size() > self->limit;
        }
        self->changed.notify_all();
        if (too_much) {
          self->fail_with(ErrorCode::kNoSpace, self->server + ": the answer is too large");
          return self->cancellation.cancel();
        }
        self->pump(response);
      } catch (...) {
        self->fail_with(std::current_exception());
      }
    });
  }

  // The body stream ends in the same way if the connection breaks; only content_ready() shows the difference.
  void finish(const http::http_response& response) {
    response.content_ready().then([self = shared_from_this()](const pplx::task<http::http_response>& t) {
      try {
        t.get();
        {
          const std::lock_guard lock(self->mutex);
          self->ended = true;
        }
        self->changed.notify_all();
      } catch (...) {
        self->fail_with(std::current_exception());
      }
    });
  }

  void cancel() {
    on_io_thread([self = shared_from_this()] { self->cancellation.cancel(); });
  }
};

HttpStream::HttpStream(std::shared_ptr<State> state) : state_(std::move(state)) {}
HttpStream::HttpStream(HttpStream&&) noexcept = default;
HttpStream& HttpStream::operator=(HttpStream&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

HttpStream::~HttpStream() {
  if (!state_) return;
  bool over = false;
  {
    const std::lock_guard lock(state_->mutex);
    over = state_->ended || state_->failure;
    if (!over) state_->failure = HttpFailure{{ErrorCode::kUnavailable, "cancelled", true}, true};
  }
  if (!over) state_->cancel();
}

std::expected<HttpHead, HttpFailure> HttpStream::head(SteadyTime deadline) {
  check(!is_io_thread, "cpprestsdk's thread (in a callback) must not wait for an answer that it has to deliver");
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_until(lock, deadline, [&] { return state_->head || state_->failure; });
  if (state_->head) return *state_->head;
  if (state_->failure) return std::unexpected(*state_->failure);
  return std::unexpected(
      HttpFailure{{ErrorCode::kTimeout, state_->server + ": timed out waiting for an answer", true}, true});
}

std::expected<std::string, HttpFailure> HttpStream::read(SteadyTime deadline) {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait_until(lock, deadline, [&] { return !state_->body.empty() || state_->ended || state_->failure; });
  if (!state_->body.empty()) return std::exchange(state_->body, {});
  if (state_->failure) return std::unexpected(*state_->failure);
  if (state_->ended) return std::string();
  return std::unexpected(HttpFailure{{ErrorCode::kTimeout, state_->server + ": the answer stalled", true}, true});
}

struct Http::Impl {
  Config config;
  HttpOptions options;
  Credentials credentials;

  std::mutex mutex;
  std::condition_variable closing;
  bool closed = false;
  TlsMaterial material;                           // of the two clients
  std::shared_ptr<HttpClient> requests, streams;  // they differ in how long they tolerate silence
  std::vector<std::weak_ptr<HttpStream::State>> open_requests, open_streams;

  Impl(Config c, HttpOptions o) : config(std::move(c)), options(std::move(o)), credentials(config) {}

  std::shared_ptr<HttpClient> make_client(std::chrono::milliseconds idle) {
    http::client::http_client_config settings;
    settings.set_timeout(idle);
    settings.set_max_redirects(0);
    settings.set_validate_certificates(!config.insecure_skip_tls_verify);
    const std::string host = config.tls_server_name.empty() ? host_of(config.server) : config.tls_server_name;
    settings.set_tlsext_sni_enabled(!is_address(host));
    if (!config.proxy_url.empty()) settings.set_proxy(web::web_proxy(web::uri(config.proxy_url)));
    settings.set_ssl_context_callback(
        [tls = material, host, skip = config.insecure_skip_tls_verify](boost::asio::ssl::context& context) {
          set_up_tls(context.native_handle(), tls, host, skip);
        });
    return std::make_shared<HttpClient>(web::uri(config.server), settings);
  }

  // New certificates need new connections.
  void renew_clients() {
    TlsMaterial now = credentials.tls();
    if (requests && now == material) return;
    material = std::move(now);
    requests = make_client(options.idle);
    streams = make_client(options.stream_idle);
  }

  std::shared_ptr<HttpStream::State> start(const HttpRequest& request, bool is_stream) {
    auto state = std::make_shared<HttpStream::State>();
    state->server = config.server;
    try {
      http::http_request message(request.method);
      message.set_request_uri(web::uri(request.target));
      http::http_headers& headers = message.headers();
      headers.add("Accept", "application/json");
      headers.add("User-Agent", options.user_agent);
      if (const std::string authorization = credentials.authorization(); !authorization.empty())
        headers.add("Authorization", authorization);
      // The library checks the server's certificate against this header.
      if (!config.tls_server_name.empty()) headers.add("Host", config.tls_server_name);
      if (!config.impersonate_user.empty()) headers.add("Impersonate-User", config.impersonate_user);
      for (const std::string& group : config.impersonate_groups) headers.add("Impersonate-Group", group);
      // Each attempt to send begins with a report of 0 bytes sent.
      message.set_progress_handler([state](http::message_direction::direction way, utility::size64_t bytes) {
        if (way == http::message_direction::upload && bytes == 0) ++state->sends;
      });
      if (!request.body.empty()) message.set_body(request.body, request.content_type);
      std::shared_ptr<HttpClient> client;
      {
        const std::lock_guard lock(mutex);
        if (closed) {
          state->fail_with(ErrorCode::kUnavailable, "the API client is closed", false);
          return state;
        }
        renew_clients();
        client = request.once ? make_client(options.idle) : is_stream ? streams : requests;
        auto& open = is_stream ? open_streams : open_requests;
        std::erase_if(open, [](const auto& weak) { return weak.expired(); });
        open.push_back(state);
      }
      state->start(client, message);
    } catch (const std::exception& e) {
      state->fail_with(ErrorCode::kFailed, std::format("{}: {}", config.server, e.what()), false);
    }
    return state;
  }

  static void end(std::vector<std::weak_ptr<HttpStream::State>>& open, const std::string& why) {
    for (const auto& weak : open)
      if (const auto state = weak.lock()) {
        state->fail_with(ErrorCode::kUnavailable, why);
        state->cancel();
      }
    open.clear();
  }
};

Http::Http(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Http::~Http() { close(); }

const Config& Http::config() const { return impl_->config; }

Result<std::unique_ptr<Http>> Http::create(const Config& config, const HttpOptions& options) {
  start_io_thread();
  auto impl = std::make_unique<Impl>(config, options);
  if (!web::uri::validate(config.server))
    return fail(ErrorCode::kInvalid, std::format("{}: server: \"{}\" is not a URL", config.source, config.server));
  BSP_CHECK_OK(check_tls(impl->credentials.tls()));
  return std::unique_ptr<Http>(new Http(std::move(impl)));
}

std::expected<HttpResponse, HttpFailure> Http::send(const HttpRequest& request, SteadyTime deadline) {
  for (bool again = false;; again = true) {
    HttpStream answer(impl_->start(request, false));
    auto head = answer.head(deadline);
    if (!head) return std::unexpected(head.error());
    HttpResponse response{*head, {}};
    for (;;) {
      auto piece = answer.read(deadline);
      if (!piece) return std::unexpected(piece.error());
      if (piece->empty()) break;
      response.body += *piece;
      if (response.body.size() > kMaxBody)
        return std::unexpected(HttpFailure{{ErrorCode::kNoSpace, "the answer is too large", false}, true});
    }
    // The token may have been replaced since we read it.
    if (head->status != 401 || again || !impl_->credentials.has_token_file()) return response;
    impl_->credentials.invalidate_token();
  }
}

HttpStream Http::stream(const HttpRequest& request) { return HttpStream(impl_->start(request, true)); }

void Http::end_streams() {
  const std::lock_guard lock(impl_->mutex);
  Impl::end(impl_->open_streams, "the server stopped answering");
}

void Http::close() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->closed = true;
    Impl::end(impl_->open_streams, "the API client is closed");
    Impl::end(impl_->open_requests, "the API client is closed");
  }
  impl_->closing.notify_all();
}

bool Http::sleep_until(SteadyTime time) {
  std::unique_lock lock(impl_->mutex);
  return !impl_->closing.wait_until(lock, time, [&] { return impl_->closed; });
}

std::string percent_encode(std::string_view text) {
  std::string encoded;
  for (const unsigned char c : text) {
    if (std::isalnum(c) || c == '-' || c == '.' || c == '_' || c == '~')
      encoded += static_cast<char>(c);
    else
      encoded += std::format("%{:02X}", c);
  }
  return encoded;
}

}  // namespace bsp::kube
