// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#ifndef DESCRIPTION_HPP_
#define DESCRIPTION_HPP_

#include <string>

namespace GUARDED_PACKAGE
{

/// Digest of what the period depends on in a URDF. Throws std::runtime_error if it is not XML.
unsigned long long description_digest(const std::string & urdf);

}  // namespace GUARDED_PACKAGE

#endif  // DESCRIPTION_HPP_
