#include "bench/input/decoders.hpp"
#include <pmlab/base/error.hpp>
#include "bench/input/text_encoding.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

namespace pmlab::input {
namespace {

[[noreturn]] void refuse_damaged(const file_bytes& file, const std::string& form, const std::string& why) {
  throw error(file.what() + " '" + file.path() + "' is a damaged or truncated " + form + " file: " + why,
              "make it or copy it again");
}

constexpr const char* ends_inside = "it ends inside its content";

// Whether another compressed part, which begins with this mark, follows: next, or behind zero bytes, with which tapes
// and blocks are padded. Throws pmlab::error: something else does.
bool another_follows(file_bytes& file, std::string_view mark, const std::string& form) {
  while (true) {
    const std::string_view bytes = file.ahead(mark.size());
    if (bytes.empty()) return false;
    if (bytes.starts_with(mark)) return true;
    const std::size_t zeros = std::min(bytes.find_first_not_of('\0'), bytes.size());
    if (zeros == 0) refuse_damaged(file, form, "something else follows its content");
    file.skip(zeros);
  }
}

// The gzip magic and its one method of compression.
constexpr std::string_view gzip_mark("\x1f\x8b\x08", 3);

class gzip_decoder final : public byte_source {
 public:
  explicit gzip_decoder(file_bytes& file) : file_(file) {
    constexpr int of_gzip = 16;
    if (::inflateInit2(&stream_, MAX_WBITS + of_gzip) != Z_OK)
      throw error("no memory to decompress '" + file.path() + "'", "free some memory");
  }
  ~gzip_decoder() override { ::inflateEnd(&stream_); }

  std::size_t read(char* to, std::size_t most) override {
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(std::min<std::size_t>(most, std::numeric_limits<uInt>::max()));
    const uInt room = stream_.avail_out;
    while (stream_.avail_out == room) {
      if (between_members_ && !begin_member()) return 0;
      const std::string_view bytes = file_.ahead();
      if (bytes.empty()) refuse_damaged(file_, "gzip", ends_inside);
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream_.avail_in = static_cast<uInt>(bytes.size());
      const int result = ::inflate(&stream_, Z_NO_FLUSH);
      file_.skip(bytes.size() - stream_.avail_in);
      if (result == Z_STREAM_END)
        between_members_ = true;
      else if (result != Z_OK && result != Z_BUF_ERROR)
        refuse_damaged(file_, "gzip", stream_.msg != nullptr ? stream_.msg : "its content cannot be decompressed");
    }
    return room - stream_.avail_out;
  }

 private:
  // False: there is none.
  bool begin_member() {
    if (!another_follows(file_, gzip_mark, "gzip")) return false;
    ::inflateReset(&stream_);
    between_members_ = false;
    return true;
  }

  file_bytes& file_;
  z_stream stream_{};
  bool between_members_ = false;
};

class zstd_decoder final : public byte_source {
 public:
  explicit zstd_decoder(file_bytes& file) : file_(file), stream_(::ZSTD_createDStream(), ::ZSTD_freeDStream) {
    if (stream_ == nullptr) throw error("no memory to decompress '" + file.path() + "'", "free some memory");
    // Files of `zstd --long=31`, too.
    constexpr int longest_window = 31;
    ::ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, longest_window);
  }

  std::size_t read(char* to, std::size_t most) override {
    ZSTD_outBuffer out{to, most, 0};
    while (out.pos == 0) {
      const std::string_view bytes = file_.ahead();
      if (bytes.empty() && between_frames_) return 0;
      ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
      const std::size_t left = ::ZSTD_decompressStream(stream_.get(), &out, &in);
      file_.skip(in.pos);
      if (::ZSTD_isError(left) != 0) refuse_damaged(file_, "zstd", ::ZSTD_getErrorName(left));
      between_frames_ = left == 0;
      if (bytes.empty() && out.pos == 0 && !between_frames_) refuse_damaged(file_, "zstd", ends_inside);
    }
    return out.pos;
  }

 private:
  file_bytes& file_;
  std::unique_ptr<ZSTD_DStream, std::size_t (*)(ZSTD_DStream*)> stream_;
  bool between_frames_ = false;
};

constexpr std::string_view xz_mark("\xfd\x37zXZ\0", 6);

class xz_decoder final : public byte_source {
 public:
  explicit xz_decoder(file_bytes& file) : file_(file) {}
  ~xz_decoder() override { ::lzma_end(&stream_); }

  std::size_t read(char* to, std::size_t most) override {
    stream_.next_out = reinterpret_cast<std::uint8_t*>(to);
    stream_.avail_out = most;
    while (stream_.avail_out == most) {
      if (between_streams_ && !begin_stream()) return 0;
      const std::string_view bytes = file_.ahead();
      stream_.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
      stream_.avail_in = bytes.size();
      const lzma_ret result = ::lzma_code(&stream_, bytes.empty() ? LZMA_FINISH : LZMA_RUN);
      file_.skip(bytes.size() - stream_.avail_in);
      between_streams_ = result == LZMA_STREAM_END;
      if (result != LZMA_OK && !between_streams_) refuse(result);
    }
    return most - stream_.avail_out;
  }

