// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#ifndef LATEST_HPP_
#define LATEST_HPP_

#include <array>
#include <atomic>

/// The latest value of one writer, for one reader. Neither waits for the other.
///
/// Of three slots, one belongs to the writer, one to the reader, and one is exchanged.
template <class T>
class Latest
{
public:
  void write(const T & value)
  {
    next() = value;
    send();
  }

  /// The slot of the writer, to be filled before it is sent. It holds an older value.
  T & next() { return slots_[back_]; }

  void send() { back_ = middle_.exchange(back_ | kNew, std::memory_order_acq_rel) & ~kNew; }

  /// Assign the latest value, and return true, if there is one that was not read before.
  bool read(T & value)
  {
    if (!(middle_.load(std::memory_order_relaxed) & kNew)) {
      return false;
    }
    front_ = middle_.exchange(front_, std::memory_order_acq_rel) & ~kNew;
    value = slots_[front_];
    return true;
  }

private:
  static constexpr unsigned kNew = 4;
  std::array<T, 3> slots_{};
  unsigned back_ = 0;
  unsigned front_ = 1;
  std::atomic<unsigned> middle_{2};
};

#endif  // LATEST_HPP_
