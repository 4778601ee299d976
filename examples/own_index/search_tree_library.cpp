// search_tree.hpp as a library with PiBench's interface. It has no update, no remove and no scan.
#include <pmlab/pibench/pool.hpp>
#include <pmlab/pibench/tree_api.hpp>
#include "search_tree.hpp"

#include <cstring>

namespace {

class tree_library final : public tree_api, public pmlab::pibench::in_dram {
 public:
  explicit tree_library(const tree_options_t& options) {
    pmlab::pibench::open_pool(options.pool_path, options.pool_size);
    tree_ = static_cast<search_tree*>(pmlab::pibench::pool_root());
    if (tree_ != nullptr) {
      tree_->recover();
    } else {
      tree_ = search_tree::create();
      pmlab::pibench::set_pool_root(tree_);
    }
  }
  tree_library(const tree_library&) = delete;
  tree_library& operator=(const tree_library&) = delete;
  ~tree_library() override { pmlab::pibench::close_pool(); }

  bool find(const char* key, std::size_t, char* value_out) override {
    std::uint64_t value = 0;
    if (!tree_->find(word(key), value)) return false;
    std::memcpy(value_out, &value, sizeof value);
    return true;
  }
  bool insert(const char* key, std::size_t, const char* value, std::size_t) override {
    return tree_->insert(word(key), word(value));
  }
  bool update(const char*, std::size_t, const char*, std::size_t) override { return false; }
  bool remove(const char*, std::size_t) override { return false; }
  int scan(const char*, std::size_t, int, char*&) override { return 0; }

 private:
  static std::uint64_t word(const char* bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  search_tree* tree_ = nullptr;
};

}  // namespace

extern "C" tree_api* create_tree(const tree_options_t& options) { return new tree_library(options); }
