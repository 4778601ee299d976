// The binary interface of PiBench, in declarations of our own: how its libraries look from outside.
//
// A library exports `extern "C" tree_api* create_tree(const tree_options_t&)`. The order of members and of virtual
// functions is the interface; names are PiBench's.
#pragma once

#include <cstddef>
#include <string>

// How a tree is opened.
struct tree_options_t {
  std::size_t key_size = 8;     // bytes
  std::size_t value_size = 8;   // bytes
  std::string pool_path{};      // where persistent memory is; empty: in DRAM
  std::size_t pool_size = 0;    // bytes
  std::size_t num_threads = 1;  // that call the tree
};

// An index with keys and values of fixed sizes. Thread safety: the library's.
class tree_api {
 public:
  virtual ~tree_api() = default;
  // True, with the value in `value_out`, if the key is there.
  virtual bool find(const char* key, std::size_t key_size, char* value_out) = 0;
  // False: the key was present already.
  virtual bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) = 0;
  // False: the key was absent.
  virtual bool update(const char* key, std::size_t key_size, const char* value, std::size_t value_size) = 0;
  // False: the key was absent.
  virtual bool remove(const char* key, std::size_t key_size) = 0;
  // Points `values_out` at key-value records in ascending order of keys, from the first one at or after `key` on, and
  // returns how many there are, at most `scan_size`. They are the library's, and safe from other threads.
  virtual int scan(const char* key, std::size_t key_size, int scan_size, char*& values_out) = 0;
};
