#pragma once

// A list of malformed archives, by the numbers of ../shared/reliability.md: one fault each.

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "fx/base/error.h"
#include "tests/io/archive_builder.h"

namespace fx::io::testing {

struct MalformedCase {
  enum class Wanted : std::uint8_t {
    kRefused,     ///< fx::load throws an ImportError with that code and text
    kAccepted,    ///< it loads, and a call gives what the sound file gives
    kRunFails,    ///< it loads, and a call throws an error with that text
    kBothAreFine  ///< a refusal or the right result: what is claimed cannot be told from the truth
  };
  std::string id;        ///< "Z07"
  std::string zoo_name;  ///< the sound program
  /// The bytes of the malformed file.
  std::function<std::string(ProgramFile&)> make;
  Wanted wanted = Wanted::kRefused;
  ErrorCode code = ErrorCode::kCorruptArchive;
  std::string part;
};
inline void PrintTo(const MalformedCase& c, std::ostream* out) { *out << c.id << " " << c.part; }

using Json = nlohmann::ordered_json;
using Make = std::function<std::string(ProgramFile&)>;

/// Edits the container of the file.
inline Make container(const std::function<void(TestArchive&)>& edit) {
  return [edit](ProgramFile& file) {
    TestArchive archive;
    archive.records = file.records();
    edit(archive);
    return archive.build();
  };
}

/// Edits one record of it.
inline Make record(const std::string& name, const std::function<void(TestRecord&)>& edit) {
  return [name, edit](ProgramFile& file) {
    edit(file.record(name));
    return file.build();
  };
}

/// Edits the JSON of a record.
inline Make json(const std::string& name, const std::function<void(Json&)>& edit) {
  return [name, edit](ProgramFile& file) {
    file.edit(name, edit);
    return file.build();
  };
}
inline Make model(const std::function<void(Json&)>& edit) {
  return json("models/model.json", edit);
}

/// Puts text in place of a record, or of text in it.
inline Make contents(const std::string& name, const std::string& data) {
  return record(name, [data](TestRecord& r) { r.data = data; });
}
inline Make replaced(const std::string& name, const std::string& from, const std::string& to) {
  return [name, from, to](ProgramFile& file) {
    file.replace(name, from, to);
    return file.build();
  };
}

/// Edits the bytes of the sound file.
inline Make bytes(const std::function<std::string(std::string)>& edit) {
  return [edit](ProgramFile& file) { return edit(file.build()); };
}

/// Edits the entry of the weight "mean" of the program "buffers".
inline Make weight(const std::function<void(Json&)>& edit) {
  return json("data/weights/model_weights_config.json",
              [edit](Json& config) { edit(config["config"]["mean"]); });
}

/// A list of the schema's sizes.
inline Json sizes(std::initializer_list<std::int64_t> values) {
  Json list = Json::array();
  for (std::int64_t value : values) list.push_back({{"as_int", value}});
  return list;
}

inline Json& graph_of(Json& model) { return model["graph_module"]["graph"]; }
inline Json& node_of(Json& model, std::size_t i) { return graph_of(model)["nodes"][i]; }

std::vector<MalformedCase> malformed_archives();  ///< Z, A, J
std::vector<MalformedCase> malformed_programs();  ///< T, G

}  // namespace fx::io::testing
