// M19 to M22: against DRAM, and against a solid-state drive.
#include "claims/memory.hpp"

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

using namespace detail;

condition slower_reads(std::string_view bytes) {
  return {fmt::format("dependent reads of {} B over DRAM's", bytes), unit::times,
          over_dram(fmt::format("dependent-read/medium=given/access_bytes={}", bytes),
                    fmt::format("dependent-read/medium=dram/access_bytes={}", bytes)),
          between(3, 5)};
}

// Where the memory is one simulated DIMM, six of them are compared with DRAM of six channels.
quantity share_of_dram(const std::string& six, const std::string& one, const std::string& dram) {
  return either(over_dram(six, dram), over_dram(one, dram));
}

constexpr double about = 0.25;  // of a fraction that the text gives as "about"
constexpr range around(double fraction) { return between(fraction * (1 - about), fraction / (1 - about)); }

// "Far below": less than half.
condition drive(std::string_view side, const std::string& of_memory) {
  return {fmt::format("bandwidth of the drive over the memory's, {}", side), unit::times,
          ratio(measured(fmt::format("drive-{}", side)), measured(of_memory)), at_most(0.5)};
}

}  // namespace

std::vector<claim> comparison_claims() {
  return {
      {"M19",
       "Read latency is 3 to 5 times that of DRAM.",
       {slower_reads("64"), slower_reads("256"), slower_reads("512")}},
      {"M20",
       "Near 256 B, write latency is about that of DRAM.",
       {{"a line now and then, non-temporal: over DRAM's", unit::times,
         over_dram("idle-ntstore/medium=given", "idle-ntstore/medium=dram"), at_most(same)},
        {"256 B one after the other, non-temporal and fenced: over DRAM's", unit::times,
         over_dram("write-by-size/pattern=random/access_bytes=256", "dram-write-by-size/access_bytes=256"),
         at_most(much)}}},
      {"M21",
       "It has about 1/3 of DRAM's read bandwidth and 1/6 of its write bandwidth.",
       {{"reads: six simulated DIMMs over DRAM of six channels; a real memory over DRAM", unit::times,
         share_of_dram("six-dimms-load", "load-random/access_bytes=256/threads=24", "dram-load/threads=24"),
         around(1.0 / 3)},
        {"writes: the same", unit::times,
         share_of_dram("six-dimms-ntstore", "ntstore-random/access_bytes=256/threads=12",
                       "dram-store/store=ntstore/threads=24"),
         around(1.0 / 6)}}},
      {"M22",
       "An NVMe drive is far below it: the paper's peaks at 870 MB/s read and 680 MB/s written.",
       {drive("read", "load-random/access_bytes=256/threads=4"),
        drive("write", "ntstore-random/access_bytes=256/threads=1")}},
  };
}

}  // namespace pmlab::claims
