// Traces of the official YCSB and of go-ycsb, which print the operations instead of executing them.
//
//   official YCSB  site.ycsb.Client -db site.ycsb.BasicDB -p basicdb.verbose=true ... (-load, or -t)
//   go-ycsb        go-ycsb load|run basic -p verbose=true ...
//
// Both print one operation a line, among lines of other kinds:
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
// keywords and a space, continues in any other way and is no measurement is an error. All other lines are skipped,
// anywhere: threads of the generator may print an operation in the midst of another one's block. Lines end in LF or CR
// LF.
//
// KEY is "user" and the decimal digits of a number that fits 64 bits; leading zeros (zeropadding) do not count. The
// number is the key of the operation. A read-modify-write is printed as READ, then UPDATE, and stays two operations.
//
// Which operations belong to the load, and which to the run:
//
//   pmlab bench --trace load.txt --trace run.txt.gz        the two outputs of the generator
//   pmlab bench --trace both.txt                           or both in one file, the load first
//
// The block of properties of each output declares its kind ("dotransactions"), which is trusted: INSERTs after "false"
// are loaded, all operations after "true" are run. Without the block (files made by `grep` or by hand), the INSERTs at
// the beginning are the load; so is a further file of INSERTs alone, as long as no operation of the run precedes it. An
// operation other than INSERT always belongs to the run, and so do all operations after it.
#pragma once

#include "bench/workload/operation.hpp"

#include <span>
#include <string>
#include <vector>

namespace pmlab::workload {

// The values are pmlab's own: value_of(key, 0) for inserts of the load, value_of(key, 1 + n) for inserts or updates by
// operation number n of the run (counted from 0).
struct trace {
  std::vector<operation> load;  // inserts
  std::vector<operation> run;
  std::string source;  // the path, or the paths with ", " between them
};

// Reads the files of one trace, in this order. Plain or gzip each, by content, however many members the gzip file has.
// Memory: 24 bytes an operation; lines of any length pass through a buffer of fixed size.
//
// Throws pmlab::error that names the file (and the line number, from 1, where there is one): a file that cannot be
// read, is a directory, is empty, is a damaged or truncated gzip file, holds no operation or a malformed line.
[[nodiscard]] trace read_trace(std::span<const std::string> paths);

// The same for one file.
[[nodiscard]] trace read_trace(const std::string& path);

}  // namespace pmlab::workload
