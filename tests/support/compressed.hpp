// Bytes as compressed files hold them. Tests that include this link ZLIB::ZLIB, PkgConfig::ZSTD and LibLZMA::LibLZMA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

namespace pmlab::tests {

[[nodiscard]] inline std::string gzip_of(const std::string& text) {
  constexpr int of_gzip = 16;
  z_stream stream{};
  if (::deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + of_gzip, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib");
  std::string packed(::deflateBound(&stream, static_cast<uLong>(text.size())) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const int result = ::deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  ::deflateEnd(&stream);
  if (result != Z_STREAM_END) throw std::runtime_error("zlib");
  return packed;
}

// `start`, and behind it `count` times `filling`.
[[nodiscard]] inline std::string gzip_of_repeated(const std::string& start, char filling, std::size_t count) {
  constexpr std::size_t block = std::size_t{1} << 24;
  std::string packed = gzip_of(start);
  const std::string member = gzip_of(std::string(block, filling));
  for (std::size_t done = 0; done < count; done += block) packed += member;
  return packed;
}

[[nodiscard]] inline std::string zstd_of(const std::string& text) {
  std::string packed(::ZSTD_compressBound(text.size()), '\0');
  const std::size_t size = ::ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 1);
  if (::ZSTD_isError(size) != 0) throw std::runtime_error("zstd");
  packed.resize(size);
  return packed;
}

[[nodiscard]] inline std::string xz_of(const std::string& text) {
  std::string packed(::lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t size = 0;
  if (::lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                                text.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &size,
                                packed.size()) != LZMA_OK)
    throw std::runtime_error("lzma");
  packed.resize(size);
  return packed;
}

}  // namespace pmlab::tests
