// Times an engine on the GPU, one inference after another, with nothing of JavaScript in between.
//
// What is timed follows trtexec (10.x), so that numbers can be held side by side:
//   three CUDA streams a context (input, compute, output); two inferences under way at a time, so that the copy in of
//   one overlaps the compute of the one before; both use the same buffers, which all inferences fill with the same
//   bytes; a CUDA graph holds the enqueue alone, never the copies; events are recorded around copy in, compute and copy
//   out; the host's enqueue time is that of the enqueue or graph launch alone; all streams start at one event.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "listeners.hpp"
#include "measure_clock.hpp"
#include "tensors.hpp"

namespace trtforge {

class Engine;

struct MeasureInput {
  std::string name;
  std::vector<char> bytes;
};

struct MeasureRequest {
  std::int32_t profile = 0;
  std::vector<InputShape> shapes;
  std::vector<MeasureInput> inputs;
  std::int32_t streams = 1;
  bool threads = false;  // a host thread for each stream in place of one for all
  double warmUpMs = 0;
  double durationMs = 0;
  std::int64_t iterations = 1;
  bool transfers = false;
  bool graph = false;
  bool spinWait = false;
  double idleMs = 0;
};

struct Measurement {
  // By the start of their input; the first timed event is 0.
  std::vector<Sample> samples;
  double wallMs = 0;  // GPU's clock, as trtexec counts: from the first timed input to the last output
  std::int64_t warmUpInferences = 0;
  bool graph = false;
  std::string graphRefusal;
  std::int64_t peakUsedBytes = 0;
  std::int64_t totalBytes = 0;
};

// Makes its own contexts and lets go of them. Throws TF_SESSION_INPUT, TF_CONTEXT_FAILED, TF_GPU_MEMORY, TF_RUN_FAILED,
// TF_CANCELLED.
Measurement measure(const std::shared_ptr<Engine>& engine, const MeasureRequest& request, Listener& listener);

}  // namespace trtforge
