#include "operator/reconcile/shell/links/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bsp::reconcile {
namespace {

using testing::ElementsAre;

TEST(FirstContacts, AreLimitedAndTheOthersQueued) {
  FirstContacts contacts(2);
  std::vector<int> begun;
  const auto contact = [&](int who) {
    contacts.begin([&begun, who] {
      begun.push_back(who);
      return true;
    });
  };
  for (const int who : {1, 2, 3, 4}) contact(who);
  EXPECT_THAT(begun, ElementsAre(1, 2));
  contacts.end();
  EXPECT_THAT(begun, ElementsAre(1, 2, 3));
  contacts.end();
  contacts.end();
  EXPECT_THAT(begun, ElementsAre(1, 2, 3, 4));
  contact(5);
  EXPECT_THAT(begun, ElementsAre(1, 2, 3, 4, 5)) << "there was a place for another one";
}

TEST(FirstContacts, ACancelledOneTakesNoPlace) {
  FirstContacts contacts(1);
  int begun = 0;
  const auto wanted = [&] { return ++begun > 0; };
  contacts.begin(wanted);
  contacts.begin([] { return false; });
  contacts.begin(wanted);
  EXPECT_EQ(begun, 1);
  contacts.end();
  EXPECT_EQ(begun, 2);
}

}  // namespace
}  // namespace bsp::reconcile
