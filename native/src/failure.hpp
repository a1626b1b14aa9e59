// How every part of the addon fails: with a code of src/errors.ts, one sentence, and facts for machines.
#pragma once
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace trtforge {

// One refusal of the ONNX parser.
struct ParserError {
  int code = 0;
  int node = -1;
  std::string nodeName;
  std::string nodeOperator;
  std::string description;
  std::string file;
  int line = 0;
};

struct Failure : std::exception {
  Failure(const char* code, std::string message) : code(code), message(std::move(message)) {}
  const char* what() const noexcept override { return message.c_str(); }

  const char* code;
  std::string message;
  // The library's last error lines, oldest first.
  std::vector<std::string> lines;
  std::vector<ParserError> parserErrors;
  // Facts by name: bytes needed, bytes free.
  std::vector<std::pair<const char*, double>> numbers;
};

}  // namespace trtforge
