// Sessions of ONNX Runtime and the runs of one: a thread each, tensors bound, and outputs that may stay where they were
// computed.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ort_library.hpp"
#include "worker.hpp"

namespace trtforge::ort {

using Settings = std::vector<std::pair<std::string, std::string>>;

struct Provider {
  std::string name;  // `cuda` or `tensorrt`
  Settings options;
};

struct OpenRequest {
  std::string library, modelPath;
  std::string weightsFolder;        // of external data that is not beside the model; empty: beside it
  int threads = 0;                  // 0: ONNX Runtime's own number
  std::vector<Provider> providers;  // before the CPU, which is always there
  Settings config;
  std::string profilePrefix;  // empty: nothing is recorded
  int device = 0;
};

// Which provider took a node.
struct PlacedNode {
  std::string provider, name, operatorType;
};

class Binding;

class Session {
 public:
  // Throws TF_LIBRARY_…, TF_ONNXRUNTIME_MISSING for a provider's library, TF_USAGE for a provider's option that it
  // rejects, TF_ONNXRUNTIME_FAILED.
  static std::shared_ptr<Session> open(const OpenRequest& request);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Library& library() const { return library_; }
  // Empty before 1.24, and where nobody asked with `session.record_ep_graph_assignment_info`.
  const std::vector<PlacedNode>& placement() const { return placement_; }
  // The file with what was recorded so far.
  std::string endProfiling();
  // Throws TF_SESSION_CLOSED after `stop`.
  Worker& worker() const;
  // On the event loop: what runs ends, and nothing is run or bound any more.
  void stop();
  // Stops, ends the thread, and releases bindings and session. Harmless twice.
  void close();

 private:
  friend class Binding;
  Session(const Library& library, const OpenRequest& request);
  void* load(const OpenRequest& request);
  void append(const Provider& provider);
  void readPlacement();

  const Library& library_;
  Owned options_, session_;
  Owned hostMemory_, deviceMemory_;
  std::vector<PlacedNode> placement_;
  std::vector<std::weak_ptr<Binding>> bindings_;
  // Outputs of the last run that are inputs of the next, by the input's name.
  std::map<std::string, Owned> kept_;
  std::unique_ptr<Worker> worker_;
  std::atomic<bool> stopped_{false};
};

struct Input {
  std::string name;
  std::int32_t type = 0;  // TensorProto.DataType
  std::vector<std::int64_t> shape;
  void* data = nullptr;  // the caller's, until the binding is over
  std::size_t bytes = 0;
};

struct Output {
  std::string name;
  std::string feeds;  // the input of the next run that it becomes; it then stays on the device. Empty: none
};

struct BindRequest {
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  // Inputs are copied to the device once, and outputs stay there: runs without transfers.
  bool resident = false;
};

struct OutputTensor {
  std::string name;
  std::int32_t type = 0;
  std::vector<std::int64_t> shape;
  const void* data = nullptr;  // until the next run
  std::size_t bytes = 0;
};

// One set of inputs, run as often as one likes.
class Binding {
 public:
  static std::shared_ptr<Binding> make(const std::shared_ptr<Session>& session, BindRequest request);

  // On the session's thread. Throws TF_CANCELLED, TF_ONNXRUNTIME_FAILED, TF_SESSION_CLOSED.
  void run();
  // From any thread: the run ends after the node that it is at, and the binding runs no more.
  void cancel();
  // Outputs on the host of the last run.
  std::vector<OutputTensor> outputs() const;
  const std::shared_ptr<Session>& session() const { return session_; }

 private:
  friend class Session;
  Binding(std::shared_ptr<Session> session, BindRequest request);
  void bindInputs();
  void release();

  const std::shared_ptr<Session> session_;
  const BindRequest request_;
  std::vector<Owned> inputs_;
  Owned runOptions_, binding_;
  std::vector<Owned> values_;
  bool bound_ = false;
  std::atomic<bool> cancelled_{false};
};

}  // namespace trtforge::ort
