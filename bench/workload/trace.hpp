// Traces of operations that were recorded, or printed by a generator. docs/traces.md shows the forms.
//
// The official YCSB and go-ycsb print the operations instead of executing them, one a line, among lines of other kinds:
//
//   site.ycsb.Client -db site.ycsb.BasicDB -p basicdb.verbose=true ... (-load, or -t)
//   go-ycsb load|run basic -p verbose=true ...
//
//   ***************** properties *****************        a block of properties between two lines of asterisks
//   "dotransactions"="true"
//   **********************************************
//   READ usertable user3232700585171816769 [ <all fields>]
//   SCAN usertable user6873002678636213555 746 [ <all fields>]
//   INSERT usertable user6284781860667377211 [ field0=... ]
//   UPDATE usertable user7461223496605049899 [ field0=... ]
//   DELETE usertable user412164360235391016
//   READ   - Takes(s): 10.0, Count: ...                  go-ycsb's measurements
//   [READ], Operations, 10                               YCSB's
//
// The start of a line determines its kind: KEYWORD SPACE TABLE SPACE KEY and, except after DELETE, a SPACE. Everything
// behind (values of fields: any character but a line end) is skipped unread. A line that starts with one of the five
// keywords and a space, continues in any other way and is no measurement is an error. All other lines are counted as no
// operations, anywhere: threads of the generator may print an operation in the midst of another one's block.
//
// KEY is a prefix, such as "user", and the decimal digits of a number that fits 64 bits, with leading zeros
// (zeropadding) in all of them or in none: user01 and user1 in one trace are refused. The number is the key of the
// operation, so table and prefix are the same in all of them. A read-modify-write is printed as READ, then UPDATE, and
// stays two operations.
//
// Which operations belong to the load, and which to the run:
//
//   pmlab bench --trace load.txt --trace run.txt.gz        the two outputs of the generator
//   pmlab bench --trace both.txt                           or both in one file, the load first
//
// The block of properties of each output declares its kind ("dotransactions"), which is trusted: INSERTs after "false"
// are loaded, all operations after "true" are run. Without the block (other generators, files made by `grep` or by
// hand), the INSERTs at the beginning are the load; so is a further file of INSERTs alone, as long as no operation of
// the run precedes it. An operation other than INSERT always belongs to the run, and so do all operations after it.
//
// Traces of caches (Twitter's, CacheLib's, libCacheSim's) have a run only, which begins with an empty index unless a
// load comes before it. Keys of SOSD are a load; if nothing else gives a run, it reads keys that are drawn from them.
#pragma once

#include "bench/workload/operation.hpp"
#include "bench/workload/trace_format.hpp"

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace pmlab::workload {

// The values are pmlab's own: value_of(key, 0) for inserts of the load, value_of(key, 1 + n) for inserts or updates by
// operation number n of the run (counted from 0).
struct trace {
  std::vector<operation> load;  // inserts
  std::vector<operation> run;
  trace_format format = trace_format::automatic;  // format of the last file
  std::string source;                             // the path, or the paths with ", " between them
  std::vector<std::string> notes;  // what was read and is no operation, and what is replayed otherwise than recorded
};

struct trace_options {
  trace_format format = trace_format::automatic;
  // More are refused, before they take the memory that they need.
  std::uint64_t most_operations = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t seed = 1;  // seed of the reads that are drawn
};

// Reads the files of one trace, in this order. Plain, gzip, zstd or xz each, by content. Memory: 24 bytes an operation,
// and up to 29 for each key while the trace is read; lines pass through a buffer of fixed size.
//
// Throws pmlab::error that names the file (and the line number, from 1, where there is one): a file that cannot be
// read, is a directory, is empty, is damaged or cut off, holds no operation or a malformed line.
[[nodiscard]] trace read_trace(std::span<const std::string> paths, const trace_options& options = {});

// The same for one file.
[[nodiscard]] trace read_trace(const std::string& path, const trace_options& options = {});

}  // namespace pmlab::workload
