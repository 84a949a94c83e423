// Z: the zip container. A: records of the archive. J: JSON.

#include "tests/io/malformed.h"

namespace fx::io::testing {

using namespace std::string_literals;
using enum MalformedCase::Wanted;

std::vector<MalformedCase> malformed_archives() {
  const std::string b = "buffers", r = "relu";
  const auto schema = ErrorCode::kBadSchema, syntax = ErrorCode::kBadJson;
  return {
      {"Z00", b, bytes([](std::string s) { return s; }), kAccepted, {}, {}},
      {"Z01", b, bytes([](std::string) { return ""s; }), kRefused, kForeign, "an empty file"},
      {"Z03", b, container([](TestArchive& a) { a.records.clear(); }), kRefused, kCorrupt,
       "holds no records"},
      {"Z04", b, bytes([](std::string s) { return s.substr(0, s.size() / 2); }), kRefused, kCorrupt,
       "end record is missing"},
      {"Z06", b, bytes([](std::string s) { return s.substr(0, s.size() - 22); }), kRefused,
       kCorrupt, "end record is missing"},
      {"Z07", b, container([](TestArchive& a) { a.count = 60000; }), kRefused, kCorrupt,
       "60000 entries, which cannot fit"},
      {"Z09", b, container([](TestArchive& a) { a.directory_offset = 0xFFFFFF00; }), kRefused,
       kCorrupt, "does not end where"},
      {"Z10", b, container([](TestArchive& a) { a.count = 0; }), kRefused, kCorrupt, "0 entries"},
      {"Z12", b, container([](TestArchive& a) {
         a.zip64_end = true;
         a.zip64_end_offset = std::uint64_t{1} << 40;
       }),
       kRefused, kCorrupt, "zip64"},
      {"Z13", b, container([](TestArchive& a) {
         a.zip64_end = true;
         a.directory_size = std::uint64_t{1} << 63;
       }),
       kRefused, kCorrupt, "zip64 directory"},
      {"Z15", b, record(kWeight, [](TestRecord& x) { x.size = x.stored = 2'200'000'000; }),
       kRefused, kCorrupt, "more than the whole file"},
      {"Z16", b,
       record(kWeight,
              [](TestRecord& x) {
                x.size = 4096;
                x.stored = x.data.size();
              }),
       kRefused, kCorrupt, "two sizes"},
      {"Z18", b, container([](TestArchive& a) {
         const std::size_t size = a.build().size();
         a.records[0].header_offset = size - 10;
       }),
       kRefused, kCorrupt, "lies outside the records"},
      {"Z19", b, container([](TestArchive& a) {
         a.records[0].zip64 = true;
         a.records[0].header_offset = std::uint64_t{1} << 40;
       }),
       kRefused, kCorrupt, "lies outside the records"},
      {"Z20b", b, bytes([](std::string s) {
         const std::size_t header = s.rfind("PK\x03\x04");
         s[header + 28] = s[header + 29] = '\xff';
         return s;
       }),
       kRefused, kCorrupt, ""},
      {"Z21", b, container([](TestArchive& a) {
         for (int i = 0; i < 1000; ++i) {
           TestRecord twin = a.records[0];
           twin.in_directory_only = true;
           twin.header_offset = 0;
           a.records.push_back(twin);
         }
       }),
       kRefused, kUnsafe, "overlaps another record"},
      {"Z23", b, record(kModel, [](TestRecord& x) { x.method = 8; }), kRefused, kUnsafe,
       "compressed (method 8)"},
      {"Z24", b, with_record(kModel, "{}"), kRefused, kUnsafe, "are equal"},
      {"Z25", b, container([](TestArchive& a) {
         TestRecord twin;
         twin.name = "buffers/MODELS/model.json";
         twin.data = "{}";
         a.records.insert(a.records.begin(), twin);
       }),
       kRefused, kUnsafe, "equal up to case"},
      {"Z26", b, named_last("../../../evil"), kRefused, kUnsafe, "\"..\" part"},
      {"Z28", b, named_last("buffers/models/model.json\0.txt"s), kRefused, kUnsafe, "NUL"},
      {"Z29", b, named_last("buffers/" + std::string(65000, 'n')), kRefused, kUnsafe,
       "65008 bytes"},
      {"Z31", b, named_last(""), kRefused, kUnsafe, "empty name"},
      {"Z32", b, container([](TestArchive& a) {
         for (TestRecord& x : a.records) x.name = x.name.substr(8);
       }),
       kRefused, kForeign, "holds no exported program"},
      {"Z34", b, record(kWeight, [](TestRecord& x) { x.flags = 1; }), kRefused, kUnsafe,
       "encrypted"},
      {"Z35", b, record(kWeight, [](TestRecord& x) { x.method = 99; }), kRefused, kUnsafe,
       "compressed (method 99)"},
      {"Z37", b, record(kModel, [](TestRecord& x) { x.crc = 77; }), kRefused, ErrorCode::kChecksum,
       "buffers/models/model.json"},
      {"Z38", b, container([](TestArchive& a) { a.prefix = std::string(4096, 'j'); }), kRefused,
       kUnsafe, "belong to no record"},
      {"Z40", b, container([](TestArchive& a) { a.suffix = std::string(100'000, 'j'); }), kRefused,
       kCorrupt, ""},
      {"Z41", b,
       container([](TestArchive& a) { a.comment = "PK\x05\x06"s + std::string(18, '\0'); }),
       kRefused, kCorrupt, ""},
      {"Z43", b, container([](TestArchive& a) { a.disk = 1; }), kRefused, kCorrupt,
       "several disks"},
      {"Z44", b, record(kWeight, [](TestRecord& x) { x.attributes = 0x10; }), kRefused, kUnsafe,
       "marked as a directory"},
      {"Z46", b, record(kWeight, [](TestRecord& x) { x.method = 8; }), kRefused, kUnsafe,
       "compressed (method 8)"},
      {"Z47",
       b,
       container([](TestArchive& a) {
         for (TestRecord& x : a.records) x.local_extra.clear();
         a.records[0].local_extra = "\x42\x46\x01\0Z"s;
       }),
       kAccepted,
       {},
       {}},
      {"Z49", b,
       record(kModel,
              [](TestRecord& x) {
                x.method = 8;
                x.data = x.data.substr(0, 100);
              }),
       kRefused, kUnsafe, "compressed"},
      {"Z50", b,
       record(kModel,
              [](TestRecord& x) {
                x.method = 8;
                x.size = 10;
              }),
       kRefused, kUnsafe, "compressed"},
      {"Z52", b, bytes([](std::string s) {
         const std::size_t entry = s.rfind("PK\x01\x02");
         s[entry + 31] = '\x7f';
         return s;
       }),
       kRefused, kCorrupt, "runs past the directory"},
      {"Z53", b, bytes([](std::string s) { return "PYTORCH1" + s.substr(0, 100); }), kRefused,
       kForeign, "preview format"},
      {"Z55", b, container([](TestArchive& a) {
         a.records.resize(2);
         a.records[0].name = "archive/data.pkl";
         a.records[1].name = "archive/data/0";
       }),
       kRefused, ErrorCode::kPickleFile, "torch.save file"},

      {"A01", b, removed("archive_format"), kRefused, kMissing, "archive_format"},
      {"A03", b, contents("archive_version", "999"), kRefused, kVersion, "archive version '999'"},
      {"A04", b, contents("archive_version", "-1"), kRefused, kVersion, "archive version '-1'"},
      {"A06", b, contents(".data/version", "99999999999999999999999"), kRefused, kVersion,
       "container version"},
      {"A07", b, contents(".data/version", "abc"), kRefused, kVersion, "container version 'abc'"},
      {"A09", b, contents("byteorder", "big"), kRefused, kVersion, "byte order 'big'"},
      {"A10", b, removed(kModel), kRefused, kForeign, "holds no exported program"},
      {"A12", b, weight([](Json& w) { w["path_name"] = "weight_77"; }), kRefused, kMissing,
       "weight_77"},
      {"A13", b, weight([](Json& w) { w["path_name"] = "../../models/model.json"; }), kRefused,
       schema, "a bare record name is wanted"},
      {"A15", b, contents("data/sample_inputs/model.pt", kPickle), kAccepted, {}, {}},
      {"A16", b, weight([](Json& w) { w["use_pickle"] = true; }), kRefused,
       ErrorCode::kPickledWeight, "never opened"},
      {"A18", b, weight([](Json& w) { w["path_name"] = "custom_obj_0"; }), kRefused,
       ErrorCode::kUnsupported, "custom object"},
      {"A19", b, with_record("data/weights/model.pt", kPickle), kRefused, ErrorCode::kPickleFile,
       "data/weights/model.pt"},
      {"A21", b, renamed(kModel, "buffers/models/../../x.json"), kRefused, kUnsafe, "\"..\" part"},
      {"A22", b, with_record("models/readme.txt", "hello"), kAccepted, {}, {}},

      {"J02", r, contents(kModel, ""), kRefused, syntax, "empty"},
      {"J03", r, contents(kModel, std::string(1'000'000, '[')), kRefused, syntax,
       "models/model.json"},
      {"J05", r, argument({{"as_int", 9223372036854775808u}}), kRefused, schema,
       "inputs[0].arg.as_int: 9223372036854775808 does not fit an int64"},
      {"J06", r, argument({{"as_int", 0.5}}), kRefused, schema, "0.5 found, an integer is wanted"},
      {"J08", r, replaced(kModel, "\"as_tensor\": {\"name\": \"x\"}", "\"as_float\": 1e400"),
       kRefused, syntax, "not valid JSON"},
      {"J09", r, replaced(kModel, "\"nodes\": [", "\"nodes\": [], \"nodes\": ["), kRefused, schema,
       "the key 'nodes' occurs twice"},
      {"J11", r, replaced(kModel, "\"name\": \"relu\"", "\"name\": \"rel\xff\""), kRefused, syntax,
       "not valid JSON"},
      {"J12", r, replaced(kModel, "\"name\": \"relu\"", "\"name\": \"rel\\ud800\""), kRefused,
       syntax, "not valid JSON"},
      {"J14", r, record(kModel, [](TestRecord& x) { x.data += " x"; }), kRefused, syntax,
       "not valid JSON"},
      {"J15", r, model([](Json& m) { m["brand_new"] = 1; }), kAccepted, {}, {}},
      {"J17", r, argument(Json::object()), kRefused, schema, "0 keys found"},
      {"J18", r, argument({{"as_zzz", 1}}), kRefused, schema, "unknown tag 'as_zzz' of Argument"},
      {"J20", r, model([](Json& m) { m.erase("graph_module"); }), kRefused, schema,
       "the key 'graph_module' is missing"},
      {"J21", r, model([](Json& m) { m["schema_version"]["major"] = 99; }), kRefused, kVersion,
       "schema version 99"},
      {"J23", r, contents(kModel, "[]"), kRefused, schema, "an array found, an object is wanted"},
      {"J24",
       r,
       model([](Json& m) {
         node_of(m, 0)["metadata"]["stack_trace"] = std::string(50'000'000, 's');
       }),
       kAccepted,
       {},
       {}},
      {"A12c", b, contents(kConfig, "{}"), kRefused, schema, "'config' is missing"},
  };
}

}  // namespace fx::io::testing
