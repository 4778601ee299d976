// chains.c as a library with PiBench's interface. It has no update and no scan.
#include <pmlab/pibench/pool.hpp>
#include <pmlab/pibench/tree_api.hpp>
#include "chains.h"

#include <cstring>

namespace {

class chains_library final : public tree_api, public pmlab::pibench::in_dram {
 public:
  explicit chains_library(const tree_options_t& options) {
    pmlab::pibench::open_pool(options.pool_path, options.pool_size);
    chains_ = static_cast<chains*>(pmlab::pibench::pool_root());
    if (chains_ != nullptr) {
      chains_recover(chains_);
    } else {
      chains_ = chains_create();
      pmlab::pibench::set_pool_root(chains_);
    }
  }
  chains_library(const chains_library&) = delete;
  chains_library& operator=(const chains_library&) = delete;
  ~chains_library() override { pmlab::pibench::close_pool(); }

  bool find(const char* key, std::size_t, char* value_out) override {
    std::uint64_t value = 0;
    if (chains_find(chains_, word(key), &value) == 0) return false;
    std::memcpy(value_out, &value, sizeof value);
    return true;
  }
  bool insert(const char* key, std::size_t, const char* value, std::size_t) override {
    return chains_insert(chains_, word(key), word(value)) != 0;
  }
  bool remove(const char* key, std::size_t) override { return chains_remove(chains_, word(key)) != 0; }
  bool update(const char*, std::size_t, const char*, std::size_t) override { return false; }
  int scan(const char*, std::size_t, int, char*&) override { return 0; }

 private:
  static std::uint64_t word(const char* bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  chains* chains_ = nullptr;
};

}  // namespace

extern "C" tree_api* create_tree(const tree_options_t& options) { return new chains_library(options); }
