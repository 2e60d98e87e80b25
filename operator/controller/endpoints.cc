#include "operator/controller/endpoints.h"

#include <cpprest/http_listener.h>

#include <format>

namespace bsp::controller {

namespace http = web::http;
using http::experimental::listener::http_listener;

struct Endpoints::Impl {
  http_listener listener;
  std::map<std::string, std::function<Page()>> pages;

  void answer(const http::http_request& request) const {
    const auto page = pages.find(request.relative_uri().path());
    http::http_response response(http::status_codes::NotFound);
    if (page != pages.end()) {
      const Page made = page->second();
      response.set_status_code(static_cast<http::status_code>(made.status));
      response.set_body(made.text, "text/plain; version=0.0.4; charset=utf-8");
    }
    // Whoever asked may be gone by now; an exception that nobody looks at would end the process.
    request.reply(response).then([](const pplx::task<void>& sent) {
      try {
        sent.get();
      } catch (const std::exception&) {
      }
    });
  }
};

Endpoints::Endpoints(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Result<std::unique_ptr<Endpoints>> Endpoints::open(const std::string& address,
                                                   std::map<std::string, std::function<Page()>> pages) {
  auto impl = std::make_unique<Impl>();
  impl->pages = std::move(pages);
  try {
    impl->listener = http_listener(web::uri("http://" + address));
    impl->listener.support(http::methods::GET,
                           [made = impl.get()](const http::http_request& request) { made->answer(request); });
    impl->listener.open().wait();
  } catch (const std::exception& e) {
    return fail(ErrorCode::kFailed, std::format("listening on {}: {}", address, e.what()));
  }
  return std::unique_ptr<Endpoints>(new Endpoints(std::move(impl)));
}

Endpoints::~Endpoints() {
  if (!impl_) return;
  try {
    impl_->listener.close().wait();
  } catch (const std::exception&) {
  }
}

}  // namespace bsp::controller
