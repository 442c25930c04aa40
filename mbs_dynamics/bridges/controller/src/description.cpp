// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "description.hpp"

#include <tinyxml2.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "guarded_robot.h"

namespace GUARDED_PACKAGE
{
namespace
{

/// Append the numbers in a text, as bytes.
void append_numbers(std::string & line, const char * text)
{
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const char * begin = word.c_str() + (word[0] == '+');
    double value = NAN;
    std::from_chars(begin, word.c_str() + word.size(), value);
    value += 0.0;  // makes 0 of -0
    char bytes[sizeof(double)];
    std::memcpy(bytes, &value, sizeof(double));
    line.append(bytes, sizeof(double));
  }
}

}  // namespace

unsigned long long description_digest(const std::string & urdf)
{
  tinyxml2::XMLDocument document;
  if (document.Parse(urdf.c_str()) != tinyxml2::XML_SUCCESS || !document.RootElement()) {
    throw std::runtime_error(std::string("robot_description is not XML: ") + document.ErrorStr());
  }
  std::vector<std::string> lines;
  const tinyxml2::XMLElement * element = document.RootElement()->FirstChildElement();
  for (; element != nullptr; element = element->NextSiblingElement()) {
    const std::string tag = element->Name();
    if (tag != "link" && tag != "joint") {
      continue;
    }
    const char * name = element->Attribute("name");
    std::string line = tag + '\0' + (name ? name : "") + '\0';
    for (const auto & row : guarded_described) {
      if (tag != row.element) {
        continue;
      }
      const tinyxml2::XMLElement * below = element;
      std::istringstream path(row.path);
      for (std::string part; below != nullptr && std::getline(path, part, '/');) {
        below = below->FirstChildElement(part.c_str());
      }
      const char * value = below ? below->Attribute(row.attribute) : nullptr;
      value = value ? value : row.otherwise;
      row.numbers ? append_numbers(line, value) : void(line += value);
      line += '\0';
    }
    lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  unsigned long long digest = 0xCBF29CE484222325ULL;  // FNV-1a, 64 bits
  for (const auto & line : lines) {
    for (const char byte : line) {
      digest = (digest ^ static_cast<unsigned char>(byte)) * 0x100000001B3ULL;
    }
  }
  return digest;
}

}  // namespace GUARDED_PACKAGE
