#include "network.hpp"

#include "dims.hpp"
#include "nvtx.hpp"

namespace trtforge {

namespace {

std::string textOf(const char* text) { return text == nullptr ? "" : text; }

NetworkTensor tensorFacts(const InferenceLibrary& library, void* object) {
  const Facade tensor(library, object);
  NetworkTensor facts;
  facts.name = textOf(tensor.call(Slot::ITensor_getName_0));
  facts.dtype = tensor.call(Slot::ITensor_getType_0);
  facts.shape = library.generation() == Generation::k8
                    ? tensor.call(declaredIn<Generation::k8>(Slot::ITensor_getDimensions_0)).toVector()
                    : tensor.call(declaredIn<Generation::k10>(Slot::ITensor_getDimensions_0)).toVector();
  facts.shapeTensor = tensor.call(Slot::ITensor_isShapeTensor_0);
  return facts;
}

template <class Count, class Get>
std::vector<NetworkTensor> tensors(const InferenceLibrary& library, const Facade& network, const Count& count,
                                   const Get& get) {
  std::vector<NetworkTensor> all;
  const std::int32_t number = network.call(count);
  for (std::int32_t i = 0; i < number; ++i) all.push_back(tensorFacts(library, network.call(get, i)));
  return all;
}

}  // namespace

std::string sentenceFor(const ParserError& error) {
  if (error.nodeName.empty() && error.nodeOperator.empty() && error.node < 0) return error.description;
  const std::string name = error.nodeName.empty() ? std::to_string(error.node) : error.nodeName;
  const std::string type = error.nodeOperator.empty() ? "" : " (" + error.nodeOperator + ")";
  return "node " + name + type + ": " + error.description;
}

ParserError parserError(const InferenceLibrary& library, void* error) {
  const auto text = [&](const auto& method) { return library.has(method) ? textOf(library.call(error, method)) : ""; };
  const auto number = [&](const auto& method) { return library.call(error, method); };
  ParserError facts;
  facts.code = number(Slot::IParserError_code_0);
  facts.node = number(Slot::IParserError_node_0);
  facts.nodeName = text(Slot::IParserError_nodeName_0);
  facts.nodeOperator = text(Slot::IParserError_nodeOperator_0);
  facts.description = text(Slot::IParserError_desc_0);
  facts.file = text(Slot::IParserError_file_0);
  facts.line = number(Slot::IParserError_line_0);
  return facts;
}

Parser::Parser(const InferenceLibrary& library, const std::string& path, const Facade& network, Listener& listener)
    : library_(library) {
  const SharedLibrary shared = SharedLibrary::open(path);
  const auto version = shared.symbol<int (*)()>("getNvOnnxParserVersion")();
  const auto create = shared.symbol<void* (*)(void*, void*, int)>("createNvOnnxParser_INTERNAL");
  object_ = create(network.get(), loggerFor(library), version);
  if (object_ == nullptr) throw listener.failure("TF_BUILDER_UNAVAILABLE", path + " could not create an ONNX parser.");
}

Parser::~Parser() {
  if (object_ != nullptr) call(Slot::IParser_destroy_deleting_0);
}

void Parser::parse(const std::string& modelPath, std::uint32_t flags, Listener& listener) {
  const nvtx::Range range("parse");
  constexpr int kWarnings = 2;
  if (flags != 0) call(Slot::IParser_setFlags_1, flags);
  const bool parsed = call(Slot::IParser_parseFromFile_2, modelPath.c_str(), kWarnings);
  const std::vector<ParserError> rejected = errors();
  if (parsed && rejected.empty()) return;
  if (rejected.empty()) throw listener.failure("TF_MODEL_REJECTED", modelPath + " could not be parsed.");
  std::string sentence = modelPath + " was rejected by the ONNX parser of " + library_.name() + ":";
  for (const ParserError& error : rejected) sentence += "\n" + sentenceFor(error);
  Failure failure("TF_MODEL_REJECTED", sentence);
  failure.parserErrors = rejected;
  throw failure;
}

std::vector<ParserError> Parser::errors() const {
  std::vector<ParserError> all;
  const int count = call(Slot::IParser_getNbErrors_0);
  for (int i = 0; i < count; ++i)
    if (void* error = call(Slot::IParser_getError_1, i)) all.push_back(parserError(library_, error));
  return all;
}

std::vector<NetworkTensor> networkInputs(const InferenceLibrary& library, const Facade& network) {
  return tensors(library, network, Slot::INetworkDefinition_getNbInputs_0, Slot::INetworkDefinition_getInput_1);
}

std::vector<NetworkTensor> networkOutputs(const InferenceLibrary& library, const Facade& network) {
  return tensors(library, network, Slot::INetworkDefinition_getNbOutputs_0, Slot::INetworkDefinition_getOutput_1);
}

}  // namespace trtforge