 private:
  // False: there is none. Streams are decoded one by one: liblzma does not tell damage from something else behind one.
  bool begin_stream() {
    if (!another_follows(file_, xz_mark, "xz")) return false;
    // xz itself writes no file that needs more than 1.5 GiB to be read.
    constexpr std::uint64_t most_memory = std::uint64_t{2} << 30;
    if (const lzma_ret result = ::lzma_stream_decoder(&stream_, most_memory, 0); result != LZMA_OK) refuse(result);
    between_streams_ = false;
    return true;
  }

  [[noreturn]] void refuse(lzma_ret result) const {
    switch (result) {
      case LZMA_BUF_ERROR: refuse_damaged(file_, "xz", ends_inside);
      case LZMA_OPTIONS_ERROR: refuse_damaged(file_, "xz", "it names a filter or a check that liblzma does not have");
      case LZMA_MEMLIMIT_ERROR:
        refuse_damaged(file_, "xz", "it asks for more than 2 GiB of memory, and no program writes such a file");
      case LZMA_MEM_ERROR: throw error("no memory to decompress '" + file_.path() + "'", "free some memory");
      default: refuse_damaged(file_, "xz", "its content cannot be decompressed");
    }
  }

  file_bytes& file_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool between_streams_ = true;
};

enum class decoding : std::uint8_t { gzip, zstd, xz, by_another_program };

// A form of files that is known by the bytes `mark` at `place`.
struct form {
  std::string_view mark;
  std::size_t place;
  decoding by;
  std::string_view what;
  std::string_view unpacker;  // the program and its options
};

using namespace std::string_view_literals;
constexpr std::array forms = {
    form{gzip_mark, 0, decoding::gzip, "a gzip file", "gunzip -c"},
    form{"\x28\xb5\x2f\xfd"sv, 0, decoding::zstd, "a zstd file", "zstd -dc"},
    form{xz_mark, 0, decoding::xz, "an xz file", "xz -dc"},
    form{"BZh"sv, 0, decoding::by_another_program, "a bzip2 file", "bunzip2 -c"},
    form{"\x04\x22\x4d\x18"sv, 0, decoding::by_another_program, "an lz4 file", "lz4 -dc"},
    form{"PK\x03\x04"sv, 0, decoding::by_another_program, "a zip archive", "unzip -p"},
    form{"7z\xbc\xaf\x27\x1c"sv, 0, decoding::by_another_program, "a 7z archive", "7z x -so"},
    form{"\x1f\x9d"sv, 0, decoding::by_another_program, "a file of compress", "uncompress -c"},
    form{"ustar"sv, 257, decoding::by_another_program, "a tar archive", "tar -xOf"},
};

const form* form_of(std::string_view start) {
  const auto has = [start](const form& f) {
    return start.size() >= f.place && start.substr(f.place).starts_with(f.mark);
  };
  // bzip2 has a digit, and then the digits of pi, behind letters that a text may begin with.
  const auto* const found = std::find_if(forms.begin(), forms.end(), has);
  if (found == forms.end()) return nullptr;
  if (found->mark == "BZh" && start.substr(std::min<std::size_t>(start.size(), 4), 6) != "1AY&SY") return nullptr;
  return &*found;
}

}  // namespace

std::unique_ptr<byte_source> decoder_for(std::string_view start, file_bytes& file) {
  const form* const found = form_of(start);
  if (found == nullptr) return nullptr;
  switch (found->by) {
    case decoding::gzip: return std::make_unique<gzip_decoder>(file);
    case decoding::zstd: return std::make_unique<zstd_decoder>(file);
    case decoding::xz: return std::make_unique<xz_decoder>(file);
    case decoding::by_another_program: break;
  }
  return nullptr;
}

void refuse_damaged_mark(std::string_view start, const file_bytes& file) {
  constexpr std::array names = {std::pair{".gz", "gzip"}, std::pair{".zst", "zstd"}, std::pair{".xz", "xz"}};
  for (const auto& [end, what] : names)
    if (file.path().ends_with(end) && !start.empty() && is_binary(start))
      refuse_damaged(file, what, "it does not begin with the mark of one");
}

void refuse_foreign_form(std::string_view start, bool is_decoded, const file_bytes& file) {
  const form* const found = form_of(start);
  if (found == nullptr || (!is_decoded && found->by != decoding::by_another_program)) return;
  const std::string name = file.what() + " '" + file.path() + "'";
  if (is_decoded)
    throw error(name + " is " + std::string(found->what) + " within a compressed one",
                "unpack it until it is the file that is meant");
  throw error(name + " is " + std::string(found->what),
              "unpack it first: " + std::string(found->unpacker) + " FILE > NEW");
}

}  // namespace pmlab::input
