#include "bench/input/input_bytes.hpp"
#include "bench/input/decoders.hpp"

#include <algorithm>
#include <utility>

namespace pmlab::input {

input_bytes::input_bytes(std::string path, std::string what)
    : file_(std::make_unique<file_bytes>(std::move(path), std::move(what))) {
  constexpr std::size_t start_bytes = 64 << 10;
  const std::string_view packed = file_->ahead(form_bytes);
  refuse_foreign_form(packed, false, *file_);
  decoder_ = decoder_for(packed, *file_);
  if (!decoder_) refuse_damaged_mark(packed, *file_);
  byte_source& content = decoder_ ? *decoder_ : *file_;
  start_.resize(start_bytes);
  std::size_t filled = 0;
  while (filled < start_bytes) {
    const std::size_t count = content.read(start_.data() + filled, start_bytes - filled);
    if (count == 0) break;
    filled += count;
  }
  start_.resize(filled);
  if (decoder_) refuse_foreign_form(start_, true, *file_);
}

std::size_t input_bytes::read(char* to, std::size_t most) {
  if (given_ == start_.size()) return decoder_ ? decoder_->read(to, most) : file_->read(to, most);
  const std::size_t count = std::min(most, start_.size() - given_);
  std::copy_n(start_.data() + given_, count, to);
  given_ += count;
  return count;
}

}  // namespace pmlab::input
