// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0
//
// The period in C against that in Python, on test vectors, and its tables.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "description.hpp"
#include "guarded_period.h"
#include "guarded_robot.h"
#include "words.hpp"

namespace GUARDED_PACKAGE
{

const std::string kFolder = PACKAGE_FOLDER;

TEST(Period, IsThatInPython)
{
  std::ifstream file(kFolder + "/test/vectors.txt");
  constexpr std::size_t kRequest = sizeof(guarded_Request) / sizeof(double);
  constexpr std::size_t kInputs = kRequest + sizeof(guarded_Sample) / sizeof(double);
  guarded_State state = guarded_initial, next;
  guarded_Output output;
  guarded_Verdict verdict;
  std::string fault, found;
  std::ifstream sentence(kFolder + "/test/fault.txt");
  std::getline(sentence, fault);
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    std::vector<double> row;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      row.push_back(std::stod(word));
    }
    ASSERT_EQ(row.size(), kInputs + 2 + GUARDED_JOINTS);
    guarded_Request request;
    guarded_Sample sample;
    std::memcpy(&request, row.data(), sizeof(request));
    std::memcpy(&sample, row.data() + kRequest, sizeof(sample));
    guarded_period(&state, &sample, &request, &guarded_settings, &next, &output, &verdict);
    state = next;
    const double * expected = row.data() + kInputs;
    EXPECT_EQ(state.mode, expected[0]) << "period " << rows;
    EXPECT_EQ(state.fault, expected[1]) << "period " << rows;
    for (int j = 0; j < GUARDED_JOINTS; ++j) {
      EXPECT_NEAR(output.torque[j], expected[2 + j], 1e-9 * (1.0 + guarded_settings.effort[j]));
    }
    found = found.empty() ? fault_of(state) : found;
  }
  EXPECT_GT(rows, 100);
  EXPECT_EQ(found, fault);
  EXPECT_NE(found, "");
}

TEST(Period, NothingIsFoundBeforeTheFirst)
{
  EXPECT_TRUE(problems(nothing_found(), guarded_initial).empty());
}

TEST(Description, HasTheDigestOfThisPackage)
{
  std::ifstream file(kFolder + "/urdf/mock.urdf");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(description_digest(text.str()), GUARDED_DESCRIPTION);
  std::string other = text.str();
  other.replace(other.find("<mass"), 5, "<mess");
  EXPECT_NE(description_digest(other), GUARDED_DESCRIPTION);
}

}  // namespace GUARDED_PACKAGE
