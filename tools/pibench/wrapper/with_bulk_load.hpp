// The interface of later versions of PiBench, whose objects have one more function, in front of the others: PiBench's
// option --bulk_load. A library does not show which of the two it has, so its user must state it.
#pragma once

#include "tools/pibench/wrapper/environment.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/pibench/tree_api.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace pmlab::pibench {

// Hands every call on. The order of virtual functions is the interface.
class with_bulk_load {
 public:
  explicit with_bulk_load(std::unique_ptr<tree_api> tree) : tree_(std::move(tree)) {}
  with_bulk_load(const with_bulk_load&) = delete;
  with_bulk_load& operator=(const with_bulk_load&) = delete;
  virtual ~with_bulk_load() = default;

  // Not offered: PiBench inserts instead.
  virtual bool bulk_load(const char* /*records*/, std::size_t /*count*/, std::size_t /*key_size*/,
                         std::size_t /*value_size*/) {
    return false;
  }
  virtual bool find(const char* key, std::size_t key_size, char* value_out) {
    return tree_->find(key, key_size, value_out);
  }
  virtual bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) {
    return tree_->insert(key, key_size, value, value_size);
  }
  virtual bool update(const char* key, std::size_t key_size, const char* value, std::size_t value_size) {
    return tree_->update(key, key_size, value, value_size);
  }
  virtual bool remove(const char* key, std::size_t key_size) { return tree_->remove(key, key_size); }
  virtual int scan(const char* key, std::size_t key_size, int scan_size, char*& values_out) {
    return tree_->scan(key, key_size, scan_size, values_out);
  }

 private:
  std::unique_ptr<tree_api> tree_;
};

// `tree`, with the interface that the environment variable PMLAB_PIBENCH names: bulk_load, or if it is not set the
// first one. Throws pmlab::error: it names another.
[[nodiscard]] inline tree_api* with_chosen_interface(std::unique_ptr<tree_api> tree) {
  const bool later = from_environment("PMLAB_PIBENCH", "", [](const std::string& text) {
    if (!text.empty() && text != "bulk_load")
      throw error("there is no such interface", "set it to bulk_load, or not at all");
    return !text.empty();
  });
  if (!later) return tree.release();
  return reinterpret_cast<tree_api*>(new with_bulk_load(std::move(tree)));
}

}  // namespace pmlab::pibench
