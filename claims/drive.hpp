// A solid-state drive beside the memory, measured by fio: what claim M22 compares with.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace pmlab::claims {

// Peak bandwidth of the drive that `folder` is on: two cases as `pmlab microbench --json` writes them, drive-read and
// drive-write. 1 MiB at a time, 32 at once, around the kernel's cache, a file of 1 GiB that is removed again; about a
// quarter of a minute. Where fio is not installed, or no folder was named (empty), the cases are skipped and say why.
// Throws pmlab::error: no such folder, fio failed (no room, no direct access).
[[nodiscard]] nlohmann::json measure_drive(const std::string& folder);

// Of what `fio --output-format=json` printed, in GiB/s: job 0 writes, job 1 reads.
[[nodiscard]] nlohmann::json drive_cases(const nlohmann::json& fio, const std::string& folder);

}  // namespace pmlab::claims
