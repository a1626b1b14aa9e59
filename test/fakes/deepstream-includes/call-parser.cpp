// Calls the parse function FUNCTION on outputs from the standard input: `NAME ROWS COLUMNS values…` each; prints an object a line.
#include <deque>
#include <iostream>
#include <string>
#include "nvdsinfer_custom_impl.h"

extern "C" bool FUNCTION(std::vector<NvDsInferLayerInfo> const &, NvDsInferNetworkInfo const &,
                         NvDsInferParseDetectionParams const &, std::vector<NvDsInferObjectDetectionInfo> &);

int main() {
  std::deque<std::string> names;
  std::deque<std::vector<float>> buffers;
  std::vector<NvDsInferLayerInfo> layers;
  unsigned rows, columns;
  for (std::string name; std::cin >> name >> rows >> columns;) {
    names.push_back(name);
    buffers.emplace_back(rows * columns);
    for (float &value : buffers.back()) std::cin >> value;
    NvDsInferLayerInfo layer{};
    layer.dataType = FLOAT;
    layer.layerName = names.back().c_str();
    layer.buffer = buffers.back().data();
    layer.inferDims.numDims = 2;
    layer.inferDims.d[0] = rows;
    layer.inferDims.d[1] = columns;
    layers.push_back(layer);
  }
  NvDsInferParseDetectionParams params{};
  params.numClassesConfigured = 2;
  params.perClassPreclusterThreshold = {0.25f, 0.25f};
  std::vector<NvDsInferObjectDetectionInfo> objects;
  if (!FUNCTION(layers, {100, 50, 3}, params, objects)) return 1;
  for (const auto &each : objects)
    std::cout << each.classId << ' ' << each.detectionConfidence << ' ' << each.left << ' ' << each.top << ' '
              << each.width << ' ' << each.height << '\n';
}
