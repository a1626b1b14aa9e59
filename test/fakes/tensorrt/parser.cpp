// A fake for libnvonnxparser: it accepts every file, except one that the test settings refused.
#include "refit.hpp"

namespace fake {

namespace {

struct Error {
  void** table;
  int node;
};

const char* name(Error* self) { return self->node == 0 ? "first" : "second"; }
const char* opType(Error*) { return "Frobnicate"; }
const char* description(Error*) { return "No importer registered for op: Frobnicate"; }
const char* file(Error*) { return "ModelImporter.cpp"; }
int number(Error* self) { return self->node; }
Table errorTable = Table()
                       .put(Slot::IParserError_code_0, number)
                       .put(Slot::IParserError_node_0, number)
                       .put(Slot::IParserError_line_0, number)
                       .put(Slot::IParserError_desc_0, description)
                       .put(Slot::IParserError_file_0, file)
                       .put(Slot::IParserError_nodeName_0, name)
                       .put(Slot::IParserError_nodeOperator_0, opType);
Error errors[] = {{errorTable.slots(), 0}, {errorTable.slots(), 1}};

void setFlags(void*, std::uint32_t flags) { record("IParser setFlags " + std::to_string(flags)); }
bool refuses() { return std::strcmp(setting("FAKE_MODEL"), "refused") == 0; }
bool parseFromFile(void*, const char* path, int verbosity) {
  record(std::string("parseFromFile ") + path + " " + std::to_string(verbosity));
  return !refuses();
}
int errorCount(void*) { return refuses() ? 2 : 0; }
Error* errorAt(void*, int index) { return &errors[index]; }
void destroyParser(Worker* self) {
  record("destroy IParser");
  delete self;
}
Table parserTable = Table()
                        .put(Slot::IParser_setFlags_1, setFlags)
                        .put(Slot::IParser_parseFromFile_2, parseFromFile)
                        .put(Slot::IParser_getNbErrors_0, errorCount)
                        .put(Slot::IParser_getError_1, errorAt)
                        .put(Slot::IParser_destroy_deleting_0, destroyParser);

#if FAKE_GENERATION != 0
// The worker keeps the refitter as its parent.
bool refitFromFile(Worker* self, const char* path) {
  record(std::string("refitFromFile ") + path);
  auto& refitter = *static_cast<Refitter*>(self->parent);
  for (const auto& [name, value] : weightsOf(path))
    if (refitter.takes.count(name) != 0) refitter.given[name] = value;
  return !refuses();
}
void destroyParserRefitter(Worker* self) {
  record("destroy IParserRefitter");
  delete self;
}
Table parserRefitterTable = Table()
                                .put(Slot::IParserRefitter_refitFromFile_1, refitFromFile)
                                .put(Slot::IParserRefitter_getNbErrors_0, errorCount)
                                .put(Slot::IParserRefitter_getError_1, errorAt)
                                .put(Slot::IParserRefitter_destroy_deleting_0, destroyParserRefitter);
#endif

}  // namespace

extern "C" {

#if FAKE_GENERATION != 0
void* createNvOnnxParserRefitter_INTERNAL(Public* refitter, void*, std::int32_t) {
  record("create IParserRefitter");
  return new Worker{parserRefitterTable.slots(), "IParserRefitter", refitter->worker, "", 0};
}
#endif

int getNvOnnxParserVersion() { return 100; }

void* createNvOnnxParser_INTERNAL(void* network, void* logger, int version) {
  record("create IParser");
  record("createNvOnnxParser " + std::to_string(version) + (network != nullptr && logger != nullptr ? "" : " without network or logger"));
  return new Worker{parserTable.slots(), "IParser", nullptr, "", 0};
}

}

}  // namespace fake
