// Smart pointers for OpenSSL's objects: own(BIO_new(…), BIO_free).
#pragma once

#include <memory>

namespace bsp::net {

template <class T, class Free>
std::unique_ptr<T, Free> own(T* pointer, Free release) {
  return {pointer, release};
}

}  // namespace bsp::net
