// A key-value device behind the commands of the NVMe Key Value Command Set [NVMEKV], with its status codes.
//
//   stores::nvme_kv commands(device);                 // a device with short keys
//   commands.store(key, value, {.no_overwrite = true});
//   commands.list(from, buffer);
//
// Use it for programs, models and tests that speak of opcodes and status codes. Keys have 1 to 16 bytes.
//
// Thread safety, durability: the device's. Facts of the specification are stated here; the order of LIST is the
// device's to choose: byte order, in which a key comes before those that it begins.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/stores/kv_ssd.hpp>
#include <pmlab/stores/kv_ssd/options.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::stores {

// Opcodes of the I/O commands.
enum class nvme_kv_opcode : std::uint8_t { store = 0x01, retrieve = 0x02, list = 0x06, erase = 0x10, exist = 0x14 };

// Status codes. The command set defines those from 0x80 on.
enum class nvme_kv_status : std::uint8_t {
  success = 0x00,
  internal_error = 0x06,  // the flash failed; nothing was changed
  capacity_exceeded = 0x81,
  invalid_value_size = 0x85,
  invalid_key_size = 0x86,
  key_does_not_exist = 0x87,
  unrecovered_error = 0x88,  // the record is damaged; nothing of it was returned
  key_exists = 0x89,
};

// Options of a STORE command.
struct nvme_kv_store_options {
  bool must_exist = false;    // bit 0: a value is replaced; no pair is added
  bool no_overwrite = false;  // bit 1: a pair is added; no value is replaced
};

// The commands, each as a function that returns its status. Throws nothing for input that the command set has a status
// for.
template <class Store>
class nvme_kv {
 public:
  // The device outlives it. Throws pmlab::error: it has other keys than NVMe (kv_options::short_keys).
  explicit nvme_kv(Store& device) : device_(device) {
    if (device.longest_key() != 16)
      throw error("a device with keys of " + std::to_string(device.shortest_key()) + " to " +
                      std::to_string(device.longest_key()) + " bytes has no NVMe commands",
                  "make it with the option short_keys");
  }

  // STORE.
  [[nodiscard]] nvme_kv_status store(std::string_view key, std::span<const std::byte> value,
                                     nvme_kv_store_options options = {}) {
    if (!is_possible(key)) return nvme_kv_status::invalid_key_size;
    if (value.size() > device_.largest_value()) return nvme_kv_status::invalid_value_size;
    return guarded([&] {
      // Both options: no key can meet them.
      if (options.must_exist && options.no_overwrite)
        return is_there(key) ? nvme_kv_status::key_exists : nvme_kv_status::key_does_not_exist;
      const kv_mode mode = options.must_exist     ? kv_mode::update_only
                           : options.no_overwrite ? kv_mode::no_overwrite
                                                  : kv_mode::post;
      switch (device_.put(key, value, mode)) {
        case kv_outcome::exists: return nvme_kv_status::key_exists;
        case kv_outcome::absent: return nvme_kv_status::key_does_not_exist;
        case kv_outcome::full: return nvme_kv_status::capacity_exceeded;
        case kv_outcome::added:
        case kv_outcome::replaced: break;
      }
      return nvme_kv_status::success;
    });
  }

  // RETRIEVE: copies as much of the value as fits. `value_bytes`: of the whole value.
  [[nodiscard]] nvme_kv_status retrieve(std::string_view key, std::span<std::byte> out, std::uint32_t& value_bytes) {
    if (!is_possible(key)) return nvme_kv_status::invalid_key_size;
    return guarded([&] {
      const auto bytes = device_.get(key, 0, out);
      if (!bytes) return nvme_kv_status::key_does_not_exist;
      value_bytes = static_cast<std::uint32_t>(*bytes);
      return nvme_kv_status::success;
    });
  }

  // DELETE.
  [[nodiscard]] nvme_kv_status erase(std::string_view key) {
    if (!is_possible(key)) return nvme_kv_status::invalid_key_size;
    return guarded([&] { return device_.erase(key) ? nvme_kv_status::success : nvme_kv_status::key_does_not_exist; });
  }

  // EXIST.
  [[nodiscard]] nvme_kv_status exist(std::string_view key) {
    if (!is_possible(key)) return nvme_kv_status::invalid_key_size;
    return guarded([&] { return is_there(key) ? nvme_kv_status::success : nvme_kv_status::key_does_not_exist; });
  }

  // LIST: the keys from `from` on (empty: all), as many as fit into `out`:
  //   | number of keys, 4 bytes | length, 2 bytes | key | padding to 4 bytes | length | key | ...
  // The caller goes on behind the last one. `out` has at least 4 bytes. Where a page of keys is damaged, the device is
  // repaired first, which reads the heads of all records.
  [[nodiscard]] nvme_kv_status list(std::string_view from, std::span<std::byte> out) {
    if (from.size() > device_.longest_key()) return nvme_kv_status::invalid_key_size;
    std::uint32_t count = 0;
    if (out.size() < sizeof count) return nvme_kv_status::invalid_value_size;
    return guarded([&] {
      constexpr std::size_t least_entry = 4;
      std::size_t at = sizeof count;
      const std::size_t most = std::max<std::size_t>(1, out.size() / least_entry);
      kv_skipped skipped;
      std::vector<std::string> keys = device_.list(from, most, 0, &skipped);
      if (skipped.pages != 0) {
        static_cast<void>(device_.repair());
        keys = device_.list(from, most);
      }
      for (const std::string& key : keys) {
        const std::size_t bytes = (sizeof(std::uint16_t) + key.size() + 3) / 4 * 4;
        if (at + bytes > out.size()) {
          if (count == 0) return nvme_kv_status::invalid_value_size;  // not even one fits
          break;
        }
        const auto length = static_cast<std::uint16_t>(key.size());
        std::memset(out.data() + at, 0, bytes);
        std::memcpy(out.data() + at, &length, sizeof length);
        std::memcpy(out.data() + at + sizeof length, key.data(), key.size());
        at += bytes;
        ++count;
      }
      std::memcpy(out.data(), &count, sizeof count);
      return nvme_kv_status::success;
    });
  }

 private:
  [[nodiscard]] bool is_possible(std::string_view key) const noexcept {
    return key.size() >= device_.shortest_key() && key.size() <= device_.longest_key();
  }
  [[nodiscard]] bool is_there(std::string_view key) {
    const std::array<std::string_view, 1> one{key};
    return device_.exist(one).front();
  }
  template <class Command>
  [[nodiscard]] static nvme_kv_status guarded(Command&& command) {
    try {
      return command();
    } catch (const kv_damaged&) {
      return nvme_kv_status::unrecovered_error;
    } catch (const error&) {
      return nvme_kv_status::internal_error;
    }
  }

  Store& device_;
};

}  // namespace pmlab::stores
