#include "tools/kvssd/uri.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/quantity.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace pmlab::kvssd {
namespace {

void set(device_uri& uri, std::string_view key, const std::string& value) {
  const std::string option = "option " + std::string(key) + " of a device";
  if (key == "size") {
    uri.bytes = bench::parse_bytes(value, option);
  } else if (key == "memory") {
    uri.memory = bench::parse_bytes(value, option);
  } else if (key == "buffer") {
    uri.buffer = bench::parse_bytes(value, option);
  } else if (key == "profile") {
    uri.profile = value;
  } else if (key == "rebuild" && value == "yes") {
    uri.rebuilds = true;
  } else if (key == "mode" && (value == "nvme" || value == "kvs")) {
    uri.nvme_keys = value == "nvme";
  } else {
    throw error(fmt::format("'{}={}' is no option of a device", key, value),
                "use size, memory, buffer, profile, mode=nvme, or rebuild=yes");
  }
}

}  // namespace

device_uri parse_uri(std::string_view text) {
  device_uri uri;
  const std::size_t mark = text.find('?');
  uri.path = text.substr(0, mark);
  if (uri.path.empty()) throw error("a device needs the path of its backing file", "for example /mnt/kv.drive?size=1G");
  if (mark == std::string_view::npos) return uri;
  for (std::string_view rest = text.substr(mark + 1); !rest.empty();) {
    const std::string_view option = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), option.size() + 1));
    const std::size_t equals = option.find('=');
    if (equals == std::string_view::npos)
      throw error(fmt::format("'{}' in the URI of a device has no value", option), "write NAME=VALUE");
    set(uri, option.substr(0, equals), std::string(option.substr(equals + 1)));
  }
  return uri;
}

}  // namespace pmlab::kvssd
