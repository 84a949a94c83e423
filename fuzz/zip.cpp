// Any bytes as an archive: an ImportError, or records that lie inside the file and do not overlap.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "fx/base/error.h"
#include "fx/io/file_format.h"
#include "fx/io/zip_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  fx::io::guess_format(bytes);
  try {
    const fx::io::ZipReader zip(bytes, "fuzz");
    fx::io::classify_zip(zip);
    std::uint64_t end = 0;
    for (const fx::io::ZipEntry& entry : zip.entries()) {
      if (entry.data_offset < end || entry.data_offset + entry.size > size) std::abort();
      end = entry.data_offset + entry.size;
      if (zip.find(entry.name) != &entry) std::abort();
      try {
        zip.check_crc(entry);
      } catch (const fx::ImportError&) {
      }
    }
  } catch (const fx::ImportError&) {
  }
  return 0;
}
