// The sizes of the pages under this process's memory: what they are, and to have them all of one size.
#pragma once

#include <cstdint>
#include <istream>
#include <optional>
#include <string>
#include <string_view>

namespace pmlab::bench {

// Memory that is in use, and how much of it is on 2 MB pages.
struct page_share {
  std::uint64_t bytes = 0;
  std::uint64_t huge_bytes = 0;

  // 0 to 1; std::nullopt: there is none.
  [[nodiscard]] std::optional<double> on_huge_pages() const noexcept {
    if (bytes == 0) return std::nullopt;
    return static_cast<double>(huge_bytes) / static_cast<double>(bytes);
  }
};

// From the text of /proc/PID/smaps: the mappings of the file at `path`; none given: the writable ones that no file is
// below, but stacks. Mappings of less than 2 MB are left out: they can have no such page.
[[nodiscard]] page_share pages_in(std::istream& smaps, std::string_view path = {});

// The same for this process. Takes some milliseconds for each GB on 4 KB pages.
[[nodiscard]] page_share pages_of_process(std::string_view path = {});

// The same for the file at `path`, which it maps for this moment; its holes stay holes. On tmpfs: elsewhere files have
// no such pages. Nothing in it: it cannot be read.
[[nodiscard]] page_share pages_of_file(const std::string& path);

// From now on the process gets no 2 MB pages, on request neither; those that it has already stay. Throws pmlab::error:
// the kernel refuses.
void stay_on_small_pages();

// Has the kernel put the memory that the process has on 2 MB pages, that of libraries, too: heaps, mappings, pools on
// tmpfs. Memory for which it has none stays as it is. No other thread may change mappings.
void move_to_huge_pages();

}  // namespace pmlab::bench
