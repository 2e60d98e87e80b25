#include "operator/reconcile/shell/links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace bsp::reconcile {
namespace {

using testing::ElementsAre;

TEST(FirstContacts, SoManyAtOnceAndTheOthersInTheirOrder) {
  FirstContacts contacts(2);
  std::vector<int> begun;
  const auto look = [&](int who) {
    contacts.begin([&begun, who] {
      begun.push_back(who);
      return true;
    });
  };
  for (const int who : {1, 2, 3, 4}) look(who);
  EXPECT_THAT(begun, ElementsAre(1, 2));
  contacts.end();
  EXPECT_THAT(begun, ElementsAre(1, 2, 3));
  contacts.end();
  contacts.end();
  EXPECT_THAT(begun, ElementsAre(1, 2, 3, 4));
  look(5);
  EXPECT_THAT(begun, ElementsAre(1, 2, 3, 4, 5)) << "there was room for another one";
}

TEST(FirstContacts, WhoIsNotWantedAnyMoreTakesNobodysPlace) {
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
