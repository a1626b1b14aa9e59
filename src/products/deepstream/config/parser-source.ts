import type { Layout } from './detector-outputs.js';

export const parserFile = (name: string): string => `nvdsinfer_custombboxparser_${name}.cpp`;
export const parserLibrary = (name: string): string => `libnvdsinfer_custombboxparser_${name}.so`;
export const parserFunction = (name: string): string => `NvDsInferParseCustom_${name.replace(/\W/g, '_')}`;

/** The loop over what an output holds, calling `add(class, score, left, top, right, bottom)` in pixels of the network. */
const loops: Readonly<Record<Layout['kind'], string>> = {
  // Centre and size in pixels, then a score a class; a column an anchor.
  boxes: `  const unsigned channels = scores->inferDims.d[0], anchors = scores->inferDims.d[1];
  const float *values = static_cast<const float *>(scores->buffer);
  for (unsigned anchor = 0; anchor < anchors; ++anchor) {
    const auto at = [&](unsigned channel) { return values[channel * anchors + anchor]; };
    unsigned best = 4;
    for (unsigned channel = 5; channel < channels; ++channel)
      if (at(channel) > at(best)) best = channel;
    add(best - 4, at(best), at(0) - at(2) / 2, at(1) - at(3) / 2, at(0) + at(2) / 2, at(1) + at(3) / 2);
  }`,
  // Corners in pixels, score, class; a row an object.
  'end-to-end': `  const unsigned rows = scores->inferDims.d[0];
  const float *row = static_cast<const float *>(scores->buffer);
  for (unsigned index = 0; index < rows; ++index, row += 6)
    if (row[5] >= 0) add(static_cast<unsigned>(row[5]), row[4], row[0], row[1], row[2], row[3]);`,
  // Logits; centre and size from 0 to 1; a row a query.
  detr: `  const unsigned queries = scores->inferDims.d[0], classes = scores->inferDims.d[1];
  const float *logits = static_cast<const float *>(scores->buffer);
  const float *box = static_cast<const float *>(boxes->buffer);
  const float width = network.width, height = network.height;
  for (unsigned query = 0; query < queries; ++query, logits += classes, box += 4) {
    const unsigned best = std::max_element(logits, logits + classes - BACKGROUND) - logits;
    float score = 1 / (1 + std::exp(-logits[best]));
    if (BACKGROUND) {
      const float most = *std::max_element(logits, logits + classes);
      float sum = 0;
      for (unsigned each = 0; each < classes; ++each) sum += std::exp(logits[each] - most);
      score = std::exp(logits[best] - most) / sum;
    }
    add(best, score, (box[0] - box[2] / 2) * width, (box[1] - box[3] / 2) * height,
        (box[0] + box[2] / 2) * width, (box[1] + box[3] / 2) * height);
  }`,
};

/** C++ of a parse function of nvinfer for a layout; its names are those of plain files and outputs without quotes. `background`: the last class is none, by softmax. */
export function parserSource(name: string, layout: Layout, background: boolean): string {
  const { kind, scores, boxes } = layout;
  const size = kind === 'detr' ? `\nconst unsigned BACKGROUND = ${background ? 1 : 0};` : '';
  return `// Reads the outputs of ${name}: ${kind}. Written by trtforge; yours to change.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>
#include "nvdsinfer_custom_impl.h"

namespace {
const char *const SCORES = "${scores}";
const char *const BOXES = "${boxes}";${size}

const NvDsInferLayerInfo *find(const std::vector<NvDsInferLayerInfo> &layers, const char *name) {
  for (const auto &layer : layers)
    if (std::strcmp(layer.layerName, name) == 0 && layer.dataType == FLOAT && layer.inferDims.numDims == 2)
      return &layer;
  return nullptr;
}
}  // namespace

extern "C" bool ${parserFunction(name)}(
    std::vector<NvDsInferLayerInfo> const &layers, NvDsInferNetworkInfo const &network,
    NvDsInferParseDetectionParams const &params, std::vector<NvDsInferObjectDetectionInfo> &objects) {
  const auto *scores = find(layers, SCORES), *boxes = find(layers, BOXES);
  if (scores == nullptr || boxes == nullptr) return false;
  const auto add = [&](unsigned category, float score, float left, float top, float right, float bottom) {
    if (category >= params.numClassesConfigured || !(score >= params.perClassPreclusterThreshold[category])) return;
    const float width = network.width, height = network.height;
    NvDsInferObjectDetectionInfo object{};
    object.classId = category;
    object.detectionConfidence = std::min(score, 1.0f);
    object.left = std::clamp(left, 0.0f, width);
    object.top = std::clamp(top, 0.0f, height);
    object.width = std::clamp(right, 0.0f, width) - object.left;
    object.height = std::clamp(bottom, 0.0f, height) - object.top;
    if (object.width > 0 && object.height > 0) objects.push_back(object);
  };
${loops[kind]}
  return true;
}

CHECK_CUSTOM_PARSE_FUNC_PROTOTYPE(${parserFunction(name)});
`;
}

export const parserMakefile = (name: string): string => `DEEPSTREAM ?= /opt/nvidia/deepstream/deepstream
CUDA ?= /usr/local/cuda
CXX ?= g++
CXXFLAGS ?= -O2 -Wall

${parserLibrary(name)}: ${parserFile(name)}
\t$(CXX) $(CXXFLAGS) -std=c++17 -shared -fPIC -I$(DEEPSTREAM)/sources/includes -I$(CUDA)/include -o $@ $<

clean:
\trm -f ${parserLibrary(name)}

.PHONY: clean
`;
