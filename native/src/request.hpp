// What JavaScript asks for and gets, as plain data: the types of src/addon/addon.ts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace trtforge {

struct Setting {
  std::string option;  // what the user asked for
  std::string call;
  std::vector<std::int64_t> arguments;
};

struct ProfileInput {
  std::string input;
  bool values = false;  // of a shape tensor, not dimensions
  std::vector<std::int64_t> min, opt, max;
};

struct BuildRequest {
  std::string inferenceLibrary, parserLibrary, pluginLibrary;
  std::string modelPath, planPath;
  std::uint32_t networkFlags = 0;
  std::uint32_t parserFlags = 0;  // 0: the parser's own
  std::vector<Setting> settings;
  std::vector<std::vector<ProfileInput>> profiles;
  std::vector<std::int64_t> computeCapabilities;
  std::vector<std::string> pluginPaths;
  std::vector<std::string> timingCachePaths;  // those that exist are merged
  std::string timingCacheOutputPath;          // empty: none
  bool keepBuilder = false;                   // the process ends after this build, and the builder with it
};

struct TensorFacts {
  std::string name;
  std::int32_t dtype = 0;
  std::vector<std::int64_t> shape;
};

struct BuildResult {
  double buildMs = 0;
  std::int64_t bytes = 0;
  std::string libraryVersion;
  std::int32_t layers = 0;
  std::vector<TensorFacts> inputs, outputs;
  const char* timingCache = "none";
  std::vector<std::string> timingCachesMerged, timingCachesRejected;  // paths of the request
};

struct ProfileRange {
  std::vector<std::int64_t> min, opt, max;
};

}  // namespace trtforge
