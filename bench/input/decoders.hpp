// The content of compressed files.
#pragma once

#include "bench/input/byte_source.hpp"
#include "bench/input/file_bytes.hpp"

#include <memory>
#include <string_view>

namespace pmlab::input {

// The decoder for a file that begins with `start`; null: it is of no form that is decompressed here. It reads `file`,
// which outlives it, to its end: each member, frame or stream, and the zero bytes that pad one. Its read() throws
// pmlab::error if the file is damaged, cut off, or has something else behind its compressed content.
[[nodiscard]] std::unique_ptr<byte_source> decoder_for(std::string_view start, file_bytes& file);

// Refuses a file of no such form whose name ends like one of theirs (.gz, .zst, .xz) and that begins with `start`,
// which is no text: its first bytes are damaged. Throws pmlab::error.
void refuse_damaged_mark(std::string_view start, const file_bytes& file);

// Refuses content that begins with `start` and needs another program first: an archive, a form of compression that is
// not read here, or, where `is_decoded`, one that was compressed twice. Throws pmlab::error that names form and
// program.
void refuse_foreign_form(std::string_view start, bool is_decoded, const file_bytes& file);

// The bytes that these need to see, at most.
inline constexpr std::size_t form_bytes = 512;

}  // namespace pmlab::input
