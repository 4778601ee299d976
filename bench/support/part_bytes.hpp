// Objects as bytes, on their way from a process to another one of the same program: numbers as they lie in memory, the
// length of a text or of a list before it.
//
// A class that is more than numbers names its parts. `each_part(object, with)`, beside the class, calls with(part...)
// with all of them, in the same order in both directions.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmlab::bench {

class part_writer {
 public:
  std::string bytes;

  template <class... Parts>
  void operator()(const Parts&... parts) {
    (write(parts), ...);
  }

 private:
  template <class Part>
  void write(const Part& part) {
    if constexpr (std::is_trivially_copyable_v<Part>)
      bytes.append(reinterpret_cast<const char*>(&part), sizeof part);
    else
      each_part(part, *this);
  }
  void write(const std::string& text) {
    write(text.size());
    bytes += text;
  }
  void write(const std::optional<std::string>& text) {
    write(text.has_value());
    if (text) write(*text);
  }
  template <class First, class Second>
  void write(const std::pair<First, Second>& both) {
    write(both.first);
    write(both.second);
  }
  template <class Item>
  void write(const std::vector<Item>& items) {
    write(items.size());
    for (const Item& item : items) write(item);
  }
};

// REQUIRES: the bytes are those of a part_writer that was given the same parts.
class part_reader {
 public:
  explicit part_reader(std::string_view bytes) : left_(bytes) {}

  template <class... Parts>
  void operator()(Parts&... parts) {
    (read(parts), ...);
  }

 private:
  template <class Part>
  void read(Part& part) {
    if constexpr (std::is_trivially_copyable_v<Part>) {
      std::memcpy(static_cast<void*>(&part), left_.data(), sizeof part);
      left_.remove_prefix(sizeof part);
    } else {
      each_part(part, *this);
    }
  }
  void read(std::string& text) {
    std::size_t size = 0;
    read(size);
    text = left_.substr(0, size);
    left_.remove_prefix(size);
  }
  void read(std::optional<std::string>& text) {
    bool is_there = false;
    read(is_there);
    if (is_there) read(text.emplace());
  }
  template <class First, class Second>
  void read(std::pair<First, Second>& both) {
    read(both.first);
    read(both.second);
  }
  template <class Item>
  void read(std::vector<Item>& items) {
    std::size_t count = 0;
    read(count);
    items.resize(count);
    for (Item& item : items) read(item);
  }

  std::string_view left_;
};

}  // namespace pmlab::bench
