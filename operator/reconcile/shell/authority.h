// The seed from which the CA of every job is derived. It lies in one Secret in the operator's own namespace.
//
// So no key that signs lies where a tenant could mount it, the operator reads no Secret but this one, and a CA's
// age does not matter: each leader makes its certificate again, and what was signed under the former one stays valid.
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "operator/kinds.h"

namespace bsp::reconcile {

class Authority {
 public:
  Authority(kube::Client& client, std::string name_space, std::string name,
            std::chrono::milliseconds interval = std::chrono::minutes(1));

  // Read once, and made where there is none or none that can be read: jobs that run then get certificates of the new one.
  Result<std::string> seed();
  // As it is stored now; nullopt: there is none. Of replicas that don't lead: only the leader makes one and puts it back.
  Result<std::optional<std::string>> stored();
  // Of clusters with the same seed each has another: the uid of its namespace kube-system. Read once.
  Result<std::string> cluster();
  // Puts the Secret back if it was deleted or overwritten since: the next leader needs it. Asks once in an interval.
  void keep();

 private:
  // The one that is stored then: this one if it is in use, else one that can be read goes before it.
  [[nodiscard]] Result<std::string> store(const std::string& seed, bool in_use);

  kube::Client& client_;
  const kube::Key at_;
  const std::chrono::milliseconds interval_;
  std::mutex mutex_;            // of those below
  std::string seed_, cluster_;  // "" until they have been read
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace bsp::reconcile
