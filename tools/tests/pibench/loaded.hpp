// The libraries that pmlab makes for PiBench, loaded as PiBench loads them and driven through its binary interface
// alone.
#pragma once

#include <pmlab/pibench/library.hpp>
#include <pmlab/pibench/tree_api.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::tests {

// Names of those that are tested, which keep their entries: fast_fair, ..., cache_fast_fair, ..., hybrid_index, ...
// PMLAB_PIBENCH_LIBRARIES in the environment names others than those of each build.
[[nodiscard]] inline std::vector<std::string> library_names() {
  std::vector<std::string> names;
  const char* const given = std::getenv("PMLAB_PIBENCH_LIBRARIES");
  std::istringstream all(given != nullptr ? given : PIBENCH_LIBRARIES);
  for (std::string name; std::getline(all, name, ',');) names.push_back(name);
  return names;
}

// A cache has the order of its index, and a hybrid has one.
[[nodiscard]] inline bool has_order(const std::string& name) {
  const std::string prefix = "cache_";
  const std::string index = name.starts_with(prefix) ? name.substr(prefix.size()) : name;
  return ("," + std::string(PIBENCH_UNORDERED) + ",").find("," + index + ",") == std::string::npos;
}

[[nodiscard]] inline pibench::library load(const std::string& name) {
  return pibench::library(std::string(PIBENCH_FOLDER) + "/libpmlab_" + name + ".so");
}

// The interface of later versions of PiBench: one function more, in front. Not in an anonymous namespace, where the
// compiler would know that it has no implementation.
class later_api {
 public:
  virtual ~later_api() = default;
  virtual bool bulk_load(const char*, std::size_t, std::size_t, std::size_t) = 0;
  virtual bool find(const char* key, std::size_t key_size, char* value_out) = 0;
  virtual bool insert(const char* key, std::size_t key_size, const char* value, std::size_t value_size) = 0;
  virtual bool update(const char* key, std::size_t key_size, const char* value, std::size_t value_size) = 0;
  virtual bool remove(const char* key, std::size_t key_size) = 0;
  virtual int scan(const char* key, std::size_t key_size, int scan_size, char*& values_out) = 0;
};

// A tree with keys and values of 8 bytes.
class tree {
 public:
  tree(const std::string& name, const tree_options_t& options) : api_(load(name).create(options)) {}

  [[nodiscard]] bool insert(std::uint64_t key, std::uint64_t value) {
    return api_->insert(bytes(key), sizeof key, bytes(value), sizeof value);
  }
  [[nodiscard]] bool update(std::uint64_t key, std::uint64_t value) {
    return api_->update(bytes(key), sizeof key, bytes(value), sizeof value);
  }
  [[nodiscard]] bool remove(std::uint64_t key) { return api_->remove(bytes(key), sizeof key); }
  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t key) {
    std::uint64_t value = 0;
    if (!api_->find(bytes(key), sizeof key, reinterpret_cast<char*>(&value))) return std::nullopt;
    return value;
  }

  using records = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  [[nodiscard]] records scan(std::uint64_t from, int most) {
    char* found = nullptr;
    const int count = api_->scan(bytes(from), sizeof from, most, found);
    return copied(found, count);
  }
  [[nodiscard]] static records copied(const char* found, int count) {
    records result(static_cast<std::size_t>(count));
    for (auto& [key, value] : result) {
      std::memcpy(&key, found, sizeof key);
      std::memcpy(&value, found + sizeof key, sizeof value);
      found += sizeof key + sizeof value;
    }
    return result;
  }

  [[nodiscard]] tree_api& api() const noexcept { return *api_; }

 private:
  static const char* bytes(const std::uint64_t& word) noexcept { return reinterpret_cast<const char*>(&word); }

  std::unique_ptr<tree_api> api_;
};

// A tree with keys and values of any sizes.
class tree_of_bytes {
 public:
  tree_of_bytes(const std::string& name, const tree_options_t& options)
      : key_size_(options.key_size), value_size_(options.value_size), api_(load(name).create(options)) {}

  [[nodiscard]] bool insert(const std::string& key, const std::string& value) {
    return api_->insert(key.data(), key.size(), value.data(), value.size());
  }
  [[nodiscard]] bool update(const std::string& key, const std::string& value) {
    return api_->update(key.data(), key.size(), value.data(), value.size());
  }
  [[nodiscard]] bool remove(const std::string& key) { return api_->remove(key.data(), key.size()); }
  [[nodiscard]] std::optional<std::string> find(const std::string& key) {
    // PiBench gives room for one value: the bytes behind it must not change.
    constexpr char untouched = '#';
    std::string value(value_size_ + 1, untouched);
    if (!api_->find(key.data(), key.size(), value.data())) return std::nullopt;
    if (value.back() != untouched) return "wrote too much";
    value.pop_back();
    return value;
  }

  using records = std::vector<std::pair<std::string, std::string>>;
  [[nodiscard]] records scan(const std::string& from, int most) {
    char* found = nullptr;
    const int count = api_->scan(from.data(), from.size(), most, found);
    records result;
    for (int i = 0; i < count; ++i, found += key_size_ + value_size_)
      result.emplace_back(std::string(found, key_size_), std::string(found + key_size_, value_size_));
    return result;
  }

 private:
  std::size_t key_size_;
  std::size_t value_size_;
  std::unique_ptr<tree_api> api_;
};

[[nodiscard]] inline tree_options_t pool_at(const std::string& path) {
  tree_options_t options;
  options.pool_path = path;
  options.pool_size = std::size_t{64} << 20;
  return options;
}

}  // namespace pmlab::tests
