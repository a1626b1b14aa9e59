// What a parse function of nvinfer uses of its interface: names and types, for tests without DeepStream.
#pragma once
#include <vector>

enum NvDsInferDataType { FLOAT = 0, HALF = 1 };

struct NvDsInferDims {
  unsigned int numDims, d[8], numElements;
};

struct NvDsInferLayerInfo {
  NvDsInferDataType dataType;
  NvDsInferDims inferDims;
  int bindingIndex;
  const char *layerName;
  void *buffer;
  int isInput;
};

struct NvDsInferNetworkInfo {
  unsigned int width, height, channels;
};

struct NvDsInferObjectDetectionInfo {
  unsigned int classId;
  float left, top, width, height, detectionConfidence, rotation_angle;
};

struct NvDsInferParseDetectionParams {
  unsigned int numClassesConfigured;
  std::vector<float> perClassPreclusterThreshold;
};

#define CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(function)                                                \
  static_assert(sizeof(bool (*)(std::vector<NvDsInferLayerInfo> const &, NvDsInferNetworkInfo const &, \
                                NvDsInferParseDetectionParams const &,                             \
                                std::vector<NvDsInferObjectDetectionInfo> &)) == sizeof(&function))
