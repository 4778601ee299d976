// What must be true of any set of claims, in an invented world where things are as claimed. A World has
// `multiply(cases, factor, path)`, `cases` by their names, and `found()`, which are its figures as evidence.
#pragma once

#include "claims/claim.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::claims {

// A change of the world that one condition does not survive.
struct spoiled {
  std::string id;
  std::size_t condition;
  std::string cases;  // expression
  double factor;
  std::string path = "value";
};

template <class World>
judgement judged(const std::vector<claim>& all, const std::string& id, const World& w) {
  const auto place = std::find_if(all.begin(), all.end(), [&](const claim& c) { return c.id == id; });
  EXPECT_NE(place, all.end()) << id;
  return judge(*place, w.found());
}

template <class World>
void expect_that_every_claim_holds(const std::vector<claim>& all, const World& w) {
  for (const claim& c : all) {
    const judgement j = judged(all, c.id, w);
    EXPECT_EQ(j.found, verdict::reproduced) << c.id << ": " << j.reason;
    for (const finding& f : j.findings) EXPECT_TRUE(f.holds) << c.id << ": " << f.of->what << " is " << f.value;
    EXPECT_EQ(j.findings.size(), c.conditions.size()) << c.id;
  }
}

template <class World>
void expect_that_each_change_fails(const std::vector<claim>& all, const std::vector<spoiled>& changes) {
  for (const spoiled& s : changes) {
    SCOPED_TRACE(s.id + " by " + s.cases);
    World w;
    ASSERT_GT(w.multiply(s.cases, s.factor, s.path), 0);
    const judgement j = judged(all, s.id, w);
    EXPECT_EQ(j.found, verdict::not_reproduced);
    ASSERT_GT(j.findings.size(), s.condition);
    EXPECT_FALSE(j.findings[s.condition].holds) << j.findings[s.condition].of->what;
  }
}

inline void expect_that_no_condition_is_left_untried(const std::vector<claim>& all,
                                                     const std::vector<spoiled>& changes) {
  std::set<std::pair<std::string, std::size_t>> tried;
  for (const spoiled& s : changes) tried.emplace(s.id, s.condition);
  for (const claim& c : all)
    for (std::size_t i = 0; i < c.conditions.size(); ++i)
      EXPECT_TRUE(tried.contains({c.id, i})) << c.id << ": " << c.conditions[i].what;
}

template <class World>
void expect_that_missing_cases_are_said(const std::vector<claim>& all) {
  for (const claim& c : all) {
    World w;
    w.cases.erase(cases_of(c).front());
    const judgement j = judged(all, c.id, w);
    EXPECT_EQ(j.found, verdict::not_measured) << c.id;
    EXPECT_NE(j.reason.find(cases_of(c).front()), std::string::npos) << c.id << ": " << j.reason;
  }
}

}  // namespace pmlab::claims
