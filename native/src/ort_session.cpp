#include "ort_session.hpp"

#include <algorithm>

#include "cuda.hpp"
#include "files.hpp"

namespace trtforge::ort {

namespace {

constexpr std::int32_t kDeviceAllocator = 0, kDefaultMemory = 0;

bool mentionsLoading(const std::string& text) {
  return text.find("load") != std::string::npos && text.find("librar") != std::string::npos;
}

// A provider's library that does not load is another failure than an option that it does not take.
template <class Call>
void ofProvider(const char* otherwise, Call call) {
  try {
    call();
  } catch (const Failure& failure) {
    if (mentionsLoading(failure.message) || failure.message.find("libonnxruntime_providers") != std::string::npos)
      throw Failure("TF_ONNXRUNTIME_MISSING", failure.message);
    throw Failure(otherwise, failure.message);
  }
}

struct Texts {
  explicit Texts(const Settings& settings) {
    for (const auto& [key, value] : settings) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  }
  std::vector<const char*> keys, values;
};

// Bits of an element by TensorProto.DataType; 0: not plain numbers.
constexpr int kBits[] = {0, 32, 8, 8, 16, 16, 32, 64, 0, 8, 16, 64, 32, 64, 64, 128, 16, 8, 8, 8, 8, 4, 4};

}  // namespace

Session::Session(const Library& library, const OpenRequest& request) : library_(library) {
  options_ = Owned(library, Slot::ReleaseSessionOptions, library.made(Slot::CreateSessionOptions));
  library.check(Slot::SetSessionLogSeverityLevel, options_.get(), std::int32_t{3});
  if (request.threads > 0) library.check(Slot::SetIntraOpNumThreads, options_.get(), std::int32_t{request.threads});
  for (const auto& [key, value] : request.config)
    library.check(Slot::AddSessionConfigEntry, options_.get(), key.c_str(), value.c_str());
  if (!request.profilePrefix.empty())
    library.check(Slot::EnableProfiling, options_.get(), request.profilePrefix.c_str());
  for (const Provider& provider : request.providers) append(provider);
  session_ = Owned(library, Slot::ReleaseSession, load(request));
  hostMemory_ = Owned(library, Slot::ReleaseMemoryInfo,
                      library.made(Slot::CreateCpuMemoryInfo, kDeviceAllocator, kDefaultMemory));
  void* device = request.providers.empty() ? library.made(Slot::CreateCpuMemoryInfo, kDeviceAllocator, kDefaultMemory)
                                           : library.made(Slot::CreateMemoryInfo, "Cuda", kDeviceAllocator,
                                                          std::int32_t{request.device}, kDefaultMemory);
  deviceMemory_ = Owned(library, Slot::ReleaseMemoryInfo, device);
  const bool isRecorded = std::any_of(request.config.begin(), request.config.end(), [](const auto& entry) {
    return entry.first == "session.record_ep_graph_assignment_info";
  });
  if (isRecorded && library.has(Slot::Session_GetEpGraphAssignmentInfo)) readPlacement();
}

std::shared_ptr<Session> Session::open(const OpenRequest& request) {
  const std::shared_ptr<Session> session(new Session(Library::at(request.library), request));
  session->worker_ = std::make_unique<Worker>();
  return session;
}

Session::~Session() { close(); }

// ONNX Runtime looks for external data beside the model, and elsewhere for a model in memory only.
void* Session::load(const OpenRequest& request) {
  const void* environment = library_.environment();
  if (request.weightsFolder.empty())
    return library_.made(Slot::CreateSession, environment, request.modelPath.c_str(), options_.get());
  library_.check(Slot::AddSessionConfigEntry, options_.get(), "session.model_external_initializers_file_folder_path",
                 request.weightsFolder.c_str());
  const std::vector<char> bytes = readFile(request.modelPath);
  return library_.made(Slot::CreateSessionFromArray, environment, bytes.data(),
                       static_cast<std::uint64_t>(bytes.size()), options_.get());
}

void Session::append(const Provider& provider) {
  const bool cuda = provider.name == "cuda";
  const auto& create = cuda ? Slot::CreateCUDAProviderOptions : Slot::CreateTensorRTProviderOptions;
  const auto& update = cuda ? Slot::UpdateCUDAProviderOptions : Slot::UpdateTensorRTProviderOptions;
  const auto& add = cuda ? Slot::SessionOptionsAppendExecutionProvider_CUDA_V2
                         : Slot::SessionOptionsAppendExecutionProvider_TensorRT_V2;
  const Owned options(library_, cuda ? Slot::ReleaseCUDAProviderOptions : Slot::ReleaseTensorRTProviderOptions,
                      library_.made(create));
  const Texts texts(provider.options);
  ofProvider("TF_USAGE",
             [&] { library_.check(update, options.get(), texts.keys.data(), texts.values.data(), texts.keys.size()); });
  ofProvider("TF_ONNXRUNTIME_FAILED", [&] { library_.check(add, options_.get(), options.get()); });
}

void Session::readPlacement() {
  const void* const* subgraphs = nullptr;
  std::size_t count = 0;
  library_.check(Slot::Session_GetEpGraphAssignmentInfo, session_.get(), &subgraphs, &count);
  for (std::size_t i = 0; i < count; ++i) {
    const char* provider = nullptr;
    library_.check(Slot::EpAssignedSubgraph_GetEpName, subgraphs[i], &provider);
    const void* const* nodes = nullptr;
    std::size_t many = 0;
    library_.check(Slot::EpAssignedSubgraph_GetNodes, subgraphs[i], &nodes, &many);
    for (std::size_t n = 0; n < many; ++n) {
      const char *name = nullptr, *operatorType = nullptr;
      library_.check(Slot::EpAssignedNode_GetName, nodes[n], &name);
      library_.check(Slot::EpAssignedNode_GetOperatorType, nodes[n], &operatorType);
      placement_.push_back({provider, name, operatorType});
    }
  }
}

std::string Session::endProfiling() {
  void* allocator = library_.made(Slot::GetAllocatorWithDefaultOptions);
  char* path = nullptr;
  library_.check(Slot::SessionEndProfiling, session_.get(), allocator, &path);
  const std::string file = path;
  library_.check(Slot::AllocatorFree, allocator, path);
  return file;
}

Worker& Session::worker() const {
  if (stopped_) throw Failure("TF_SESSION_CLOSED", "The session is closed.");
  return *worker_;
}

void Session::stop() {
  stopped_ = true;
  for (const auto& known : bindings_)
    if (const auto binding = known.lock()) binding->cancel();
}

void Session::close() {
  if (worker_ == nullptr) return;
  stop();
  if (cuda::ending()) {
    // The thread may be inside a driver that is going away: all of it is left behind.
    (void)worker_.release();
    return;
  }
  worker_.reset();
  for (const auto& known : bindings_)
    if (const auto binding = known.lock()) binding->release();
  kept_.clear();
  session_.reset();
}

Binding::Binding(std::shared_ptr<Session> session, BindRequest request)
    : session_(std::move(session)), request_(std::move(request)) {
  const Library& library = session_->library_;
  runOptions_ = Owned(library, Slot::ReleaseRunOptions, library.made(Slot::CreateRunOptions));
  binding_ = Owned(library, Slot::ReleaseIoBinding, library.made(Slot::CreateIoBinding, session_->session_.get()));
  static char nothing[64];
  for (const Input& input : request_.inputs) {
    void* data = input.bytes == 0 ? nothing : input.data;
    inputs_.emplace_back(library, Slot::ReleaseValue,
                         library.made(Slot::CreateTensorWithDataAsOrtValue, session_->hostMemory_.get(), data,
                                      input.bytes, input.shape.data(), input.shape.size(), input.type));
  }
}

std::shared_ptr<Binding> Binding::make(const std::shared_ptr<Session>& session, BindRequest request) {
  (void)session->worker();
  const std::shared_ptr<Binding> binding(new Binding(session, std::move(request)));
  auto& all = session->bindings_;
  all.erase(std::remove_if(all.begin(), all.end(), [](const auto& known) { return known.expired(); }), all.end());
  all.push_back(binding);
  return binding;
}

// A value that is bound lies where the model needs it: ONNX Runtime copies it to the GPU here.
void Binding::bindInputs() {
  const Library& library = session_->library_;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    library.check(Slot::BindInput, binding_.get(), request_.inputs[i].name.c_str(), inputs_[i].get());
  for (const auto& [name, value] : session_->kept_)
    if (std::none_of(request_.inputs.begin(), request_.inputs.end(),
                     [&name = name](const Input& input) { return input.name == name; }))
      library.check(Slot::BindInput, binding_.get(), name.c_str(), value.get());
  library.check(Slot::SynchronizeBoundInputs, binding_.get());
  bound_ = true;
}

void Binding::run() {
  const Library& library = session_->library_;
  const auto stays = [this](const Output& output) { return request_.resident || !output.feeds.empty(); };
  try {
    if (cancelled_) throw Failure("TF_CANCELLED", "The run was cancelled before it began.");
    if (!request_.resident || !bound_) bindInputs();
    values_.clear();
    // Bound again each time: an output keeps the memory of the run before, and its shape may be another in this one.
    library.call(Slot::ClearBoundOutputs, binding_.get());
    for (const Output& output : request_.outputs)
      library.check(Slot::BindOutputToDevice, binding_.get(), output.name.c_str(),
                    (stays(output) ? session_->deviceMemory_ : session_->hostMemory_).get());
    library.check(Slot::RunWithBinding, session_->session_.get(), runOptions_.get(), binding_.get());
    library.check(Slot::SynchronizeBoundOutputs, binding_.get());
  } catch (const Failure&) {
    if (cancelled_) throw Failure("TF_CANCELLED", "The run was cancelled.");
    throw;
  }
  void* allocator = library.made(Slot::GetAllocatorWithDefaultOptions);
  void** values = nullptr;
  std::size_t count = 0;
  library.check(Slot::GetBoundOutputValues, binding_.get(), allocator, &values, &count);
  for (std::size_t i = 0; i < count; ++i) values_.emplace_back(library, Slot::ReleaseValue, values[i]);
  if (values != nullptr) library.check(Slot::AllocatorFree, allocator, values);
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (const std::string& feeds = request_.outputs[i].feeds; !feeds.empty())
      session_->kept_[feeds] = std::move(values_[i]);
}

void Binding::cancel() {
  cancelled_ = true;
  if (runOptions_.get() != nullptr) session_->library_.check(Slot::RunOptionsSetTerminate, runOptions_.get());
}

std::vector<OutputTensor> Binding::outputs() const {
  const Library& library = session_->library_;
  std::vector<OutputTensor> tensors;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (request_.resident || values_[i].get() == nullptr) continue;
    OutputTensor tensor;
    tensor.name = request_.outputs[i].name;
    const Owned info(library, Slot::ReleaseTensorTypeAndShapeInfo,
                     library.made(Slot::GetTensorTypeAndShape, values_[i].get()));
    library.check(Slot::GetTensorElementType, info.get(), &tensor.type);
    std::size_t rank = 0;
    library.check(Slot::GetDimensionsCount, info.get(), &rank);
    tensor.shape.resize(rank);
    library.check(Slot::GetDimensions, info.get(), tensor.shape.data(), rank);
    std::size_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= static_cast<std::size_t>(size);
    const bool isKnown = tensor.type > 0 && tensor.type < static_cast<std::int32_t>(sizeof kBits / sizeof *kBits) &&
                         kBits[tensor.type] != 0;
    if (!isKnown)
      throw Failure("TF_SESSION_BINDING", "The output " + tensor.name + " is of ONNX type " +
                                              std::to_string(tensor.type) + ", which cannot be passed to JavaScript.");
    tensor.bytes = (elements * static_cast<std::size_t>(kBits[tensor.type]) + 7) / 8;
    void* data = nullptr;
    library.check(Slot::GetTensorMutableData, values_[i].get(), &data);
    tensor.data = data;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

void Binding::release() {
  values_.clear();
  inputs_.clear();
  binding_.reset();
}

}  // namespace trtforge::ort
