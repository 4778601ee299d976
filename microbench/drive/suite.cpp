#include "microbench/drive/suite.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/support/case_filter.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace pmlab::drive {
namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;

drive_case one(order where, access what, std::uint64_t bytes, unsigned depth, durability until = durability::none) {
  std::string name = fmt::format("{}-{}/bytes={}/depth={}", to_string(where), to_string(what), bytes, depth);
  if (until != durability::none) name += fmt::format("/until={}", to_string(until));
  return {.name = std::move(name),
          .claims = {},
          .what = what,
          .where = where,
          .until = until,
          .bytes = bytes,
          .depth = depth};
}

// The peaks that a claim compares with a memory's: long requests in a row, many at once.
void add_peaks(suite& s) {
  for (const access what : {access::read, access::write}) {
    drive_case c = one(order::sequential, what, mib, 32);
    c.name = fmt::format("drive-{}", to_string(what));
    c.claims = {"M22"};
    c.beside_fio = true;
    s.cases.push_back(std::move(c));
  }
}

// Reads first: writes change the state of a drive.
void add_datasheet(suite& s, bool beside_fio) {
  for (const access what : {access::read, access::write})
    for (const unsigned depth : {1U, 32U}) {
      s.cases.push_back(one(order::random, what, 4 * kib, depth));
      s.cases.back().beside_fio = beside_fio && depth == 32;
    }
  for (const durability until : {durability::flush, durability::durable})
    s.cases.push_back(one(order::random, access::write, 4 * kib, 1, until));
}

suite quick() {
  suite s{.name = "quick",
          .title = "the figures that datasheets have",
          .seconds = 0.15,
          .most_repetitions = 3,
          .cases = {}};
  add_peaks(s);
  add_datasheet(s, true);
  return s;
}

// Without the cases that are there.
void add(suite& s, drive_case c) {
  if (std::ranges::none_of(s.cases, [&](const drive_case& other) { return other.name == c.name; }))
    s.cases.push_back(std::move(c));
}

suite drive() {
  suite s{.name = "drive", .title = "sizes, orders, depths and flushes", .cases = {}};
  add_peaks(s);
  for (const access what : {access::read, access::write}) {
    for (const unsigned depth : {1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U, 256U}) {
      drive_case c = one(order::random, what, 4 * kib, depth);
      c.beside_fio = depth == 1 || depth == 32;
      add(s, std::move(c));
    }
    for (const order where : {order::sequential, order::random})
      for (const std::uint64_t bytes : {std::uint64_t{512}, 4 * kib, 16 * kib, 64 * kib, 256 * kib, mib})
        for (const unsigned depth : {1U, 32U}) add(s, one(where, what, bytes, depth));
  }
  for (const durability until : {durability::flush, durability::durable})
    for (const std::uint64_t bytes : {4 * kib, 64 * kib, mib})
      for (const unsigned depth : {1U, 32U}) add(s, one(order::random, access::write, bytes, depth, until));
  return s;
}

suite full() {
  suite s{.name = "full", .title = "all combinations", .seconds = 0.5, .cases = {}};
  add_peaks(s);
  for (const access what : {access::read, access::write})
    for (const durability until : {durability::none, durability::flush, durability::durable})
      for (const order where : {order::sequential, order::random})
        for (std::uint64_t bytes = 512; bytes <= mib; bytes *= 2)
          for (unsigned depth = 1; depth <= 256; depth *= 2)
            if (what == access::write || until == durability::none) {
              drive_case c = one(where, what, bytes, depth, until);
              c.beside_fio = until == durability::none && bytes == 4 * kib && where == order::random;
              s.cases.push_back(std::move(c));
            }
  return s;
}

}  // namespace

suite suite_of(std::string_view name) {
  if (name == "quick") return quick();
  if (name == "drive") return drive();
  if (name == "full") return full();
  throw error(fmt::format("there is no suite '{}' of drives", name), "choose quick, drive or full");
}

void filter_cases(suite& s, const std::string& expression) {
  bench::filter_by_name(s.cases, expression,
                        {s.name, "random-read|depth=32$", "pmlab microbench --device DEVICE --list"});
}

}  // namespace pmlab::drive
