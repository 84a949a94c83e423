// Any bytes as the program of an otherwise sound .pt2 archive: an ImportError, or a module that can
// be printed, copied, and written again, or is refused for a reason.
#include <cstdint>
#include <string>

#include "fuzz/json_mutator.h"
#include "fuzz/temp_folder.h"
#include "fx/base/error.h"
#include "fx/graph/text.h"
#include "fx/io/atomic_file.h"
#include "fx/io/import_export.h"
#include "fx/io/save_pt2.h"
#include "fx/io/zip_writer.h"

namespace {

constexpr const char* kWeights =
    R"({"config": {"mean": {"path_name": "weight_0", "is_param": false, "use_pickle": false, )"
    R"("tensor_meta": {"dtype": 7, "sizes": [{"as_int": 4}], "requires_grad": false, "device": )"
    R"({"type": "cpu", "index": null}, "strides": [{"as_int": 1}], "storage_offset": )"
    R"({"as_int": 0}, "layout": 7}}}})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string path = fx::fuzz::temp_folder() + "/program.pt2";
  {
    fx::io::AtomicFile file(path);
    fx::io::ZipWriter zip(file);
    zip.add("m/data/weights/weight_0", std::string(16, '\1'));
    zip.add("m/data/weights/model_weights_config.json", kWeights);
    zip.add("m/data/constants/model_constants_config.json", R"({"config": {}})");
    zip.add("m/models/model.json", std::string(reinterpret_cast<const char*>(data), size));
    zip.add("m/archive_format", "pt2");
    zip.add("m/archive_version", "0");
    zip.add("m/byteorder", "little");
    zip.add("m/.data/version", "6\n");
    zip.finish();
    file.commit();
  }
  try {
    fx::io::inspect(path);
    const auto module = fx::load(path);
    fx::to_text(module->graph(), {.meta = true});
    const auto copy = module->deep_copy();
    try {
      fx::save_pt2(*copy, fx::fuzz::temp_folder() + "/again.pt2", {.flush = false});
    } catch (const fx::Error&) {  // what cannot be written is said
      return 0;
    }
    fx::load(fx::fuzz::temp_folder() + "/again.pt2");
  } catch (const fx::ImportError&) {
  }
  return 0;
}
