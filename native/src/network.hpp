// The network, filled from an ONNX file by the library's parser.
#pragma once
#include <string>
#include <vector>

#include "library.hpp"
#include "listeners.hpp"
#include "request.hpp"

namespace trtforge {

// One tensor at the edge of the network.
struct NetworkTensor : TensorFacts {
  bool shapeTensor = false;
};

// What an IParserError states, and that in one sentence.
ParserError parserError(const InferenceLibrary& library, void* error);
std::string sentenceFor(const ParserError& error);

// The parser lives until the build is over: the network may point into its weights.
class Parser {
 public:
  // Throws TF_LIBRARY_LOAD_FAILED, TF_BUILDER_UNAVAILABLE.
  Parser(const InferenceLibrary& library, const std::string& path, const Facade& network, Listener& listener);
  ~Parser();
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // With bits of OnnxParserFlags, or 0 for the parser's own. Throws TF_MODEL_REJECTED with every error of the parser.
  void parse(const std::string& modelPath, std::uint32_t flags, Listener& listener);

 private:
  template <class Function, class... Given>
  auto call(const Function& method, Given... given) const {
    return library_.call(object_, method, given...);
  }
  std::vector<ParserError> errors() const;

  const InferenceLibrary& library_;
  void* object_ = nullptr;
};

std::vector<NetworkTensor> networkInputs(const InferenceLibrary& library, const Facade& network);
std::vector<NetworkTensor> networkOutputs(const InferenceLibrary& library, const Facade& network);

}  // namespace trtforge
