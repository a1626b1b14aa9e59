// Generated from native/abi/*.json by scripts/build-native.mjs.
#pragma once
#include <cstdint>
#include <cstddef>

namespace trtforge {

template <class Number>
struct Dims;
using Dims32 = Dims<std::int32_t>;
using Dims64 = Dims<std::int64_t>;

// A function by its row in `kFunctions`.
struct AnyMethod {
  std::uint16_t row;
};
// With its type in each generation; `Absent` where the generation lacks it.
struct Absent;
template <class... Types>
struct Method : AnyMethod {};

namespace Slot {
inline constexpr Method<std::int32_t(const void*), std::int32_t(const void*), std::int32_t(const void*), std::int32_t(const void*)> IBuilderConfig_addOptimizationProfile_1{{0}};
inline constexpr Method<bool(const void*), bool(const void*), bool(const void*), bool(const void*)> IBuilderConfig_canRunOnDLA_1{{1}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_clearFlag_1{{2}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), Absent, Absent> IBuilderConfig_clearQuantizationFlag_1{{3}};
inline constexpr Method<void*(const void*, std::size_t), void*(const void*, std::size_t), void*(const void*, std::size_t), void*(const void*, std::size_t)> IBuilderConfig_createTimingCache_2{{4}};
inline constexpr Method<void(), void(), void(), void()> IBuilderConfig_destroy_complete_0{{5}};
inline constexpr Method<void(), void(), void(), void()> IBuilderConfig_destroy_deleting_0{{6}};
inline constexpr Method<void*(), void*(), Absent, Absent> IBuilderConfig_getAlgorithmSelector_0{{7}};
inline constexpr Method<Absent, Absent, const char*(), Absent> IBuilderConfig_getAllBuildRoutes_0{{8}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getAvgTimingIterations_0{{9}};
inline constexpr Method<Absent, Absent, const char*(), Absent> IBuilderConfig_getBuildRoute_0{{10}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getBuilderOptimizationLevel_0{{11}};
inline constexpr Method<void*(), void*(), Absent, Absent> IBuilderConfig_getCalibrationProfile_0{{12}};
inline constexpr Method<Absent, Absent, Absent, Absent> IBuilderConfig_getComputeCapability_1{{13}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getDLACore_0{{14}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getDefaultDeviceType_0{{15}};
inline constexpr Method<std::int32_t(const void*), std::int32_t(const void*), std::int32_t(const void*), std::int32_t(const void*)> IBuilderConfig_getDeviceType_1{{16}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getEngineCapability_0{{17}};
inline constexpr Method<bool(std::int32_t), bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> IBuilderConfig_getFlag_1{{18}};
inline constexpr Method<std::uint32_t(), std::uint32_t(), std::uint32_t(), std::uint32_t()> IBuilderConfig_getFlags_0{{19}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getHardwareCompatibilityLevel_0{{20}};
inline constexpr Method<void*(), void*(), Absent, Absent> IBuilderConfig_getInt8Calibrator_0{{21}};
inline constexpr Method<Absent, std::int64_t(), std::int64_t(), std::int64_t()> IBuilderConfig_getL2LimitForTiling_0{{22}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getMaxAuxStreams_0{{23}};
inline constexpr Method<Absent, std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getMaxNbTactics_0{{24}};
inline constexpr Method<std::size_t(), Absent, Absent, Absent> IBuilderConfig_getMaxWorkspaceSize_0{{25}};
inline constexpr Method<std::size_t(std::int32_t), std::size_t(std::int32_t), std::size_t(std::int32_t), std::size_t(std::int32_t)> IBuilderConfig_getMemoryPoolLimit_1{{26}};
inline constexpr Method<std::int32_t(), Absent, Absent, Absent> IBuilderConfig_getMinTimingIterations_0{{27}};
inline constexpr Method<Absent, Absent, Absent, Absent> IBuilderConfig_getNbComputeCapabilities_0{{28}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getNbOptimizationProfiles_0{{29}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getNbPluginsToSerialize_0{{30}};
inline constexpr Method<const char*(std::int32_t), const char*(std::int32_t), const char*(std::int32_t), const char*(std::int32_t)> IBuilderConfig_getPluginToSerialize_1{{31}};
inline constexpr Method<bool(std::int32_t), bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> IBuilderConfig_getPreviewFeature_1{{32}};
inline constexpr Method<void*(), void*(), void*(), void*()> IBuilderConfig_getProfileStream_0{{33}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getProfilingVerbosity_0{{34}};
inline constexpr Method<Absent, void*(), void*(), void*()> IBuilderConfig_getProgressMonitor_0{{35}};
inline constexpr Method<bool(std::int32_t), bool(std::int32_t), Absent, Absent> IBuilderConfig_getQuantizationFlag_1{{36}};
inline constexpr Method<std::uint32_t(), std::uint32_t(), Absent, Absent> IBuilderConfig_getQuantizationFlags_0{{37}};
inline constexpr Method<Absent, const char*(), const char*(), Absent> IBuilderConfig_getRemoteAutoTuningConfig_0{{38}};
inline constexpr Method<Absent, std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getRuntimePlatform_0{{39}};
inline constexpr Method<std::uint32_t(), std::uint32_t(), std::uint32_t(), std::uint32_t()> IBuilderConfig_getTacticSources_0{{40}};
inline constexpr Method<Absent, std::int32_t(), std::int32_t(), std::int32_t()> IBuilderConfig_getTilingOptimizationLevel_0{{41}};
inline constexpr Method<void*(), void*(), void*(), void*()> IBuilderConfig_getTimingCache_0{{42}};
inline constexpr Method<bool(const void*), bool(const void*), bool(const void*), bool(const void*)> IBuilderConfig_isDeviceTypeSet_1{{43}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IBuilderConfig_resetDeviceType_1{{44}};
inline constexpr Method<void(), void(), void(), void()> IBuilderConfig_reset_0{{45}};
inline constexpr Method<void(const void*), void(const void*), Absent, Absent> IBuilderConfig_setAlgorithmSelector_1{{46}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_setAvgTimingIterations_1{{47}};
inline constexpr Method<Absent, Absent, bool(const char*), Absent> IBuilderConfig_setBuildRoute_1{{48}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_setBuilderOptimizationLevel_1{{49}};
inline constexpr Method<bool(const void*), bool(const void*), Absent, Absent> IBuilderConfig_setCalibrationProfile_1{{50}};
inline constexpr Method<Absent, Absent, Absent, bool(std::int32_t, std::int32_t)> IBuilderConfig_setComputeCapability_2{{51}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_setDLACore_1{{52}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_setDefaultDeviceType_1{{53}};
inline constexpr Method<void(const void*, std::int32_t), void(const void*, std::int32_t), void(const void*, std::int32_t), void(const void*, std::int32_t)> IBuilderConfig_setDeviceType_2{{54}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_setEngineCapability_1{{55}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_setFlag_1{{56}};
inline constexpr Method<void(std::uint32_t), void(std::uint32_t), void(std::uint32_t), void(std::uint32_t)> IBuilderConfig_setFlags_1{{57}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_setHardwareCompatibilityLevel_1{{58}};
inline constexpr Method<void(const void*), void(const void*), Absent, Absent> IBuilderConfig_setInt8Calibrator_1{{59}};
inline constexpr Method<Absent, bool(std::int64_t), bool(std::int64_t), bool(std::int64_t)> IBuilderConfig_setL2LimitForTiling_1{{60}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), bool(std::int32_t), bool(std::int32_t)> IBuilderConfig_setMaxAuxStreams_1{{61}};
inline constexpr Method<Absent, void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_setMaxNbTactics_1{{62}};
inline constexpr Method<void(std::size_t), Absent, Absent, Absent> IBuilderConfig_setMaxWorkspaceSize_1{{63}};
inline constexpr Method<void(std::int32_t, std::size_t), void(std::int32_t, std::size_t), void(std::int32_t, std::size_t), void(std::int32_t, std::size_t)> IBuilderConfig_setMemoryPoolLimit_2{{64}};
inline constexpr Method<void(std::int32_t), Absent, Absent, Absent> IBuilderConfig_setMinTimingIterations_1{{65}};
inline constexpr Method<Absent, Absent, Absent, bool(std::int32_t)> IBuilderConfig_setNbComputeCapabilities_1{{66}};
inline constexpr Method<void(const void*, std::int32_t), void(const void*, std::int32_t), void(const void*, std::int32_t), void(const void*, std::int32_t)> IBuilderConfig_setPluginsToSerialize_2{{67}};
inline constexpr Method<void(std::int32_t, bool), void(std::int32_t, bool), void(std::int32_t, bool), void(std::int32_t, bool)> IBuilderConfig_setPreviewFeature_2{{68}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IBuilderConfig_setProfileStream_1{{69}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_setProfilingVerbosity_1{{70}};
inline constexpr Method<Absent, void(const void*), void(const void*), void(const void*)> IBuilderConfig_setProgressMonitor_1{{71}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), Absent, Absent> IBuilderConfig_setQuantizationFlag_1{{72}};
inline constexpr Method<void(std::uint32_t), void(std::uint32_t), Absent, Absent> IBuilderConfig_setQuantizationFlags_1{{73}};
inline constexpr Method<Absent, bool(const char*), bool(const char*), Absent> IBuilderConfig_setRemoteAutoTuningConfig_1{{74}};
inline constexpr Method<Absent, void(std::int32_t), void(std::int32_t), void(std::int32_t)> IBuilderConfig_setRuntimePlatform_1{{75}};
inline constexpr Method<bool(std::uint32_t), bool(std::uint32_t), bool(std::uint32_t), bool(std::uint32_t)> IBuilderConfig_setTacticSources_1{{76}};
inline constexpr Method<Absent, bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> IBuilderConfig_setTilingOptimizationLevel_1{{77}};
inline constexpr Method<bool(const void*, bool), bool(const void*, bool), bool(const void*, bool), bool(const void*, bool)> IBuilderConfig_setTimingCache_2{{78}};
inline constexpr Method<void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*)> IBuilder_buildEngineWithConfig_2{{79}};
inline constexpr Method<Absent, bool(const void*, const void*, const void*), bool(const void*, const void*, const void*), bool(const void*, const void*, const void*)> IBuilder_buildSerializedNetworkToStream_3{{80}};
inline constexpr Method<Absent, void*(const void*, const void*, const void*), void*(const void*, const void*, const void*), void*(const void*, const void*, const void*)> IBuilder_buildSerializedNetworkWithKernelText_3{{81}};
inline constexpr Method<void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*)> IBuilder_buildSerializedNetwork_2{{82}};
inline constexpr Method<void*(), void*(), void*(), void*()> IBuilder_createBuilderConfig_0{{83}};
inline constexpr Method<void*(std::uint32_t), void*(std::uint32_t), void*(std::uint32_t), void*(std::uint32_t)> IBuilder_createNetworkV2_1{{84}};
inline constexpr Method<void*(), void*(), void*(), void*()> IBuilder_createOptimizationProfile_0{{85}};
inline constexpr Method<void(), void(), void(), void()> IBuilder_destroy_complete_0{{86}};
inline constexpr Method<void(), void(), void(), void()> IBuilder_destroy_deleting_0{{87}};
inline constexpr Method<void*(), void*(), void*(), void*()> IBuilder_getErrorRecorder_0{{88}};
inline constexpr Method<void*(), void*(), void*(), void*()> IBuilder_getLogger_0{{89}};
inline constexpr Method<std::int32_t(), Absent, Absent, Absent> IBuilder_getMaxBatchSize_0{{90}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilder_getMaxDLABatchSize_0{{91}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilder_getMaxThreads_0{{92}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IBuilder_getNbDLACores_0{{93}};
inline constexpr Method<void*(), void*(), void*(), void*()> IBuilder_getPluginRegistry_0{{94}};
inline constexpr Method<bool(const void*, const void*), bool(const void*, const void*), bool(const void*, const void*), bool(const void*, const void*)> IBuilder_isNetworkSupported_2{{95}};
inline constexpr Method<bool(), bool(), Absent, Absent> IBuilder_platformHasFastFp16_0{{96}};
inline constexpr Method<bool(), bool(), Absent, Absent> IBuilder_platformHasFastInt8_0{{97}};
inline constexpr Method<bool(), bool(), Absent, Absent> IBuilder_platformHasTf32_0{{98}};
inline constexpr Method<void(), void(), void(), void()> IBuilder_reset_0{{99}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IBuilder_setErrorRecorder_1{{100}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IBuilder_setGpuAllocator_1{{101}};
inline constexpr Method<void(std::int32_t), Absent, Absent, Absent> IBuilder_setMaxBatchSize_1{{102}};
inline constexpr Method<bool(std::int32_t), bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> IBuilder_setMaxThreads_1{{103}};
inline constexpr Method<bool(std::int32_t), Absent, Absent, Absent> ICudaEngine_bindingIsInput_1{{104}};
inline constexpr Method<void*(), void*(), void*(), void*()> ICudaEngine_createEngineInspector_0{{105}};
inline constexpr Method<Absent, void*(const void*), void*(const void*), void*(const void*)> ICudaEngine_createExecutionContextWithRuntimeConfig_1{{106}};
inline constexpr Method<void*(), void*(), Absent, Absent> ICudaEngine_createExecutionContextWithoutDeviceMemory_0{{107}};
inline constexpr Method<void*(), Absent, Absent, Absent> ICudaEngine_createExecutionContext_0{{108}};
inline constexpr Method<Absent, void*(std::int32_t), void*(std::int32_t), void*(std::int32_t)> ICudaEngine_createExecutionContext_1{{109}};
inline constexpr Method<Absent, void*(const void*), void*(const void*), void*(const void*)> ICudaEngine_createRefitter_1{{110}};
inline constexpr Method<Absent, void*(), void*(), void*()> ICudaEngine_createRuntimeConfig_0{{111}};
inline constexpr Method<Absent, void*(), void*(), void*()> ICudaEngine_createSerializationConfig_0{{112}};
inline constexpr Method<void(), void(), void(), void()> ICudaEngine_destroy_complete_0{{113}};
inline constexpr Method<void(), void(), void(), void()> ICudaEngine_destroy_deleting_0{{114}};
inline constexpr Method<Absent, const char*(const char*), const char*(const char*), const char*(const char*)> ICudaEngine_getAliasedInputTensor_1{{115}};
inline constexpr Method<std::int32_t(std::int32_t), Absent, Absent, Absent> ICudaEngine_getBindingBytesPerComponent_1{{116}};
inline constexpr Method<std::int32_t(std::int32_t), Absent, Absent, Absent> ICudaEngine_getBindingComponentsPerElement_1{{117}};
inline constexpr Method<std::int32_t(std::int32_t), Absent, Absent, Absent> ICudaEngine_getBindingDataType_1{{118}};
inline constexpr Method<Dims32(std::int32_t), Absent, Absent, Absent> ICudaEngine_getBindingDimensions_1{{119}};
inline constexpr Method<const char*(std::int32_t), Absent, Absent, Absent> ICudaEngine_getBindingFormatDesc_1{{120}};
inline constexpr Method<std::int32_t(std::int32_t), Absent, Absent, Absent> ICudaEngine_getBindingFormat_1{{121}};
inline constexpr Method<std::int32_t(const char*), Absent, Absent, Absent> ICudaEngine_getBindingIndex_1{{122}};
inline constexpr Method<const char*(std::int32_t), Absent, Absent, Absent> ICudaEngine_getBindingName_1{{123}};
inline constexpr Method<std::int32_t(std::int32_t), Absent, Absent, Absent> ICudaEngine_getBindingVectorizedDim_1{{124}};
inline constexpr Method<Absent, std::int64_t(std::int32_t), std::int64_t(std::int32_t), std::int64_t(std::int32_t)> ICudaEngine_getDeviceMemorySizeForProfileV2_1{{125}};
inline constexpr Method<Absent, std::size_t(std::int32_t), Absent, Absent> ICudaEngine_getDeviceMemorySizeForProfile_1{{126}};
inline constexpr Method<Absent, std::int64_t(), std::int64_t(), std::int64_t()> ICudaEngine_getDeviceMemorySizeV2_0{{127}};
inline constexpr Method<std::size_t(), std::size_t(), Absent, Absent> ICudaEngine_getDeviceMemorySize_0{{128}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ICudaEngine_getEngineCapability_0{{129}};
inline constexpr Method<Absent, std::int64_t(std::int32_t), std::int64_t(std::int32_t), std::int64_t(std::int32_t)> ICudaEngine_getEngineStat_1{{130}};
inline constexpr Method<void*(), void*(), void*(), void*()> ICudaEngine_getErrorRecorder_0{{131}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ICudaEngine_getHardwareCompatibilityLevel_0{{132}};
inline constexpr Method<const char*(std::int32_t), const char*(std::int32_t), const char*(std::int32_t), const char*(std::int32_t)> ICudaEngine_getIOTensorName_1{{133}};
inline constexpr Method<std::int32_t(std::int32_t), Absent, Absent, Absent> ICudaEngine_getLocation_1{{134}};
inline constexpr Method<std::int32_t(), Absent, Absent, Absent> ICudaEngine_getMaxBatchSize_0{{135}};
inline constexpr Method<Absent, std::int64_t(), Absent, Absent> ICudaEngine_getMinimumWeightStreamingBudget_0{{136}};
inline constexpr Method<const char*(), const char*(), const char*(), const char*()> ICudaEngine_getName_0{{137}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ICudaEngine_getNbAuxStreams_0{{138}};
inline constexpr Method<std::int32_t(), Absent, Absent, Absent> ICudaEngine_getNbBindings_0{{139}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ICudaEngine_getNbIOTensors_0{{140}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ICudaEngine_getNbLayers_0{{141}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ICudaEngine_getNbOptimizationProfiles_0{{142}};
inline constexpr Method<void*(), void*(), void*(), void*()> ICudaEngine_getPImpl_0{{143}};
inline constexpr Method<Dims32(std::int32_t, std::int32_t, std::int32_t), Absent, Absent, Absent> ICudaEngine_getProfileDimensions_3{{144}};
inline constexpr Method<const std::int32_t*(std::int32_t, std::int32_t, std::int32_t), Absent, Absent, Absent> ICudaEngine_getProfileShapeValues_3{{145}};
inline constexpr Method<Dims32(const char*, std::int32_t, std::int32_t), Dims64(const char*, std::int32_t, std::int32_t), Dims64(const char*, std::int32_t, std::int32_t), Dims64(const char*, std::int32_t, std::int32_t)> ICudaEngine_getProfileShape_3{{146}};
inline constexpr Method<Absent, const std::int64_t*(const char*, std::int32_t, std::int32_t), const std::int64_t*(const char*, std::int32_t, std::int32_t), const std::int64_t*(const char*, std::int32_t, std::int32_t)> ICudaEngine_getProfileTensorValuesV2_3{{147}};
inline constexpr Method<Absent, const std::int32_t*(const char*, std::int32_t, std::int32_t), Absent, Absent> ICudaEngine_getProfileTensorValues_3{{148}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ICudaEngine_getProfilingVerbosity_0{{149}};
inline constexpr Method<Absent, std::int64_t(), std::int64_t(), std::int64_t()> ICudaEngine_getStreamableWeightsSize_0{{150}};
inline constexpr Method<std::uint32_t(), std::uint32_t(), std::uint32_t(), std::uint32_t()> ICudaEngine_getTacticSources_0{{151}};
inline constexpr Method<std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t)> ICudaEngine_getTensorBytesPerComponentV2_2{{152}};
inline constexpr Method<std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*)> ICudaEngine_getTensorBytesPerComponent_1{{153}};
inline constexpr Method<std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t)> ICudaEngine_getTensorComponentsPerElementV2_2{{154}};
inline constexpr Method<std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*)> ICudaEngine_getTensorComponentsPerElement_1{{155}};
inline constexpr Method<std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*)> ICudaEngine_getTensorDataType_1{{156}};
inline constexpr Method<const char*(const char*, std::int32_t), const char*(const char*, std::int32_t), const char*(const char*, std::int32_t), const char*(const char*, std::int32_t)> ICudaEngine_getTensorFormatDescV2_2{{157}};
inline constexpr Method<const char*(const char*), const char*(const char*), const char*(const char*), const char*(const char*)> ICudaEngine_getTensorFormatDesc_1{{158}};
inline constexpr Method<std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t)> ICudaEngine_getTensorFormatV2_2{{159}};
inline constexpr Method<std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*)> ICudaEngine_getTensorFormat_1{{160}};
inline constexpr Method<std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*)> ICudaEngine_getTensorIOMode_1{{161}};
inline constexpr Method<std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*)> ICudaEngine_getTensorLocation_1{{162}};
inline constexpr Method<Dims32(const char*), Dims64(const char*), Dims64(const char*), Dims64(const char*)> ICudaEngine_getTensorShape_1{{163}};
inline constexpr Method<std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t), std::int32_t(const char*, std::int32_t)> ICudaEngine_getTensorVectorizedDimV2_2{{164}};
inline constexpr Method<std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*)> ICudaEngine_getTensorVectorizedDim_1{{165}};
inline constexpr Method<Absent, std::int64_t(), std::int64_t(), std::int64_t()> ICudaEngine_getWeightStreamingAutomaticBudget_0{{166}};
inline constexpr Method<Absent, std::int64_t(), std::int64_t(), std::int64_t()> ICudaEngine_getWeightStreamingBudgetV2_0{{167}};
inline constexpr Method<Absent, std::int64_t(), Absent, Absent> ICudaEngine_getWeightStreamingBudget_0{{168}};
inline constexpr Method<Absent, std::int64_t(), std::int64_t(), std::int64_t()> ICudaEngine_getWeightStreamingScratchMemorySize_0{{169}};
inline constexpr Method<bool(), bool(), Absent, Absent> ICudaEngine_hasImplicitBatchDimension_0{{170}};
inline constexpr Method<Absent, bool(const char*), bool(const char*), bool(const char*)> ICudaEngine_isDebugTensor_1{{171}};
inline constexpr Method<bool(std::int32_t), Absent, Absent, Absent> ICudaEngine_isExecutionBinding_1{{172}};
inline constexpr Method<bool(), bool(), bool(), bool()> ICudaEngine_isRefittable_0{{173}};
inline constexpr Method<bool(std::int32_t), Absent, Absent, Absent> ICudaEngine_isShapeBinding_1{{174}};
inline constexpr Method<bool(const char*), bool(const char*), bool(const char*), bool(const char*)> ICudaEngine_isShapeInferenceIO_1{{175}};
inline constexpr Method<Absent, void*(const void*), void*(const void*), void*(const void*)> ICudaEngine_serializeWithConfig_1{{176}};
inline constexpr Method<void*(), void*(), void*(), void*()> ICudaEngine_serialize_0{{177}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> ICudaEngine_setErrorRecorder_1{{178}};
inline constexpr Method<Absent, bool(std::int64_t), bool(std::int64_t), bool(std::int64_t)> ICudaEngine_setWeightStreamingBudgetV2_1{{179}};
inline constexpr Method<Absent, bool(std::int64_t), Absent, Absent> ICudaEngine_setWeightStreamingBudget_1{{180}};
inline constexpr Method<void(), void(), void(), void()> IEngineInspector_destroy_complete_0{{181}};
inline constexpr Method<void(), void(), void(), void()> IEngineInspector_destroy_deleting_0{{182}};
inline constexpr Method<const char*(std::int32_t), const char*(std::int32_t), const char*(std::int32_t), const char*(std::int32_t)> IEngineInspector_getEngineInformation_1{{183}};
inline constexpr Method<void*(), void*(), void*(), void*()> IEngineInspector_getErrorRecorder_0{{184}};
inline constexpr Method<void*(), void*(), void*(), void*()> IEngineInspector_getExecutionContext_0{{185}};
inline constexpr Method<const char*(std::int32_t, std::int32_t), const char*(std::int32_t, std::int32_t), const char*(std::int32_t, std::int32_t), const char*(std::int32_t, std::int32_t)> IEngineInspector_getLayerInformation_2{{186}};
inline constexpr Method<void*(), void*(), void*(), void*()> IEngineInspector_getPImpl_0{{187}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IEngineInspector_setErrorRecorder_1{{188}};
inline constexpr Method<bool(const void*), bool(const void*), bool(const void*), bool(const void*)> IEngineInspector_setExecutionContext_1{{189}};
inline constexpr Method<bool(), bool(), bool(), bool()> IExecutionContext_allInputDimensionsSpecified_0{{190}};
inline constexpr Method<bool(), bool(), Absent, Absent> IExecutionContext_allInputShapesSpecified_0{{191}};
inline constexpr Method<void(), void(), void(), void()> IExecutionContext_destroy_complete_0{{192}};
inline constexpr Method<void(), void(), void(), void()> IExecutionContext_destroy_deleting_0{{193}};
inline constexpr Method<bool(const void*, const void*, const void*), Absent, Absent, Absent> IExecutionContext_enqueueV2_3{{194}};
inline constexpr Method<bool(const void*), bool(const void*), bool(const void*), bool(const void*)> IExecutionContext_enqueueV3_1{{195}};
inline constexpr Method<bool(std::int32_t, const void*, const void*, const void*), Absent, Absent, Absent> IExecutionContext_enqueue_4{{196}};
inline constexpr Method<bool(const void*), bool(const void*), bool(const void*), bool(const void*)> IExecutionContext_executeV2_1{{197}};
inline constexpr Method<bool(std::int32_t, const void*), Absent, Absent, Absent> IExecutionContext_execute_2{{198}};
inline constexpr Method<Dims32(std::int32_t), Absent, Absent, Absent> IExecutionContext_getBindingDimensions_1{{199}};
inline constexpr Method<Absent, void*(), void*(), void*()> IExecutionContext_getDebugListener_0{{200}};
inline constexpr Method<Absent, bool(const char*), bool(const char*), bool(const char*)> IExecutionContext_getDebugState_1{{201}};
inline constexpr Method<bool(), bool(), bool(), bool()> IExecutionContext_getDebugSync_0{{202}};
inline constexpr Method<void*(), void*(), void*(), void*()> IExecutionContext_getEngine_0{{203}};
inline constexpr Method<bool(), bool(), bool(), bool()> IExecutionContext_getEnqueueEmitsProfile_0{{204}};
inline constexpr Method<void*(), void*(), void*(), void*()> IExecutionContext_getErrorRecorder_0{{205}};
inline constexpr Method<void*(), void*(), void*(), void*()> IExecutionContext_getInputConsumedEvent_0{{206}};
inline constexpr Method<std::int64_t(const char*), std::int64_t(const char*), std::int64_t(const char*), std::int64_t(const char*)> IExecutionContext_getMaxOutputSize_1{{207}};
inline constexpr Method<const char*(), const char*(), const char*(), const char*()> IExecutionContext_getName_0{{208}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IExecutionContext_getNvtxVerbosity_0{{209}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IExecutionContext_getOptimizationProfile_0{{210}};
inline constexpr Method<void*(const char*), void*(const char*), void*(const char*), void*(const char*)> IExecutionContext_getOutputAllocator_1{{211}};
inline constexpr Method<void*(const char*), void*(const char*), void*(const char*), void*(const char*)> IExecutionContext_getOutputTensorAddress_1{{212}};
inline constexpr Method<void*(), void*(), void*(), void*()> IExecutionContext_getPImpl_0{{213}};
inline constexpr Method<std::size_t(), std::size_t(), std::size_t(), std::size_t()> IExecutionContext_getPersistentCacheLimit_0{{214}};
inline constexpr Method<void*(), void*(), void*(), void*()> IExecutionContext_getProfiler_0{{215}};
inline constexpr Method<Absent, void*(), void*(), void*()> IExecutionContext_getRuntimeConfig_0{{216}};
inline constexpr Method<bool(std::int32_t, const std::int32_t*), Absent, Absent, Absent> IExecutionContext_getShapeBinding_2{{217}};
inline constexpr Method<Dims32(std::int32_t), Absent, Absent, Absent> IExecutionContext_getStrides_1{{218}};
inline constexpr Method<void*(), void*(), void*(), void*()> IExecutionContext_getTemporaryStorageAllocator_0{{219}};
inline constexpr Method<void*(const char*), void*(const char*), void*(const char*), void*(const char*)> IExecutionContext_getTensorAddress_1{{220}};
inline constexpr Method<Dims32(const char*), Dims64(const char*), Dims64(const char*), Dims64(const char*)> IExecutionContext_getTensorShape_1{{221}};
inline constexpr Method<Dims32(const char*), Dims64(const char*), Dims64(const char*), Dims64(const char*)> IExecutionContext_getTensorStrides_1{{222}};
inline constexpr Method<Absent, bool(), bool(), bool()> IExecutionContext_getUnfusedTensorsDebugState_0{{223}};
inline constexpr Method<std::int32_t(std::int32_t, const void*), std::int32_t(std::int32_t, const void*), std::int32_t(std::int32_t, const void*), std::int32_t(std::int32_t, const void*)> IExecutionContext_inferShapes_2{{224}};
inline constexpr Method<bool(), bool(), bool(), bool()> IExecutionContext_reportToProfiler_0{{225}};
inline constexpr Method<Absent, bool(bool), bool(bool), bool(bool)> IExecutionContext_setAllTensorsDebugState_1{{226}};
inline constexpr Method<void(const void*, std::int32_t), void(const void*, std::int32_t), void(const void*, std::int32_t), void(const void*, std::int32_t)> IExecutionContext_setAuxStreams_2{{227}};
inline constexpr Method<bool(std::int32_t, Dims32), Absent, Absent, Absent> IExecutionContext_setBindingDimensions_2{{228}};
inline constexpr Method<Absent, bool(const void*), bool(const void*), Absent> IExecutionContext_setCommunicator_1{{229}};
inline constexpr Method<Absent, bool(const void*), bool(const void*), bool(const void*)> IExecutionContext_setDebugListener_1{{230}};
inline constexpr Method<void(bool), void(bool), void(bool), void(bool)> IExecutionContext_setDebugSync_1{{231}};
inline constexpr Method<Absent, void(const void*, std::int64_t), void(const void*, std::int64_t), void(const void*, std::int64_t)> IExecutionContext_setDeviceMemoryV2_2{{232}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IExecutionContext_setDeviceMemory_1{{233}};
inline constexpr Method<void(bool), void(bool), void(bool), void(bool)> IExecutionContext_setEnqueueEmitsProfile_1{{234}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IExecutionContext_setErrorRecorder_1{{235}};
inline constexpr Method<bool(const void*), bool(const void*), bool(const void*), bool(const void*)> IExecutionContext_setInputConsumedEvent_1{{236}};
inline constexpr Method<bool(std::int32_t, const std::int32_t*), Absent, Absent, Absent> IExecutionContext_setInputShapeBinding_2{{237}};
inline constexpr Method<bool(const char*, const Dims32*), bool(const char*, const Dims64*), bool(const char*, const Dims64*), bool(const char*, const Dims64*)> IExecutionContext_setInputShape_2{{238}};
inline constexpr Method<bool(const char*, const void*), bool(const char*, const void*), bool(const char*, const void*), bool(const char*, const void*)> IExecutionContext_setInputTensorAddress_2{{239}};
inline constexpr Method<void(const char*), void(const char*), void(const char*), void(const char*)> IExecutionContext_setName_1{{240}};
inline constexpr Method<bool(std::int32_t), bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> IExecutionContext_setNvtxVerbosity_1{{241}};
inline constexpr Method<bool(std::int32_t, const void*), bool(std::int32_t, const void*), bool(std::int32_t, const void*), bool(std::int32_t, const void*)> IExecutionContext_setOptimizationProfileAsync_2{{242}};
inline constexpr Method<bool(std::int32_t), Absent, Absent, Absent> IExecutionContext_setOptimizationProfile_1{{243}};
inline constexpr Method<bool(const char*, const void*), bool(const char*, const void*), bool(const char*, const void*), bool(const char*, const void*)> IExecutionContext_setOutputAllocator_2{{244}};
inline constexpr Method<Absent, bool(const char*, const void*), bool(const char*, const void*), bool(const char*, const void*)> IExecutionContext_setOutputTensorAddress_2{{245}};
inline constexpr Method<void(std::size_t), void(std::size_t), void(std::size_t), void(std::size_t)> IExecutionContext_setPersistentCacheLimit_1{{246}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IExecutionContext_setProfiler_1{{247}};
inline constexpr Method<bool(const void*), bool(const void*), bool(const void*), bool(const void*)> IExecutionContext_setTemporaryStorageAllocator_1{{248}};
inline constexpr Method<bool(const char*, const void*), bool(const char*, const void*), bool(const char*, const void*), bool(const char*, const void*)> IExecutionContext_setTensorAddress_2{{249}};
inline constexpr Method<Absent, bool(const char*, bool), bool(const char*, bool), bool(const char*, bool)> IExecutionContext_setTensorDebugState_2{{250}};
inline constexpr Method<Absent, bool(bool), bool(bool), bool(bool)> IExecutionContext_setUnfusedTensorsDebugState_1{{251}};
inline constexpr Method<Absent, std::size_t(), std::size_t(), std::size_t()> IExecutionContext_updateDeviceMemorySizeForShapes_0{{252}};
inline constexpr Method<void*(), void*(), void*(), void*()> IHostMemory_data_0{{253}};
inline constexpr Method<void(), void(), void(), void()> IHostMemory_destroy_complete_0{{254}};
inline constexpr Method<void(), void(), void(), void()> IHostMemory_destroy_deleting_0{{255}};
inline constexpr Method<std::size_t(), std::size_t(), std::size_t(), std::size_t()> IHostMemory_size_0{{256}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IHostMemory_type_0{{257}};
inline constexpr Method<void(), void(), void(), void()> ILayer_destroy_complete_0{{258}};
inline constexpr Method<void(), void(), void(), void()> ILayer_destroy_deleting_0{{259}};
inline constexpr Method<void*(std::int32_t), void*(std::int32_t), void*(std::int32_t), void*(std::int32_t)> ILayer_getInput_1{{260}};
inline constexpr Method<const char*(), const char*(), const char*(), const char*()> ILayer_getMetadata_0{{261}};
inline constexpr Method<const char*(), const char*(), const char*(), const char*()> ILayer_getName_0{{262}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ILayer_getNbInputs_0{{263}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ILayer_getNbOutputs_0{{264}};
inline constexpr Method<Absent, std::int32_t(), std::int32_t(), std::int32_t()> ILayer_getNbRanks_0{{265}};
inline constexpr Method<std::int32_t(std::int32_t), std::int32_t(std::int32_t), std::int32_t(std::int32_t), std::int32_t(std::int32_t)> ILayer_getOutputType_1{{266}};
inline constexpr Method<void*(std::int32_t), void*(std::int32_t), void*(std::int32_t), void*(std::int32_t)> ILayer_getOutput_1{{267}};
inline constexpr Method<std::int32_t(), std::int32_t(), Absent, Absent> ILayer_getPrecision_0{{268}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ILayer_getType_0{{269}};
inline constexpr Method<bool(std::int32_t), bool(std::int32_t), Absent, Absent> ILayer_outputTypeIsSet_1{{270}};
inline constexpr Method<bool(), bool(), Absent, Absent> ILayer_precisionIsSet_0{{271}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), Absent, Absent> ILayer_resetOutputType_1{{272}};
inline constexpr Method<void(), void(), Absent, Absent> ILayer_resetPrecision_0{{273}};
inline constexpr Method<void(std::int32_t, const void*), void(std::int32_t, const void*), void(std::int32_t, const void*), void(std::int32_t, const void*)> ILayer_setInput_2{{274}};
inline constexpr Method<void(const char*), void(const char*), void(const char*), void(const char*)> ILayer_setMetadata_1{{275}};
inline constexpr Method<void(const char*), void(const char*), void(const char*), void(const char*)> ILayer_setName_1{{276}};
inline constexpr Method<Absent, bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> ILayer_setNbRanks_1{{277}};
inline constexpr Method<void(std::int32_t, std::int32_t), void(std::int32_t, std::int32_t), Absent, Absent> ILayer_setOutputType_2{{278}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), Absent, Absent> ILayer_setPrecision_1{{279}};
inline constexpr Method<void(), void(), void(), void()> ILogger_destroy_complete_0{{280}};
inline constexpr Method<void(), void(), void(), void()> ILogger_destroy_deleting_0{{281}};
inline constexpr Method<Absent, Absent, std::int32_t(), std::int32_t()> ILogger_getAPILanguage_0{{282}};
inline constexpr Method<Absent, Absent, Absent, Absent> ILogger_getInterfaceInfo_0{{283}};
inline constexpr Method<void(std::int32_t, const char*), void(std::int32_t, const char*), void(std::int32_t, const char*), void(std::int32_t, const char*)> ILogger_log_2{{284}};
inline constexpr Method<void*(const void*, std::int32_t), void*(const void*, std::int32_t), void*(const void*, std::int32_t), void*(const void*, std::int32_t)> INetworkDefinition_addActivation_2{{285}};
inline constexpr Method<void*(const void*, const char*), void*(const void*, const char*), void*(const void*, const char*), void*(const void*, const char*)> INetworkDefinition_addAssertion_2{{286}};
inline constexpr Method<Absent, Absent, void*(const void*, const void*, const void*, std::int32_t, std::int32_t), void*(const void*, const void*, const void*, std::int32_t, std::int32_t)> INetworkDefinition_addAttentionV2_5{{287}};
inline constexpr Method<Absent, void*(const void*, const void*, const void*, std::int32_t, bool), void*(const void*, const void*, const void*, std::int32_t, bool), void*(const void*, const void*, const void*, std::int32_t, bool)> INetworkDefinition_addAttention_5{{288}};
inline constexpr Method<void*(const void*, std::int32_t), void*(const void*, std::int32_t), void*(const void*, std::int32_t), void*(const void*, std::int32_t)> INetworkDefinition_addCast_2{{289}};
inline constexpr Method<void*(const void*, std::int32_t), void*(const void*, std::int32_t), void*(const void*, std::int32_t), void*(const void*, std::int32_t)> INetworkDefinition_addConcatenation_2{{290}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_addConstant_2{{291}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_addConvolutionNd_5{{292}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_addConvolution_5{{293}};
inline constexpr Method<Absent, void*(const void*, const void*, std::int32_t, bool, bool), void*(const void*, const void*, std::int32_t, bool, bool), void*(const void*, const void*, std::int32_t, bool, bool)> INetworkDefinition_addCumulative_5{{294}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_addDeconvolutionNd_5{{295}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_addDeconvolution_5{{296}};
inline constexpr Method<Absent, void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t)> INetworkDefinition_addDequantizeV2_3{{297}};
inline constexpr Method<void*(const void*, const void*), void*(const void*, const void*), Absent, Absent> INetworkDefinition_addDequantize_2{{298}};
inline constexpr Method<Absent, void*(const void*, std::int32_t, std::int32_t, std::int64_t, const std::int64_t*, std::int64_t), void*(const void*, std::int32_t, std::int32_t, std::int64_t, const std::int64_t*, std::int64_t), void*(const void*, std::int32_t, std::int32_t, std::int64_t, const std::int64_t*, std::int64_t)> INetworkDefinition_addDistCollective_6{{299}};
inline constexpr Method<Absent, void*(const void*, const Dims64*, std::int32_t, std::int32_t), void*(const void*, const Dims64*, std::int32_t, std::int32_t), void*(const void*, const Dims64*, std::int32_t, std::int32_t)> INetworkDefinition_addDynamicQuantizeV2_4{{300}};
inline constexpr Method<Absent, void*(const void*, std::int32_t, std::int32_t, std::int32_t, std::int32_t), void*(const void*, std::int32_t, std::int32_t, std::int32_t, std::int32_t), void*(const void*, std::int32_t, std::int32_t, std::int32_t, std::int32_t)> INetworkDefinition_addDynamicQuantize_5{{301}};
inline constexpr Method<void*(const void*, std::int32_t, const char*), void*(const void*, std::int32_t, const char*), void*(const void*, std::int32_t, const char*), void*(const void*, std::int32_t, const char*)> INetworkDefinition_addEinsum_3{{302}};
inline constexpr Method<void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t)> INetworkDefinition_addElementWise_3{{303}};
inline constexpr Method<Absent, void*(const Dims64*, std::int32_t, std::int32_t), void*(const Dims64*, std::int32_t, std::int32_t), void*(const Dims64*, std::int32_t, std::int32_t)> INetworkDefinition_addFillV2_3{{304}};
inline constexpr Method<void*(Dims32, std::int32_t), void*(const Dims64*, std::int32_t), Absent, Absent> INetworkDefinition_addFill_2{{305}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_addFullyConnected_4{{306}};
inline constexpr Method<void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t)> INetworkDefinition_addGatherV2_3{{307}};
inline constexpr Method<void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t)> INetworkDefinition_addGather_3{{308}};
inline constexpr Method<void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*)> INetworkDefinition_addGridSample_2{{309}};
inline constexpr Method<void*(const void*), void*(const void*), void*(const void*), void*(const void*)> INetworkDefinition_addIdentity_1{{310}};
inline constexpr Method<void*(), void*(), void*(), void*()> INetworkDefinition_addIfConditional_0{{311}};
inline constexpr Method<void*(const char*, std::int32_t, Dims32), void*(const char*, std::int32_t, const Dims64*), void*(const char*, std::int32_t, const Dims64*), void*(const char*, std::int32_t, const Dims64*)> INetworkDefinition_addInput_3{{312}};
inline constexpr Method<Absent, void*(const void*, const void*, const void*, std::int32_t), void*(const void*, const void*, const void*, std::int32_t), void*(const void*, const void*, const void*, std::int32_t)> INetworkDefinition_addKVCacheUpdate_4{{313}};
inline constexpr Method<void*(const void*, std::int32_t, float, float, float), void*(const void*, std::int64_t, float, float, float), void*(const void*, std::int64_t, float, float, float), void*(const void*, std::int64_t, float, float, float)> INetworkDefinition_addLRN_5{{314}};
inline constexpr Method<void*(), void*(), void*(), void*()> INetworkDefinition_addLoop_0{{315}};
inline constexpr Method<void*(const void*, std::int32_t, const void*, std::int32_t), void*(const void*, std::int32_t, const void*, std::int32_t), void*(const void*, std::int32_t, const void*, std::int32_t), void*(const void*, std::int32_t, const void*, std::int32_t)> INetworkDefinition_addMatrixMultiply_4{{316}};
inline constexpr Method<Absent, void*(const void*, const void*, const void*), void*(const void*, const void*, const void*), void*(const void*, const void*, const void*)> INetworkDefinition_addMoE_3{{317}};
inline constexpr Method<Absent, void*(const void*, const void*, const void*, std::int32_t), void*(const void*, const void*, const void*, std::int32_t), void*(const void*, const void*, const void*, std::int32_t)> INetworkDefinition_addNMSV2_4{{318}};
inline constexpr Method<void*(const void*, const void*, const void*), void*(const void*, const void*, const void*), void*(const void*, const void*, const void*), void*(const void*, const void*, const void*)> INetworkDefinition_addNMS_3{{319}};
inline constexpr Method<Absent, void*(const void*, std::int32_t), void*(const void*, std::int32_t), void*(const void*, std::int32_t)> INetworkDefinition_addNonZeroV2_2{{320}};
inline constexpr Method<void*(const void*), void*(const void*), void*(const void*), void*(const void*)> INetworkDefinition_addNonZero_1{{321}};
inline constexpr Method<Absent, void*(const void*, const void*, const void*, std::uint32_t), void*(const void*, const void*, const void*, std::uint32_t), void*(const void*, const void*, const void*, std::uint32_t)> INetworkDefinition_addNormalizationV2_4{{322}};
inline constexpr Method<void*(const void*, const void*, const void*, std::uint32_t), void*(const void*, const void*, const void*, std::uint32_t), void*(const void*, const void*, const void*, std::uint32_t), void*(const void*, const void*, const void*, std::uint32_t)> INetworkDefinition_addNormalization_4{{323}};
inline constexpr Method<void*(const void*, const void*, const void*, std::int32_t), void*(const void*, const void*, const void*, std::int32_t), void*(const void*, const void*, const void*, std::int32_t), void*(const void*, const void*, const void*, std::int32_t)> INetworkDefinition_addOneHot_4{{324}};
inline constexpr Method<void*(const void*, Dims32, Dims32), void*(const void*, const Dims64*, const Dims64*), void*(const void*, const Dims64*, const Dims64*), void*(const void*, const Dims64*, const Dims64*)> INetworkDefinition_addPaddingNd_3{{325}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_addPadding_3{{326}};
inline constexpr Method<void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*)> INetworkDefinition_addParametricReLU_2{{327}};
inline constexpr Method<void*(const void*, std::int32_t, const void*), void*(const void*, std::int32_t, const void*), void*(const void*, std::int32_t, const void*), Absent> INetworkDefinition_addPluginV2_3{{328}};
inline constexpr Method<Absent, void*(const void*, std::int32_t, const void*, std::int32_t, const void*), void*(const void*, std::int32_t, const void*, std::int32_t, const void*), Absent> INetworkDefinition_addPluginV3_5{{329}};
inline constexpr Method<void*(const void*, std::int32_t, Dims32), void*(const void*, std::int32_t, const Dims64*), void*(const void*, std::int32_t, const Dims64*), void*(const void*, std::int32_t, const Dims64*)> INetworkDefinition_addPoolingNd_3{{330}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_addPooling_3{{331}};
inline constexpr Method<Absent, void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t), void*(const void*, const void*, std::int32_t)> INetworkDefinition_addQuantizeV2_3{{332}};
inline constexpr Method<void*(const void*, const void*), void*(const void*, const void*), Absent, Absent> INetworkDefinition_addQuantize_2{{333}};
inline constexpr Method<void*(const void*, std::int32_t, std::int32_t, std::int32_t, std::int32_t), Absent, Absent, Absent> INetworkDefinition_addRNNv2_5{{334}};
inline constexpr Method<void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*)> INetworkDefinition_addRaggedSoftMax_2{{335}};
inline constexpr Method<void*(const void*, std::int32_t, std::uint32_t, bool), void*(const void*, std::int32_t, std::uint32_t, bool), void*(const void*, std::int32_t, std::uint32_t, bool), void*(const void*, std::int32_t, std::uint32_t, bool)> INetworkDefinition_addReduce_4{{336}};
inline constexpr Method<void*(const void*), void*(const void*), void*(const void*), void*(const void*)> INetworkDefinition_addResize_1{{337}};
inline constexpr Method<void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*)> INetworkDefinition_addReverseSequence_2{{338}};
inline constexpr Method<Absent, void*(const void*, const void*, const void*, bool, std::int32_t), void*(const void*, const void*, const void*, bool, std::int32_t), void*(const void*, const void*, const void*, bool, std::int32_t)> INetworkDefinition_addRotaryEmbedding_5{{339}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_addScaleNd_6{{340}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_addScale_5{{341}};
inline constexpr Method<void*(const void*, const void*, const void*, std::int32_t), void*(const void*, const void*, const void*, std::int32_t), void*(const void*, const void*, const void*, std::int32_t), void*(const void*, const void*, const void*, std::int32_t)> INetworkDefinition_addScatter_4{{342}};
inline constexpr Method<void*(const void*, const void*, const void*), void*(const void*, const void*, const void*), void*(const void*, const void*, const void*), void*(const void*, const void*, const void*)> INetworkDefinition_addSelect_3{{343}};
inline constexpr Method<void*(const void*), void*(const void*), void*(const void*), void*(const void*)> INetworkDefinition_addShape_1{{344}};
inline constexpr Method<void*(const void*), void*(const void*), void*(const void*), void*(const void*)> INetworkDefinition_addShuffle_1{{345}};
inline constexpr Method<void*(const void*, Dims32, Dims32, Dims32), void*(const void*, const Dims64*, const Dims64*, const Dims64*), void*(const void*, const Dims64*, const Dims64*, const Dims64*), void*(const void*, const Dims64*, const Dims64*, const Dims64*)> INetworkDefinition_addSlice_4{{346}};
inline constexpr Method<void*(const void*), void*(const void*), void*(const void*), void*(const void*)> INetworkDefinition_addSoftMax_1{{347}};
inline constexpr Method<Absent, void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*)> INetworkDefinition_addSqueeze_2{{348}};
inline constexpr Method<Absent, void*(const void*, std::int32_t, std::int32_t, std::uint32_t, std::int32_t), void*(const void*, std::int32_t, std::int32_t, std::uint32_t, std::int32_t), void*(const void*, std::int32_t, std::int32_t, std::uint32_t, std::int32_t)> INetworkDefinition_addTopKV2_5{{349}};
inline constexpr Method<void*(const void*, std::int32_t, std::int32_t, std::uint32_t), void*(const void*, std::int32_t, std::int32_t, std::uint32_t), void*(const void*, std::int32_t, std::int32_t, std::uint32_t), void*(const void*, std::int32_t, std::int32_t, std::uint32_t)> INetworkDefinition_addTopK_4{{350}};
inline constexpr Method<void*(const void*, std::int32_t), void*(const void*, std::int32_t), void*(const void*, std::int32_t), void*(const void*, std::int32_t)> INetworkDefinition_addUnary_2{{351}};
inline constexpr Method<Absent, void*(const void*, const void*), void*(const void*, const void*), void*(const void*, const void*)> INetworkDefinition_addUnsqueeze_2{{352}};
inline constexpr Method<Absent, bool(const char*), bool(const char*), bool(const char*)> INetworkDefinition_areWeightsMarkedRefittable_1{{353}};
inline constexpr Method<void(), void(), void(), void()> INetworkDefinition_destroy_complete_0{{354}};
inline constexpr Method<void(), void(), void(), void()> INetworkDefinition_destroy_deleting_0{{355}};
inline constexpr Method<void*(), void*(), void*(), void*()> INetworkDefinition_getBuilder_0{{356}};
inline constexpr Method<void*(), void*(), void*(), void*()> INetworkDefinition_getErrorRecorder_0{{357}};
inline constexpr Method<Absent, bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> INetworkDefinition_getFlag_1{{358}};
inline constexpr Method<Absent, std::uint32_t(), std::uint32_t(), std::uint32_t()> INetworkDefinition_getFlags_0{{359}};
inline constexpr Method<void*(std::int32_t), void*(std::int32_t), void*(std::int32_t), void*(std::int32_t)> INetworkDefinition_getInput_1{{360}};
inline constexpr Method<void*(std::int32_t), void*(std::int32_t), void*(std::int32_t), void*(std::int32_t)> INetworkDefinition_getLayer_1{{361}};
inline constexpr Method<const char*(), const char*(), const char*(), const char*()> INetworkDefinition_getName_0{{362}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> INetworkDefinition_getNbInputs_0{{363}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> INetworkDefinition_getNbLayers_0{{364}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> INetworkDefinition_getNbOutputs_0{{365}};
inline constexpr Method<void*(std::int32_t), void*(std::int32_t), void*(std::int32_t), void*(std::int32_t)> INetworkDefinition_getOutput_1{{366}};
inline constexpr Method<bool(), Absent, Absent, Absent> INetworkDefinition_hasExplicitPrecision_0{{367}};
inline constexpr Method<bool(), bool(), bool(), bool()> INetworkDefinition_hasImplicitBatchDimension_0{{368}};
inline constexpr Method<Absent, bool(const void*), bool(const void*), bool(const void*)> INetworkDefinition_isDebugTensor_1{{369}};
inline constexpr Method<Absent, bool(const void*), bool(const void*), bool(const void*)> INetworkDefinition_markDebug_1{{370}};
inline constexpr Method<bool(const void*), bool(const void*), bool(const void*), bool(const void*)> INetworkDefinition_markOutputForShapes_1{{371}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> INetworkDefinition_markOutput_1{{372}};
inline constexpr Method<Absent, bool(), bool(), bool()> INetworkDefinition_markUnfusedTensorsAsDebugTensors_0{{373}};
inline constexpr Method<Absent, bool(const char*), bool(const char*), bool(const char*)> INetworkDefinition_markWeightsRefittable_1{{374}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> INetworkDefinition_removeTensor_1{{375}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> INetworkDefinition_setErrorRecorder_1{{376}};
inline constexpr Method<void(const char*), void(const char*), void(const char*), void(const char*)> INetworkDefinition_setName_1{{377}};
inline constexpr Method<Absent, Absent, Absent, Absent> INetworkDefinition_setWeightsName_2{{378}};
inline constexpr Method<Absent, bool(const void*), bool(const void*), bool(const void*)> INetworkDefinition_unmarkDebug_1{{379}};
inline constexpr Method<bool(const void*), bool(const void*), bool(const void*), bool(const void*)> INetworkDefinition_unmarkOutputForShapes_1{{380}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> INetworkDefinition_unmarkOutput_1{{381}};
inline constexpr Method<Absent, bool(), bool(), bool()> INetworkDefinition_unmarkUnfusedTensorsAsDebugTensors_0{{382}};
inline constexpr Method<Absent, bool(const char*), bool(const char*), bool(const char*)> INetworkDefinition_unmarkWeightsRefittable_1{{383}};
inline constexpr Method<void(), void(), void(), void()> IOptimizationProfile_destroy_complete_0{{384}};
inline constexpr Method<void(), void(), void(), void()> IOptimizationProfile_destroy_deleting_0{{385}};
inline constexpr Method<Dims32(const char*, std::int32_t), Dims64(const char*, std::int32_t), Dims64(const char*, std::int32_t), Dims64(const char*, std::int32_t)> IOptimizationProfile_getDimensions_2{{386}};
inline constexpr Method<float(), float(), float(), float()> IOptimizationProfile_getExtraMemoryTarget_0{{387}};
inline constexpr Method<std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*)> IOptimizationProfile_getNbShapeValues_1{{388}};
inline constexpr Method<Absent, const std::int64_t*(const char*, std::int32_t), const std::int64_t*(const char*, std::int32_t), const std::int64_t*(const char*, std::int32_t)> IOptimizationProfile_getShapeValuesV2_2{{389}};
inline constexpr Method<const std::int32_t*(const char*, std::int32_t), const std::int32_t*(const char*, std::int32_t), Absent, Absent> IOptimizationProfile_getShapeValues_2{{390}};
inline constexpr Method<bool(), bool(), bool(), bool()> IOptimizationProfile_isValid_0{{391}};
inline constexpr Method<bool(const char*, std::int32_t, Dims32), bool(const char*, std::int32_t, const Dims64*), bool(const char*, std::int32_t, const Dims64*), bool(const char*, std::int32_t, const Dims64*)> IOptimizationProfile_setDimensions_3{{392}};
inline constexpr Method<bool(float), bool(float), bool(float), bool(float)> IOptimizationProfile_setExtraMemoryTarget_1{{393}};
inline constexpr Method<Absent, bool(const char*, std::int32_t, const std::int64_t*, std::int32_t), bool(const char*, std::int32_t, const std::int64_t*, std::int32_t), bool(const char*, std::int32_t, const std::int64_t*, std::int32_t)> IOptimizationProfile_setShapeValuesV2_4{{394}};
inline constexpr Method<bool(const char*, std::int32_t, const std::int32_t*, std::int32_t), bool(const char*, std::int32_t, const std::int32_t*, std::int32_t), Absent, Absent> IOptimizationProfile_setShapeValues_4{{395}};
inline constexpr Method<void(), void(), void(), void()> IOutputAllocator_destroy_complete_0{{396}};
inline constexpr Method<void(), void(), void(), void()> IOutputAllocator_destroy_deleting_0{{397}};
inline constexpr Method<Absent, std::int32_t(), std::int32_t(), std::int32_t()> IOutputAllocator_getAPILanguage_0{{398}};
inline constexpr Method<Absent, Absent, Absent, Absent> IOutputAllocator_getInterfaceInfo_0{{399}};
inline constexpr Method<std::int32_t(), Absent, Absent, Absent> IOutputAllocator_getInterfaceVersion_0{{400}};
inline constexpr Method<void(const char*, const Dims32*), void(const char*, const Dims64*), void(const char*, const Dims64*), void(const char*, const Dims64*)> IOutputAllocator_notifyShape_2{{401}};
inline constexpr Method<Absent, void*(const char*, const void*, std::size_t, std::size_t, const void*), void*(const char*, const void*, std::size_t, std::size_t, const void*), void*(const char*, const void*, std::size_t, std::size_t, const void*)> IOutputAllocator_reallocateOutputAsync_5{{402}};
inline constexpr Method<void*(const char*, const void*, std::size_t, std::size_t), void*(const char*, const void*, std::size_t, std::size_t), void*(const char*, const void*, std::size_t, std::size_t), void*(const char*, const void*, std::size_t, std::size_t)> IOutputAllocator_reallocateOutput_4{{403}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IParserError_code_0{{404}};
inline constexpr Method<const char*(), const char*(), const char*(), const char*()> IParserError_desc_0{{405}};
inline constexpr Method<void(), void(), void(), void()> IParserError_destroy_complete_0{{406}};
inline constexpr Method<void(), void(), void(), void()> IParserError_destroy_deleting_0{{407}};
inline constexpr Method<const char*(), const char*(), const char*(), const char*()> IParserError_file_0{{408}};
inline constexpr Method<const char*(), const char*(), const char*(), const char*()> IParserError_func_0{{409}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IParserError_line_0{{410}};
inline constexpr Method<Absent, std::int32_t(), std::int32_t(), std::int32_t()> IParserError_localFunctionStackSize_0{{411}};
inline constexpr Method<Absent, void*(), void*(), void*()> IParserError_localFunctionStack_0{{412}};
inline constexpr Method<Absent, const char*(), const char*(), const char*()> IParserError_nodeName_0{{413}};
inline constexpr Method<Absent, const char*(), const char*(), const char*()> IParserError_nodeOperator_0{{414}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IParserError_node_0{{415}};
inline constexpr Method<void(), void(), void(), void()> IParser_clearErrors_0{{416}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IParser_clearFlag_1{{417}};
inline constexpr Method<void(), Absent, Absent, Absent> IParser_destroy_0{{418}};
inline constexpr Method<void(), void(), void(), void()> IParser_destroy_complete_0{{419}};
inline constexpr Method<void(), void(), void(), void()> IParser_destroy_deleting_0{{420}};
inline constexpr Method<void*(std::int32_t), void*(std::int32_t), void*(std::int32_t), void*(std::int32_t)> IParser_getError_1{{421}};
inline constexpr Method<bool(std::int32_t), bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> IParser_getFlag_1{{422}};
inline constexpr Method<std::uint32_t(), std::uint32_t(), std::uint32_t(), std::uint32_t()> IParser_getFlags_0{{423}};
inline constexpr Method<Absent, void*(const char*, std::int64_t), void*(const char*, std::int64_t), void*(const char*, std::int64_t)> IParser_getLayerOutputTensor_2{{424}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IParser_getNbErrors_0{{425}};
inline constexpr Method<Absent, std::int64_t(), std::int64_t(), std::int64_t()> IParser_getNbSubgraphs_0{{426}};
inline constexpr Method<Absent, const std::int64_t*(std::int64_t, const std::int64_t*), const std::int64_t*(std::int64_t, const std::int64_t*), const std::int64_t*(std::int64_t, const std::int64_t*)> IParser_getSubgraphNodes_2{{427}};
inline constexpr Method<void*(const std::int64_t*), void*(const std::int64_t*), void*(const std::int64_t*), void*(const std::int64_t*)> IParser_getUsedVCPluginLibraries_1{{428}};
inline constexpr Method<Absent, bool(std::int64_t), bool(std::int64_t), bool(std::int64_t)> IParser_isSubgraphSupported_1{{429}};
inline constexpr Method<Absent, bool(const char*, const void*, std::size_t), bool(const char*, const void*, std::size_t), bool(const char*, const void*, std::size_t)> IParser_loadInitializer_3{{430}};
inline constexpr Method<Absent, bool(const void*, std::size_t, const char*), bool(const void*, std::size_t, const char*), bool(const void*, std::size_t, const char*)> IParser_loadModelProto_3{{431}};
inline constexpr Method<bool(const char*, std::int32_t), bool(const char*, std::int32_t), bool(const char*, std::int32_t), bool(const char*, std::int32_t)> IParser_parseFromFile_2{{432}};
inline constexpr Method<Absent, bool(), bool(), bool()> IParser_parseModelProto_0{{433}};
inline constexpr Method<bool(const void*, std::size_t), bool(const void*, std::size_t), Absent, Absent> IParser_parseWithWeightDescriptors_2{{434}};
inline constexpr Method<bool(const void*, std::size_t, const char*), bool(const void*, std::size_t, const char*), bool(const void*, std::size_t, const char*), bool(const void*, std::size_t, const char*)> IParser_parse_3{{435}};
inline constexpr Method<Absent, bool(const void*), bool(const void*), bool(const void*)> IParser_setBuilderConfig_1{{436}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IParser_setFlag_1{{437}};
inline constexpr Method<void(std::uint32_t), void(std::uint32_t), void(std::uint32_t), void(std::uint32_t)> IParser_setFlags_1{{438}};
inline constexpr Method<Absent, bool(const void*, std::size_t, const char*), bool(const void*, std::size_t, const char*), bool(const void*, std::size_t, const char*)> IParser_supportsModelV2_3{{439}};
inline constexpr Method<bool(const void*, std::size_t, const void*, const char*), bool(const void*, std::size_t, const void*, const char*), Absent, Absent> IParser_supportsModel_4{{440}};
inline constexpr Method<bool(const char*), bool(const char*), bool(const char*), bool(const char*)> IParser_supportsOperator_1{{441}};
inline constexpr Method<Absent, void*(const char*, const void*), void*(const char*, const void*), void*(const char*, const void*)> IPluginRegistry_acquirePluginResource_2{{442}};
inline constexpr Method<bool(const void*), bool(const void*), bool(const void*), bool(const void*)> IPluginRegistry_deregisterCreator_1{{443}};
inline constexpr Method<Absent, bool(const void*), Absent, Absent> IPluginRegistry_deregisterCreator_1_2{{444}};
inline constexpr Method<Absent, Absent, Absent, Absent> IPluginRegistry_deregisterLibrary_1{{445}};
inline constexpr Method<void(), void(), void(), void()> IPluginRegistry_destroy_complete_0{{446}};
inline constexpr Method<void(), void(), void(), void()> IPluginRegistry_destroy_deleting_0{{447}};
inline constexpr Method<Absent, void*(const std::int32_t*), void*(const std::int32_t*), void*(const std::int32_t*)> IPluginRegistry_getAllCreatorsRecursive_1{{448}};
inline constexpr Method<Absent, void*(const std::int32_t*), void*(const std::int32_t*), void*(const std::int32_t*)> IPluginRegistry_getAllCreators_1{{449}};
inline constexpr Method<Absent, void*(const char*, const char*, const char*), void*(const char*, const char*, const char*), void*(const char*, const char*, const char*)> IPluginRegistry_getCreator_3{{450}};
inline constexpr Method<void*(), void*(), void*(), void*()> IPluginRegistry_getErrorRecorder_0{{451}};
inline constexpr Method<void*(const std::int32_t*), void*(const std::int32_t*), Absent, Absent> IPluginRegistry_getPluginCreatorList_1{{452}};
inline constexpr Method<void*(const char*, const char*, const char*), void*(const char*, const char*, const char*), Absent, Absent> IPluginRegistry_getPluginCreator_3{{453}};
inline constexpr Method<bool(), bool(), bool(), bool()> IPluginRegistry_isParentSearchEnabled_0{{454}};
inline constexpr Method<Absent, Absent, Absent, Absent> IPluginRegistry_loadLibrary_1{{455}};
inline constexpr Method<bool(const void*, const char*), bool(const void*, const char*), bool(const void*, const char*), bool(const void*, const char*)> IPluginRegistry_registerCreator_2{{456}};
inline constexpr Method<Absent, bool(const void*, const char*), Absent, Absent> IPluginRegistry_registerCreator_2_2{{457}};
inline constexpr Method<Absent, std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*)> IPluginRegistry_releasePluginResource_1{{458}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IPluginRegistry_setErrorRecorder_1{{459}};
inline constexpr Method<void(bool), void(bool), void(bool), void(bool)> IPluginRegistry_setParentSearchEnabled_1{{460}};
inline constexpr Method<void(), void(), void(), void()> IProfiler_destroy_complete_0{{461}};
inline constexpr Method<void(), void(), void(), void()> IProfiler_destroy_deleting_0{{462}};
inline constexpr Method<Absent, Absent, std::int32_t(), std::int32_t()> IProfiler_getAPILanguage_0{{463}};
inline constexpr Method<Absent, Absent, Absent, Absent> IProfiler_getInterfaceInfo_0{{464}};
inline constexpr Method<void(const char*, float), void(const char*, float), void(const char*, float), void(const char*, float)> IProfiler_reportLayerTime_2{{465}};
inline constexpr Method<Absent, void(), void(), void()> IProgressMonitor_destroy_complete_0{{466}};
inline constexpr Method<Absent, void(), void(), void()> IProgressMonitor_destroy_deleting_0{{467}};
inline constexpr Method<Absent, std::int32_t(), std::int32_t(), std::int32_t()> IProgressMonitor_getAPILanguage_0{{468}};
inline constexpr Method<Absent, Absent, Absent, Absent> IProgressMonitor_getInterfaceInfo_0{{469}};
inline constexpr Method<Absent, void(const char*), void(const char*), void(const char*)> IProgressMonitor_phaseFinish_1{{470}};
inline constexpr Method<Absent, void(const char*, const char*, std::int32_t), void(const char*, const char*, std::int32_t), void(const char*, const char*, std::int32_t)> IProgressMonitor_phaseStart_3{{471}};
inline constexpr Method<Absent, bool(const char*, std::int32_t), bool(const char*, std::int32_t), bool(const char*, std::int32_t)> IProgressMonitor_stepComplete_2{{472}};
inline constexpr Method<void(), void(), void(), void()> IRefitter_destroy_complete_0{{473}};
inline constexpr Method<void(), void(), void(), void()> IRefitter_destroy_deleting_0{{474}};
inline constexpr Method<std::int32_t(std::int32_t, const void*), std::int32_t(std::int32_t, const void*), std::int32_t(std::int32_t, const void*), std::int32_t(std::int32_t, const void*)> IRefitter_getAllWeights_2{{475}};
inline constexpr Method<std::int32_t(std::int32_t, const void*, const std::int32_t*), std::int32_t(std::int32_t, const void*, const std::int32_t*), std::int32_t(std::int32_t, const void*, const std::int32_t*), std::int32_t(std::int32_t, const void*, const std::int32_t*)> IRefitter_getAll_3{{476}};
inline constexpr Method<float(const char*), float(const char*), Absent, Absent> IRefitter_getDynamicRangeMax_1{{477}};
inline constexpr Method<float(const char*), float(const char*), Absent, Absent> IRefitter_getDynamicRangeMin_1{{478}};
inline constexpr Method<void*(), void*(), void*(), void*()> IRefitter_getErrorRecorder_0{{479}};
inline constexpr Method<void*(), void*(), void*(), void*()> IRefitter_getLogger_0{{480}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IRefitter_getMaxThreads_0{{481}};
inline constexpr Method<std::int32_t(std::int32_t, const void*), std::int32_t(std::int32_t, const void*), std::int32_t(std::int32_t, const void*), std::int32_t(std::int32_t, const void*)> IRefitter_getMissingWeights_2{{482}};
inline constexpr Method<std::int32_t(std::int32_t, const void*, const std::int32_t*), std::int32_t(std::int32_t, const void*, const std::int32_t*), std::int32_t(std::int32_t, const void*, const std::int32_t*), std::int32_t(std::int32_t, const void*, const std::int32_t*)> IRefitter_getMissing_3{{483}};
inline constexpr Method<Absent, Absent, Absent, Absent> IRefitter_getNamedWeights_1{{484}};
inline constexpr Method<Absent, void*(), void*(), void*()> IRefitter_getPImpl_0{{485}};
inline constexpr Method<std::int32_t(std::int32_t, const void*), std::int32_t(std::int32_t, const void*), Absent, Absent> IRefitter_getTensorsWithDynamicRange_2{{486}};
inline constexpr Method<Absent, std::int32_t(const char*), std::int32_t(const char*), std::int32_t(const char*)> IRefitter_getWeightsLocation_1{{487}};
inline constexpr Method<Absent, Absent, Absent, Absent> IRefitter_getWeightsPrototype_1{{488}};
inline constexpr Method<Absent, bool(), bool(), bool()> IRefitter_getWeightsValidation_0{{489}};
inline constexpr Method<Absent, bool(const void*), bool(const void*), bool(const void*)> IRefitter_refitCudaEngineAsync_1{{490}};
inline constexpr Method<bool(), bool(), bool(), bool()> IRefitter_refitCudaEngine_0{{491}};
inline constexpr Method<bool(const char*, float, float), bool(const char*, float, float), Absent, Absent> IRefitter_setDynamicRange_3{{492}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IRefitter_setErrorRecorder_1{{493}};
inline constexpr Method<bool(std::int32_t), bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> IRefitter_setMaxThreads_1{{494}};
inline constexpr Method<Absent, Absent, Absent, Absent> IRefitter_setNamedWeightsWithLocation_3{{495}};
inline constexpr Method<Absent, Absent, Absent, Absent> IRefitter_setNamedWeights_2{{496}};
inline constexpr Method<Absent, void(bool), void(bool), void(bool)> IRefitter_setWeightsValidation_1{{497}};
inline constexpr Method<Absent, Absent, Absent, Absent> IRefitter_setWeights_3{{498}};
inline constexpr Method<Absent, bool(const char*), bool(const char*), bool(const char*)> IRefitter_unsetNamedWeights_1{{499}};
inline constexpr Method<Absent, void(), void(), void()> IRuntimeConfig_destroy_complete_0{{500}};
inline constexpr Method<Absent, void(), void(), void()> IRuntimeConfig_destroy_deleting_0{{501}};
inline constexpr Method<Absent, std::int32_t(), std::int32_t(), std::int32_t()> IRuntimeConfig_getExecutionContextAllocationStrategy_0{{502}};
inline constexpr Method<Absent, void*(), void*(), void*()> IRuntimeConfig_getPImpl_0{{503}};
inline constexpr Method<Absent, void(std::int32_t), void(std::int32_t), void(std::int32_t)> IRuntimeConfig_setExecutionContextAllocationStrategy_1{{504}};
inline constexpr Method<Absent, void*(const void*), void*(const void*), void*(const void*)> IRuntime_deserializeCudaEngineV2_1{{505}};
inline constexpr Method<Absent, void*(const void*), Absent, Absent> IRuntime_deserializeCudaEngine_1{{506}};
inline constexpr Method<Absent, void*(const void*, std::size_t), void*(const void*, std::size_t), void*(const void*, std::size_t)> IRuntime_deserializeCudaEngine_2{{507}};
inline constexpr Method<void*(const void*, std::size_t, const void*), Absent, Absent, Absent> IRuntime_deserializeCudaEngine_3{{508}};
inline constexpr Method<void(), void(), void(), void()> IRuntime_destroy_complete_0{{509}};
inline constexpr Method<void(), void(), void(), void()> IRuntime_destroy_deleting_0{{510}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IRuntime_getDLACore_0{{511}};
inline constexpr Method<Absent, Absent, Absent, Absent> IRuntime_getEngineHeaderSize_0{{512}};
inline constexpr Method<bool(), bool(), bool(), bool()> IRuntime_getEngineHostCodeAllowed_0{{513}};
inline constexpr Method<Absent, Absent, Absent, Absent> IRuntime_getEngineValidity_3{{514}};
inline constexpr Method<void*(), void*(), void*(), void*()> IRuntime_getErrorRecorder_0{{515}};
inline constexpr Method<void*(), void*(), void*(), void*()> IRuntime_getLogger_0{{516}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IRuntime_getMaxThreads_0{{517}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> IRuntime_getNbDLACores_0{{518}};
inline constexpr Method<void*(), void*(), void*(), void*()> IRuntime_getPImpl_0{{519}};
inline constexpr Method<void*(), void*(), void*(), void*()> IRuntime_getPluginRegistry_0{{520}};
inline constexpr Method<std::uint32_t(), std::uint32_t(), std::uint32_t(), std::uint32_t()> IRuntime_getTempfileControlFlags_0{{521}};
inline constexpr Method<const char*(), const char*(), const char*(), const char*()> IRuntime_getTemporaryDirectory_0{{522}};
inline constexpr Method<void*(const char*), void*(const char*), void*(const char*), void*(const char*)> IRuntime_loadRuntime_1{{523}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), void(std::int32_t)> IRuntime_setDLACore_1{{524}};
inline constexpr Method<void(bool), void(bool), void(bool), void(bool)> IRuntime_setEngineHostCodeAllowed_1{{525}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IRuntime_setErrorRecorder_1{{526}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IRuntime_setGpuAllocator_1{{527}};
inline constexpr Method<bool(std::int32_t), bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> IRuntime_setMaxThreads_1{{528}};
inline constexpr Method<void(const void*), void(const void*), void(const void*), void(const void*)> IRuntime_setPluginRegistryParent_1{{529}};
inline constexpr Method<void(std::uint32_t), void(std::uint32_t), void(std::uint32_t), void(std::uint32_t)> IRuntime_setTempfileControlFlags_1{{530}};
inline constexpr Method<void(const char*), void(const char*), void(const char*), void(const char*)> IRuntime_setTemporaryDirectory_1{{531}};
inline constexpr Method<Absent, bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> ISerializationConfig_clearFlag_1{{532}};
inline constexpr Method<Absent, void(), void(), void()> ISerializationConfig_destroy_complete_0{{533}};
inline constexpr Method<Absent, void(), void(), void()> ISerializationConfig_destroy_deleting_0{{534}};
inline constexpr Method<Absent, bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> ISerializationConfig_getFlag_1{{535}};
inline constexpr Method<Absent, std::uint32_t(), std::uint32_t(), std::uint32_t()> ISerializationConfig_getFlags_0{{536}};
inline constexpr Method<Absent, bool(std::int32_t), bool(std::int32_t), bool(std::int32_t)> ISerializationConfig_setFlag_1{{537}};
inline constexpr Method<Absent, bool(std::uint32_t), bool(std::uint32_t), bool(std::uint32_t)> ISerializationConfig_setFlags_1{{538}};
inline constexpr Method<void(), void(), void(), void()> ITensor_destroy_complete_0{{539}};
inline constexpr Method<void(), void(), void(), void()> ITensor_destroy_deleting_0{{540}};
inline constexpr Method<bool(), bool(), Absent, Absent> ITensor_dynamicRangeIsSet_0{{541}};
inline constexpr Method<std::uint32_t(), std::uint32_t(), std::uint32_t(), std::uint32_t()> ITensor_getAllowedFormats_0{{542}};
inline constexpr Method<bool(), bool(), bool(), Absent> ITensor_getBroadcastAcrossBatch_0{{543}};
inline constexpr Method<const char*(std::int32_t), const char*(std::int32_t), const char*(std::int32_t), const char*(std::int32_t)> ITensor_getDimensionName_1{{544}};
inline constexpr Method<Dims32(), Dims64(), Dims64(), Dims64()> ITensor_getDimensions_0{{545}};
inline constexpr Method<float(), float(), Absent, Absent> ITensor_getDynamicRangeMax_0{{546}};
inline constexpr Method<float(), float(), Absent, Absent> ITensor_getDynamicRangeMin_0{{547}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), Absent> ITensor_getLocation_0{{548}};
inline constexpr Method<const char*(), const char*(), const char*(), const char*()> ITensor_getName_0{{549}};
inline constexpr Method<std::int32_t(), std::int32_t(), std::int32_t(), std::int32_t()> ITensor_getType_0{{550}};
inline constexpr Method<bool(), bool(), bool(), bool()> ITensor_isExecutionTensor_0{{551}};
inline constexpr Method<bool(), bool(), bool(), bool()> ITensor_isNetworkInput_0{{552}};
inline constexpr Method<bool(), bool(), bool(), bool()> ITensor_isNetworkOutput_0{{553}};
inline constexpr Method<bool(), bool(), bool(), bool()> ITensor_isShapeTensor_0{{554}};
inline constexpr Method<void(), void(), Absent, Absent> ITensor_resetDynamicRange_0{{555}};
inline constexpr Method<void(std::uint32_t), void(std::uint32_t), void(std::uint32_t), void(std::uint32_t)> ITensor_setAllowedFormats_1{{556}};
inline constexpr Method<void(bool), void(bool), void(bool), Absent> ITensor_setBroadcastAcrossBatch_1{{557}};
inline constexpr Method<void(std::int32_t, const char*), void(std::int32_t, const char*), void(std::int32_t, const char*), void(std::int32_t, const char*)> ITensor_setDimensionName_2{{558}};
inline constexpr Method<void(Dims32), void(const Dims64*), void(const Dims64*), void(const Dims64*)> ITensor_setDimensions_1{{559}};
inline constexpr Method<bool(float, float), bool(float, float), Absent, Absent> ITensor_setDynamicRange_2{{560}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), void(std::int32_t), Absent> ITensor_setLocation_1{{561}};
inline constexpr Method<void(const char*), void(const char*), void(const char*), void(const char*)> ITensor_setName_1{{562}};
inline constexpr Method<void(std::int32_t), void(std::int32_t), Absent, Absent> ITensor_setType_1{{563}};
inline constexpr Method<bool(const void*, bool), bool(const void*, bool), bool(const void*, bool), bool(const void*, bool)> ITimingCache_combine_2{{564}};
inline constexpr Method<void(), void(), void(), void()> ITimingCache_destroy_complete_0{{565}};
inline constexpr Method<void(), void(), void(), void()> ITimingCache_destroy_deleting_0{{566}};
inline constexpr Method<Absent, std::int64_t(const void*, std::int64_t), std::int64_t(const void*, std::int64_t), std::int64_t(const void*, std::int64_t)> ITimingCache_queryKeys_2{{567}};
inline constexpr Method<Absent, Absent, Absent, Absent> ITimingCache_query_1{{568}};
inline constexpr Method<bool(), bool(), bool(), bool()> ITimingCache_reset_0{{569}};
inline constexpr Method<void*(), void*(), void*(), void*()> ITimingCache_serialize_0{{570}};
inline constexpr Method<Absent, bool(const void*, const void*), bool(const void*, const void*), bool(const void*, const void*)> ITimingCache_update_2{{571}};
}  // namespace Slot

struct Place {
  std::int16_t index;       // -1: not in this generation
  std::int32_t since;       // first version that has it, as 10 * 10000 + 3 * 100 + 0
  std::int32_t except;      // a later version that has something else in this place, or 0
};

inline constexpr int kGenerations = 4;
inline constexpr const char* kGenerationNames[] = {"8", "10", "11", "rtx1"};
inline constexpr std::int32_t kFirstVersions[] = {80601, 100001, 110000, 10701};

struct Function {
  const char* name;
  Place places[kGenerations];
};

inline constexpr Function kFunctions[] = {
  {"IBuilderConfig::addOptimizationProfile", {{29, 80601, 0}, {25, 100001, 0}, {23, 110000, 0}, {23, 10701, 0}}},
  {"IBuilderConfig::canRunOnDLA", {{21, 80601, 0}, {17, 100001, 0}, {15, 110000, 0}, {15, 10701, 0}}},
  {"IBuilderConfig::clearFlag", {{14, 80601, 0}, {10, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"IBuilderConfig::clearQuantizationFlag", {{39, 80601, 0}, {35, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::createTimingCache", {{44, 80601, 0}, {40, 100001, 0}, {29, 110000, 0}, {29, 10701, 0}}},
  {"IBuilderConfig::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IBuilderConfig::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IBuilderConfig::getAlgorithmSelector", {{34, 80601, 0}, {30, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::getAllBuildRoutes", {{-1, 0, 0}, {-1, 0, 0}, {59, 110100, 0}, {61, 10701, 0}}},
  {"IBuilderConfig::getAvgTimingIterations", {{5, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IBuilderConfig::getBuildRoute", {{-1, 0, 0}, {-1, 0, 0}, {58, 110100, 0}, {60, 10701, 0}}},
  {"IBuilderConfig::getBuilderOptimizationLevel", {{52, 80601, 0}, {48, 100001, 0}, {37, 110000, 0}, {37, 10701, 0}}},
  {"IBuilderConfig::getCalibrationProfile", {{36, 80601, 0}, {32, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::getComputeCapability", {{-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {58, 10701, 0}}},
  {"IBuilderConfig::getDLACore", {{23, 80601, 0}, {19, 100001, 0}, {17, 110000, 0}, {17, 10701, 0}}},
  {"IBuilderConfig::getDefaultDeviceType", {{25, 80601, 0}, {21, 100001, 0}, {19, 110000, 0}, {19, 10701, 0}}},
  {"IBuilderConfig::getDeviceType", {{18, 80601, 0}, {14, 100001, 0}, {12, 110000, 0}, {12, 10701, 0}}},
  {"IBuilderConfig::getEngineCapability", {{7, 80601, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IBuilderConfig::getFlag", {{16, 80601, 0}, {12, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"IBuilderConfig::getFlags", {{13, 80601, 0}, {9, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"IBuilderConfig::getHardwareCompatibilityLevel", {{54, 80601, 0}, {50, 100001, 0}, {39, 110000, 0}, {39, 10701, 0}}},
  {"IBuilderConfig::getInt8Calibrator", {{9, 80601, 0}, {7, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::getL2LimitForTiling", {{-1, 0, 0}, {65, 100800, 0}, {54, 110000, 0}, {54, 10701, 0}}},
  {"IBuilderConfig::getMaxAuxStreams", {{59, 80601, 0}, {55, 100001, 0}, {44, 110000, 0}, {44, 10701, 0}}},
  {"IBuilderConfig::getMaxNbTactics", {{-1, 0, 0}, {61, 100400, 0}, {50, 110000, 0}, {50, 10701, 0}}},
  {"IBuilderConfig::getMaxWorkspaceSize", {{11, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::getMemoryPoolLimit", {{48, 80601, 0}, {44, 100001, 0}, {33, 110000, 0}, {33, 10701, 0}}},
  {"IBuilderConfig::getMinTimingIterations", {{3, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::getNbComputeCapabilities", {{-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {56, 10701, 0}}},
  {"IBuilderConfig::getNbOptimizationProfiles", {{30, 80601, 0}, {26, 100001, 0}, {24, 110000, 0}, {24, 10701, 0}}},
  {"IBuilderConfig::getNbPluginsToSerialize", {{57, 80601, 0}, {53, 100001, 0}, {42, 110000, 0}, {42, 10701, 0}}},
  {"IBuilderConfig::getPluginToSerialize", {{56, 80601, 0}, {52, 100001, 0}, {41, 110000, 0}, {41, 10701, 0}}},
  {"IBuilderConfig::getPreviewFeature", {{50, 80601, 0}, {46, 100001, 0}, {35, 110000, 0}, {35, 10701, 0}}},
  {"IBuilderConfig::getProfileStream", {{28, 80601, 0}, {24, 100001, 0}, {22, 110000, 0}, {22, 10701, 0}}},
  {"IBuilderConfig::getProfilingVerbosity", {{32, 80601, 0}, {28, 100001, 0}, {26, 110000, 0}, {26, 10701, 0}}},
  {"IBuilderConfig::getProgressMonitor", {{-1, 0, 0}, {57, 100001, 0}, {46, 110000, 0}, {46, 10701, 0}}},
  {"IBuilderConfig::getQuantizationFlag", {{41, 80601, 0}, {37, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::getQuantizationFlags", {{38, 80601, 0}, {34, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::getRemoteAutoTuningConfig", {{-1, 0, 0}, {67, 101300, 0}, {56, 110000, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::getRuntimePlatform", {{-1, 0, 0}, {59, 100200, 0}, {48, 110000, 0}, {48, 10701, 0}}},
  {"IBuilderConfig::getTacticSources", {{43, 80601, 0}, {39, 100001, 0}, {28, 110000, 0}, {28, 10701, 0}}},
  {"IBuilderConfig::getTilingOptimizationLevel", {{-1, 0, 0}, {63, 100800, 0}, {52, 110000, 0}, {52, 10701, 0}}},
  {"IBuilderConfig::getTimingCache", {{46, 80601, 0}, {42, 100001, 0}, {31, 110000, 0}, {31, 10701, 0}}},
  {"IBuilderConfig::isDeviceTypeSet", {{19, 80601, 0}, {15, 100001, 0}, {13, 110000, 0}, {13, 10701, 0}}},
  {"IBuilderConfig::resetDeviceType", {{20, 80601, 0}, {16, 100001, 0}, {14, 110000, 0}, {14, 10701, 0}}},
  {"IBuilderConfig::reset", {{26, 80601, 0}, {22, 100001, 0}, {20, 110000, 0}, {20, 10701, 0}}},
  {"IBuilderConfig::setAlgorithmSelector", {{33, 80601, 0}, {29, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::setAvgTimingIterations", {{4, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IBuilderConfig::setBuildRoute", {{-1, 0, 0}, {-1, 0, 0}, {57, 110100, 0}, {59, 10701, 0}}},
  {"IBuilderConfig::setBuilderOptimizationLevel", {{51, 80601, 0}, {47, 100001, 0}, {36, 110000, 0}, {36, 10701, 0}}},
  {"IBuilderConfig::setCalibrationProfile", {{35, 80601, 0}, {31, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::setComputeCapability", {{-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {57, 10701, 0}}},
  {"IBuilderConfig::setDLACore", {{22, 80601, 0}, {18, 100001, 0}, {16, 110000, 0}, {16, 10701, 0}}},
  {"IBuilderConfig::setDefaultDeviceType", {{24, 80601, 0}, {20, 100001, 0}, {18, 110000, 0}, {18, 10701, 0}}},
  {"IBuilderConfig::setDeviceType", {{17, 80601, 0}, {13, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"IBuilderConfig::setEngineCapability", {{6, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IBuilderConfig::setFlag", {{15, 80601, 0}, {11, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"IBuilderConfig::setFlags", {{12, 80601, 0}, {8, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IBuilderConfig::setHardwareCompatibilityLevel", {{53, 80601, 0}, {49, 100001, 0}, {38, 110000, 0}, {38, 10701, 0}}},
  {"IBuilderConfig::setInt8Calibrator", {{8, 80601, 0}, {6, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::setL2LimitForTiling", {{-1, 0, 0}, {64, 100800, 0}, {53, 110000, 0}, {53, 10701, 0}}},
  {"IBuilderConfig::setMaxAuxStreams", {{58, 80601, 0}, {54, 100001, 0}, {43, 110000, 0}, {43, 10701, 0}}},
  {"IBuilderConfig::setMaxNbTactics", {{-1, 0, 0}, {60, 100400, 0}, {49, 110000, 0}, {49, 10701, 0}}},
  {"IBuilderConfig::setMaxWorkspaceSize", {{10, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::setMemoryPoolLimit", {{47, 80601, 0}, {43, 100001, 0}, {32, 110000, 0}, {32, 10701, 0}}},
  {"IBuilderConfig::setMinTimingIterations", {{2, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::setNbComputeCapabilities", {{-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {55, 10701, 0}}},
  {"IBuilderConfig::setPluginsToSerialize", {{55, 80601, 0}, {51, 100001, 0}, {40, 110000, 0}, {40, 10701, 0}}},
  {"IBuilderConfig::setPreviewFeature", {{49, 80601, 0}, {45, 100001, 0}, {34, 110000, 0}, {34, 10701, 0}}},
  {"IBuilderConfig::setProfileStream", {{27, 80601, 0}, {23, 100001, 0}, {21, 110000, 0}, {21, 10701, 0}}},
  {"IBuilderConfig::setProfilingVerbosity", {{31, 80601, 0}, {27, 100001, 0}, {25, 110000, 0}, {25, 10701, 0}}},
  {"IBuilderConfig::setProgressMonitor", {{-1, 0, 0}, {56, 100001, 0}, {45, 110000, 0}, {45, 10701, 0}}},
  {"IBuilderConfig::setQuantizationFlag", {{40, 80601, 0}, {36, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::setQuantizationFlags", {{37, 80601, 0}, {33, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::setRemoteAutoTuningConfig", {{-1, 0, 0}, {66, 101300, 0}, {55, 110000, 0}, {-1, 0, 0}}},
  {"IBuilderConfig::setRuntimePlatform", {{-1, 0, 0}, {58, 100200, 0}, {47, 110000, 0}, {47, 10701, 0}}},
  {"IBuilderConfig::setTacticSources", {{42, 80601, 0}, {38, 100001, 0}, {27, 110000, 0}, {27, 10701, 0}}},
  {"IBuilderConfig::setTilingOptimizationLevel", {{-1, 0, 0}, {62, 100800, 0}, {51, 110000, 0}, {51, 10701, 0}}},
  {"IBuilderConfig::setTimingCache", {{45, 80601, 0}, {41, 100001, 0}, {30, 110000, 0}, {30, 10701, 0}}},
  {"IBuilder::buildEngineWithConfig", {{10, 80601, 0}, {20, 100600, 0}, {17, 110000, 0}, {17, 10701, 0}}},
  {"IBuilder::buildSerializedNetworkToStream", {{-1, 0, 0}, {21, 101300, 0}, {18, 110000, 0}, {18, 10701, 0}}},
  {"IBuilder::buildSerializedNetworkWithKernelText", {{-1, 0, 0}, {22, 101300, 0}, {19, 110000, 0}, {19, 10701, 0}}},
  {"IBuilder::buildSerializedNetwork", {{17, 80601, 0}, {14, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"IBuilder::createBuilderConfig", {{9, 80601, 0}, {7, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IBuilder::createNetworkV2", {{11, 80601, 0}, {8, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IBuilder::createOptimizationProfile", {{12, 80601, 0}, {9, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"IBuilder::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IBuilder::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IBuilder::getErrorRecorder", {{14, 80601, 0}, {11, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"IBuilder::getLogger", {{19, 80601, 0}, {16, 100001, 0}, {13, 110000, 0}, {13, 10701, 0}}},
  {"IBuilder::getMaxBatchSize", {{3, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilder::getMaxDLABatchSize", {{6, 80601, 0}, {4, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IBuilder::getMaxThreads", {{21, 80601, 0}, {18, 100001, 0}, {15, 110000, 0}, {15, 10701, 0}}},
  {"IBuilder::getNbDLACores", {{7, 80601, 0}, {5, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IBuilder::getPluginRegistry", {{22, 80601, 0}, {19, 100001, 0}, {16, 110000, 0}, {16, 10701, 0}}},
  {"IBuilder::isNetworkSupported", {{18, 80601, 0}, {15, 100001, 0}, {12, 110000, 0}, {12, 10701, 0}}},
  {"IBuilder::platformHasFastFp16", {{4, 80601, 0}, {2, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilder::platformHasFastInt8", {{5, 80601, 0}, {3, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilder::platformHasTf32", {{16, 80601, 0}, {13, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilder::reset", {{15, 80601, 0}, {12, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"IBuilder::setErrorRecorder", {{13, 80601, 0}, {10, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"IBuilder::setGpuAllocator", {{8, 80601, 0}, {6, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IBuilder::setMaxBatchSize", {{2, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IBuilder::setMaxThreads", {{20, 80601, 0}, {17, 100001, 0}, {14, 110000, 0}, {14, 10701, 0}}},
  {"ICudaEngine::bindingIsInput", {{5, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::createEngineInspector", {{33, 80601, 0}, {18, 100001, 0}, {14, 110000, 0}, {14, 10701, 0}}},
  {"ICudaEngine::createExecutionContextWithRuntimeConfig", {{-1, 0, 0}, {55, 101100, 0}, {47, 110000, 0}, {47, 10701, 0}}},
  {"ICudaEngine::createExecutionContextWithoutDeviceMemory", {{13, 80601, 0}, {6, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::createExecutionContext", {{11, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::createExecutionContext", {{-1, 0, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"ICudaEngine::createRefitter", {{-1, 0, 0}, {42, 100001, 0}, {37, 110000, 0}, {37, 10701, 0}}},
  {"ICudaEngine::createRuntimeConfig", {{-1, 0, 0}, {56, 101100, 0}, {48, 110000, 0}, {48, 10701, 0}}},
  {"ICudaEngine::createSerializationConfig", {{-1, 0, 0}, {39, 100001, 0}, {35, 110000, 0}, {35, 10701, 0}}},
  {"ICudaEngine::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"ICudaEngine::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"ICudaEngine::getAliasedInputTensor", {{-1, 0, 0}, {58, 101501, 0}, {50, 110000, 0}, {50, 10701, 0}}},
  {"ICudaEngine::getBindingBytesPerComponent", {{16, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getBindingComponentsPerElement", {{17, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getBindingDataType", {{7, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getBindingDimensions", {{6, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getBindingFormatDesc", {{19, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getBindingFormat", {{18, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getBindingIndex", {{3, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getBindingName", {{4, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getBindingVectorizedDim", {{20, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getDeviceMemorySizeForProfileV2", {{-1, 0, 0}, {53, 100100, 0}, {45, 110000, 0}, {45, 10701, 0}}},
  {"ICudaEngine::getDeviceMemorySizeForProfile", {{-1, 0, 0}, {41, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getDeviceMemorySizeV2", {{-1, 0, 0}, {52, 100100, 0}, {44, 110000, 0}, {44, 10701, 0}}},
  {"ICudaEngine::getDeviceMemorySize", {{14, 80601, 0}, {7, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getEngineCapability", {{27, 80601, 0}, {12, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"ICudaEngine::getEngineStat", {{-1, 0, 0}, {57, 101401, 0}, {49, 110000, 0}, {49, 10701, 0}}},
  {"ICudaEngine::getErrorRecorder", {{29, 80601, 0}, {14, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"ICudaEngine::getHardwareCompatibilityLevel", {{47, 80601, 0}, {32, 100001, 0}, {28, 110000, 0}, {28, 10701, 0}}},
  {"ICudaEngine::getIOTensorName", {{46, 80601, 0}, {31, 100001, 0}, {27, 110000, 0}, {27, 10701, 0}}},
  {"ICudaEngine::getLocation", {{12, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getMaxBatchSize", {{8, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getMinimumWeightStreamingBudget", {{-1, 0, 0}, {45, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getName", {{21, 80601, 0}, {9, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"ICudaEngine::getNbAuxStreams", {{49, 80601, 0}, {33, 100001, 0}, {29, 110000, 0}, {29, 10701, 0}}},
  {"ICudaEngine::getNbBindings", {{2, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getNbIOTensors", {{45, 80601, 0}, {30, 100001, 0}, {26, 110000, 0}, {26, 10701, 0}}},
  {"ICudaEngine::getNbLayers", {{9, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"ICudaEngine::getNbOptimizationProfiles", {{22, 80601, 0}, {10, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"ICudaEngine::getPImpl", {{48, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"ICudaEngine::getProfileDimensions", {{23, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getProfileShapeValues", {{24, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getProfileShape", {{44, 80601, 0}, {29, 100001, 0}, {25, 110000, 0}, {25, 10701, 0}}},
  {"ICudaEngine::getProfileTensorValuesV2", {{-1, 0, 0}, {54, 101100, 0}, {46, 110000, 0}, {46, 10701, 0}}},
  {"ICudaEngine::getProfileTensorValues", {{-1, 0, 0}, {11, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getProfilingVerbosity", {{32, 80601, 0}, {17, 100001, 0}, {13, 110000, 0}, {13, 10701, 0}}},
  {"ICudaEngine::getStreamableWeightsSize", {{-1, 0, 0}, {46, 100001, 0}, {38, 110000, 0}, {38, 10701, 0}}},
  {"ICudaEngine::getTacticSources", {{31, 80601, 0}, {16, 100001, 0}, {12, 110000, 0}, {12, 10701, 0}}},
  {"ICudaEngine::getTensorBytesPerComponentV2", {{50, 80601, 0}, {34, 100001, 0}, {30, 110000, 0}, {30, 10701, 0}}},
  {"ICudaEngine::getTensorBytesPerComponent", {{39, 80601, 0}, {24, 100001, 0}, {20, 110000, 0}, {20, 10701, 0}}},
  {"ICudaEngine::getTensorComponentsPerElementV2", {{51, 80601, 0}, {35, 100001, 0}, {31, 110000, 0}, {31, 10701, 0}}},
  {"ICudaEngine::getTensorComponentsPerElement", {{40, 80601, 0}, {25, 100001, 0}, {21, 110000, 0}, {21, 10701, 0}}},
  {"ICudaEngine::getTensorDataType", {{35, 80601, 0}, {20, 100001, 0}, {16, 110000, 0}, {16, 10701, 0}}},
  {"ICudaEngine::getTensorFormatDescV2", {{53, 80601, 0}, {37, 100001, 0}, {33, 110000, 0}, {33, 10701, 0}}},
  {"ICudaEngine::getTensorFormatDesc", {{42, 80601, 0}, {27, 100001, 0}, {23, 110000, 0}, {23, 10701, 0}}},
  {"ICudaEngine::getTensorFormatV2", {{52, 80601, 0}, {36, 100001, 0}, {32, 110000, 0}, {32, 10701, 0}}},
  {"ICudaEngine::getTensorFormat", {{41, 80601, 0}, {26, 100001, 0}, {22, 110000, 0}, {22, 10701, 0}}},
  {"ICudaEngine::getTensorIOMode", {{38, 80601, 0}, {23, 100001, 0}, {19, 110000, 0}, {19, 10701, 0}}},
  {"ICudaEngine::getTensorLocation", {{36, 80601, 0}, {21, 100001, 0}, {17, 110000, 0}, {17, 10701, 0}}},
  {"ICudaEngine::getTensorShape", {{34, 80601, 0}, {19, 100001, 0}, {15, 110000, 0}, {15, 10701, 0}}},
  {"ICudaEngine::getTensorVectorizedDimV2", {{54, 80601, 0}, {38, 100001, 0}, {34, 110000, 0}, {34, 10701, 0}}},
  {"ICudaEngine::getTensorVectorizedDim", {{43, 80601, 0}, {28, 100001, 0}, {24, 110000, 0}, {24, 10701, 0}}},
  {"ICudaEngine::getWeightStreamingAutomaticBudget", {{-1, 0, 0}, {50, 100100, 0}, {42, 110000, 0}, {42, 10701, 0}}},
  {"ICudaEngine::getWeightStreamingBudgetV2", {{-1, 0, 0}, {49, 100100, 0}, {41, 110000, 0}, {41, 10701, 0}}},
  {"ICudaEngine::getWeightStreamingBudget", {{-1, 0, 0}, {44, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::getWeightStreamingScratchMemorySize", {{-1, 0, 0}, {51, 100100, 0}, {43, 110000, 0}, {43, 10701, 0}}},
  {"ICudaEngine::hasImplicitBatchDimension", {{30, 80601, 0}, {15, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::isDebugTensor", {{-1, 0, 0}, {47, 100001, 0}, {39, 110000, 0}, {39, 10701, 0}}},
  {"ICudaEngine::isExecutionBinding", {{26, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::isRefittable", {{15, 80601, 0}, {8, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"ICudaEngine::isShapeBinding", {{25, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ICudaEngine::isShapeInferenceIO", {{37, 80601, 0}, {22, 100001, 0}, {18, 110000, 0}, {18, 10701, 0}}},
  {"ICudaEngine::serializeWithConfig", {{-1, 0, 0}, {40, 100001, 0}, {36, 110000, 0}, {36, 10701, 0}}},
  {"ICudaEngine::serialize", {{10, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"ICudaEngine::setErrorRecorder", {{28, 80601, 0}, {13, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"ICudaEngine::setWeightStreamingBudgetV2", {{-1, 0, 0}, {48, 100100, 0}, {40, 110000, 0}, {40, 10701, 0}}},
  {"ICudaEngine::setWeightStreamingBudget", {{-1, 0, 0}, {43, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IEngineInspector::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IEngineInspector::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IEngineInspector::getEngineInformation", {{5, 80601, 0}, {6, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IEngineInspector::getErrorRecorder", {{7, 80601, 0}, {8, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"IEngineInspector::getExecutionContext", {{3, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IEngineInspector::getLayerInformation", {{4, 80601, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IEngineInspector::getPImpl", {{8, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IEngineInspector::setErrorRecorder", {{6, 80601, 0}, {7, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"IEngineInspector::setExecutionContext", {{2, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IExecutionContext::allInputDimensionsSpecified", {{19, 80601, 0}, {12, 100001, 0}, {12, 110000, 0}, {12, 10701, 0}}},
  {"IExecutionContext::allInputShapesSpecified", {{20, 80601, 0}, {13, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IExecutionContext::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IExecutionContext::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IExecutionContext::enqueueV2", {{24, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IExecutionContext::enqueueV3", {{44, 80601, 0}, {37, 100001, 0}, {36, 110000, 0}, {36, 10701, 0}}},
  {"IExecutionContext::enqueue", {{3, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IExecutionContext::executeV2", {{23, 80601, 0}, {16, 100001, 0}, {15, 110000, 0}, {15, 10701, 0}}},
  {"IExecutionContext::execute", {{2, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IExecutionContext::getBindingDimensions", {{16, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IExecutionContext::getDebugListener", {{-1, 0, 0}, {44, 100001, 0}, {43, 110000, 0}, {43, 10701, 0}}},
  {"IExecutionContext::getDebugState", {{-1, 0, 0}, {46, 100001, 0}, {45, 110000, 0}, {45, 10701, 0}}},
  {"IExecutionContext::getDebugSync", {{5, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IExecutionContext::getEngine", {{8, 80601, 0}, {7, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"IExecutionContext::getEnqueueEmitsProfile", {{27, 80601, 0}, {19, 100001, 0}, {18, 110000, 0}, {18, 10701, 0}}},
  {"IExecutionContext::getErrorRecorder", {{22, 80601, 0}, {15, 100001, 0}, {14, 110000, 0}, {14, 10701, 0}}},
  {"IExecutionContext::getInputConsumedEvent", {{37, 80601, 0}, {30, 100001, 0}, {29, 110000, 0}, {29, 10701, 0}}},
  {"IExecutionContext::getMaxOutputSize", {{41, 80601, 0}, {34, 100001, 0}, {33, 110000, 0}, {33, 10701, 0}}},
  {"IExecutionContext::getName", {{10, 80601, 0}, {9, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"IExecutionContext::getNvtxVerbosity", {{48, 80601, 0}, {41, 100001, 0}, {40, 110000, 0}, {40, 10701, 0}}},
  {"IExecutionContext::getOptimizationProfile", {{14, 80601, 0}, {11, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"IExecutionContext::getOutputAllocator", {{40, 80601, 0}, {33, 100001, 0}, {32, 110000, 0}, {32, 10701, 0}}},
  {"IExecutionContext::getOutputTensorAddress", {{38, 80601, 0}, {31, 100001, 0}, {30, 110000, 0}, {30, 10701, 0}}},
  {"IExecutionContext::getPImpl", {{49, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IExecutionContext::getPersistentCacheLimit", {{46, 80601, 0}, {39, 100001, 0}, {38, 110000, 0}, {38, 10701, 0}}},
  {"IExecutionContext::getProfiler", {{7, 80601, 0}, {6, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IExecutionContext::getRuntimeConfig", {{-1, 0, 0}, {50, 101100, 0}, {49, 110000, 0}, {49, 10701, 0}}},
  {"IExecutionContext::getShapeBinding", {{18, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IExecutionContext::getStrides", {{12, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IExecutionContext::getTemporaryStorageAllocator", {{43, 80601, 0}, {36, 100001, 0}, {35, 110000, 0}, {35, 10701, 0}}},
  {"IExecutionContext::getTensorAddress", {{33, 80601, 0}, {25, 100001, 0}, {24, 110000, 0}, {24, 10701, 0}}},
  {"IExecutionContext::getTensorShape", {{30, 80601, 0}, {22, 100001, 0}, {21, 110000, 0}, {21, 10701, 0}}},
  {"IExecutionContext::getTensorStrides", {{31, 80601, 0}, {23, 100001, 0}, {22, 110000, 0}, {22, 10701, 0}}},
  {"IExecutionContext::getUnfusedTensorsDebugState", {{-1, 0, 0}, {52, 101200, 0}, {51, 110000, 0}, {51, 10701, 0}}},
  {"IExecutionContext::inferShapes", {{35, 80601, 0}, {28, 100001, 0}, {27, 110000, 0}, {27, 10701, 0}}},
  {"IExecutionContext::reportToProfiler", {{28, 80601, 0}, {20, 100001, 0}, {19, 110000, 0}, {19, 10701, 0}}},
  {"IExecutionContext::setAllTensorsDebugState", {{-1, 0, 0}, {47, 100001, 0}, {46, 110000, 0}, {46, 10701, 0}}},
  {"IExecutionContext::setAuxStreams", {{50, 80601, 0}, {42, 100001, 0}, {41, 110000, 0}, {41, 10701, 0}}},
  {"IExecutionContext::setBindingDimensions", {{15, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IExecutionContext::setCommunicator", {{-1, 0, 0}, {53, 101600, 0}, {52, 110000, 0}, {-1, 0, 0}}},
  {"IExecutionContext::setDebugListener", {{-1, 0, 0}, {43, 100001, 0}, {42, 110000, 0}, {42, 10701, 0}}},
  {"IExecutionContext::setDebugSync", {{4, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IExecutionContext::setDeviceMemoryV2", {{-1, 0, 0}, {49, 100100, 0}, {48, 110000, 0}, {48, 10701, 0}}},
  {"IExecutionContext::setDeviceMemory", {{11, 80601, 0}, {10, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"IExecutionContext::setEnqueueEmitsProfile", {{26, 80601, 0}, {18, 100001, 0}, {17, 110000, 0}, {17, 10701, 0}}},
  {"IExecutionContext::setErrorRecorder", {{21, 80601, 0}, {14, 100001, 0}, {13, 110000, 0}, {13, 10701, 0}}},
  {"IExecutionContext::setInputConsumedEvent", {{36, 80601, 0}, {29, 100001, 0}, {28, 110000, 0}, {28, 10701, 0}}},
  {"IExecutionContext::setInputShapeBinding", {{17, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IExecutionContext::setInputShape", {{29, 80601, 0}, {21, 100001, 0}, {20, 110000, 0}, {20, 10701, 0}}},
  {"IExecutionContext::setInputTensorAddress", {{34, 80601, 0}, {26, 100001, 0}, {25, 110000, 0}, {25, 10701, 0}}},
  {"IExecutionContext::setName", {{9, 80601, 0}, {8, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"IExecutionContext::setNvtxVerbosity", {{47, 80601, 0}, {40, 100001, 0}, {39, 110000, 0}, {39, 10701, 0}}},
  {"IExecutionContext::setOptimizationProfileAsync", {{25, 80601, 0}, {17, 100001, 0}, {16, 110000, 0}, {16, 10701, 0}}},
  {"IExecutionContext::setOptimizationProfile", {{13, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IExecutionContext::setOutputAllocator", {{39, 80601, 0}, {32, 100001, 0}, {31, 110000, 0}, {31, 10701, 0}}},
  {"IExecutionContext::setOutputTensorAddress", {{-1, 0, 0}, {27, 100001, 0}, {26, 110000, 0}, {26, 10701, 0}}},
  {"IExecutionContext::setPersistentCacheLimit", {{45, 80601, 0}, {38, 100001, 0}, {37, 110000, 0}, {37, 10701, 0}}},
  {"IExecutionContext::setProfiler", {{6, 80601, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IExecutionContext::setTemporaryStorageAllocator", {{42, 80601, 0}, {35, 100001, 0}, {34, 110000, 0}, {34, 10701, 0}}},
  {"IExecutionContext::setTensorAddress", {{32, 80601, 0}, {24, 100001, 0}, {23, 110000, 0}, {23, 10701, 0}}},
  {"IExecutionContext::setTensorDebugState", {{-1, 0, 0}, {45, 100001, 0}, {44, 110000, 0}, {44, 10701, 0}}},
  {"IExecutionContext::setUnfusedTensorsDebugState", {{-1, 0, 0}, {51, 101200, 0}, {50, 110000, 0}, {50, 10701, 0}}},
  {"IExecutionContext::updateDeviceMemorySizeForShapes", {{-1, 0, 0}, {48, 100001, 0}, {47, 110000, 0}, {47, 10701, 0}}},
  {"IHostMemory::data", {{2, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IHostMemory::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IHostMemory::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IHostMemory::size", {{3, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IHostMemory::type", {{4, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"ILayer::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"ILayer::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"ILayer::getInput", {{6, 80601, 0}, {6, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"ILayer::getMetadata", {{19, 80601, 0}, {19, 100001, 0}, {12, 110000, 0}, {12, 10701, 0}}},
  {"ILayer::getName", {{4, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"ILayer::getNbInputs", {{5, 80601, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"ILayer::getNbOutputs", {{7, 80601, 0}, {7, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"ILayer::getNbRanks", {{-1, 0, 0}, {21, 101600, 0}, {14, 110000, 0}, {14, 10701, 0}}},
  {"ILayer::getOutputType", {{15, 80601, 0}, {15, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"ILayer::getOutput", {{8, 80601, 0}, {8, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"ILayer::getPrecision", {{11, 80601, 0}, {11, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ILayer::getType", {{2, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"ILayer::outputTypeIsSet", {{16, 80601, 0}, {16, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ILayer::precisionIsSet", {{12, 80601, 0}, {12, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ILayer::resetOutputType", {{17, 80601, 0}, {17, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ILayer::resetPrecision", {{13, 80601, 0}, {13, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ILayer::setInput", {{9, 80601, 0}, {9, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"ILayer::setMetadata", {{18, 80601, 0}, {18, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"ILayer::setName", {{3, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"ILayer::setNbRanks", {{-1, 0, 0}, {20, 101600, 0}, {13, 110000, 0}, {13, 10701, 0}}},
  {"ILayer::setOutputType", {{14, 80601, 0}, {14, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ILayer::setPrecision", {{10, 80601, 0}, {10, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ILogger::destroy.complete", {{1, 80601, 0}, {1, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"ILogger::destroy.deleting", {{2, 80601, 0}, {2, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"ILogger::getAPILanguage", {{-1, 0, 0}, {-1, 0, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"ILogger::getInterfaceInfo", {{-1, 0, 0}, {-1, 0, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"ILogger::log", {{0, 80601, 0}, {0, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"INetworkDefinition::addActivation", {{6, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"INetworkDefinition::addAssertion", {{61, 80601, 0}, {55, 100001, 0}, {52, 110000, 0}, {50, 10701, 0}}},
  {"INetworkDefinition::addAttentionV2", {{-1, 0, 0}, {-1, 0, 0}, {88, 110000, 0}, {86, 10701, 0}}},
  {"INetworkDefinition::addAttention", {{-1, 0, 0}, {84, 101401, 0}, {81, 110000, 0}, {79, 10701, 0}}},
  {"INetworkDefinition::addCast", {{68, 80601, 0}, {62, 100001, 0}, {59, 110000, 0}, {57, 10701, 0}}},
  {"INetworkDefinition::addConcatenation", {{11, 80601, 0}, {8, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"INetworkDefinition::addConstant", {{28, 80601, 0}, {23, 100001, 0}, {23, 110000, 0}, {23, 10701, 0}}},
  {"INetworkDefinition::addConvolutionNd", {{42, 80601, 0}, {37, 100001, 0}, {37, 110000, 0}, {35, 10701, 0}}},
  {"INetworkDefinition::addConvolution", {{4, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addCumulative", {{-1, 0, 0}, {78, 100900, 0}, {75, 110000, 0}, {73, 10701, 0}}},
  {"INetworkDefinition::addDeconvolutionNd", {{44, 80601, 0}, {39, 100001, 0}, {39, 110000, 0}, {37, 10701, 0}}},
  {"INetworkDefinition::addDeconvolution", {{12, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addDequantizeV2", {{-1, 0, 0}, {67, 100001, 100800}, {64, 110000, 0}, {62, 10701, 0}}},
  {"INetworkDefinition::addDequantize", {{55, 80601, 0}, {49, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addDistCollective", {{-1, 0, 0}, {90, 101600, 0}, {87, 110000, 0}, {85, 10701, 0}}},
  {"INetworkDefinition::addDynamicQuantizeV2", {{-1, 0, 0}, {86, 101501, 0}, {83, 110000, 0}, {81, 10701, 0}}},
  {"INetworkDefinition::addDynamicQuantize", {{-1, 0, 0}, {77, 100900, 0}, {74, 110000, 0}, {72, 10701, 0}}},
  {"INetworkDefinition::addEinsum", {{60, 80601, 0}, {54, 100001, 0}, {51, 110000, 0}, {49, 10701, 0}}},
  {"INetworkDefinition::addElementWise", {{13, 80601, 0}, {9, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"INetworkDefinition::addFillV2", {{-1, 0, 0}, {68, 100001, 100800}, {65, 110000, 0}, {63, 10701, 0}}},
  {"INetworkDefinition::addFill", {{50, 80601, 0}, {44, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addFullyConnected", {{5, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addGatherV2", {{57, 80601, 0}, {51, 100001, 0}, {48, 110000, 0}, {46, 10701, 0}}},
  {"INetworkDefinition::addGather", {{25, 80601, 0}, {20, 100001, 0}, {20, 110000, 0}, {20, 10701, 0}}},
  {"INetworkDefinition::addGridSample", {{64, 80601, 0}, {58, 100001, 0}, {55, 110000, 0}, {53, 10701, 0}}},
  {"INetworkDefinition::addIdentity", {{30, 80601, 0}, {24, 100001, 0}, {24, 110000, 0}, {24, 10701, 0}}},
  {"INetworkDefinition::addIfConditional", {{58, 80601, 0}, {52, 100001, 0}, {49, 110000, 0}, {47, 10701, 0}}},
  {"INetworkDefinition::addInput", {{2, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"INetworkDefinition::addKVCacheUpdate", {{-1, 0, 0}, {87, 101501, 0}, {84, 110000, 0}, {82, 10701, 0}}},
  {"INetworkDefinition::addLRN", {{8, 80601, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"INetworkDefinition::addLoop", {{48, 80601, 0}, {42, 100001, 0}, {42, 110000, 0}, {40, 10701, 0}}},
  {"INetworkDefinition::addMatrixMultiply", {{27, 80601, 0}, {22, 100001, 0}, {22, 110000, 0}, {22, 10701, 0}}},
  {"INetworkDefinition::addMoE", {{-1, 0, 0}, {89, 101600, 0}, {86, 110000, 0}, {84, 10701, 0}}},
  {"INetworkDefinition::addNMSV2", {{-1, 0, 0}, {83, 101401, 0}, {80, 110000, 0}, {78, 10701, 0}}},
  {"INetworkDefinition::addNMS", {{65, 80601, 0}, {59, 100001, 0}, {56, 110000, 0}, {54, 10701, 0}}},
  {"INetworkDefinition::addNonZeroV2", {{-1, 0, 0}, {82, 101401, 0}, {79, 110000, 0}, {77, 10701, 0}}},
  {"INetworkDefinition::addNonZero", {{63, 80601, 0}, {57, 100001, 0}, {54, 110000, 0}, {52, 10701, 0}}},
  {"INetworkDefinition::addNormalizationV2", {{-1, 0, 0}, {88, 101501, 0}, {85, 110000, 0}, {83, 10701, 0}}},
  {"INetworkDefinition::addNormalization", {{67, 80601, 0}, {61, 100001, 0}, {58, 110000, 0}, {56, 10701, 0}}},
  {"INetworkDefinition::addOneHot", {{62, 80601, 0}, {56, 100001, 0}, {53, 110000, 0}, {51, 10701, 0}}},
  {"INetworkDefinition::addPaddingNd", {{51, 80601, 0}, {45, 100001, 0}, {44, 110000, 0}, {42, 10701, 0}}},
  {"INetworkDefinition::addPadding", {{15, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addParametricReLU", {{41, 80601, 0}, {36, 100001, 0}, {36, 110000, 0}, {34, 10701, 0}}},
  {"INetworkDefinition::addPluginV2", {{33, 80601, 0}, {27, 100001, 0}, {27, 110000, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addPluginV3", {{-1, 0, 0}, {28, 100001, 0}, {28, 110000, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addPoolingNd", {{43, 80601, 0}, {38, 100001, 0}, {38, 110000, 0}, {36, 10701, 0}}},
  {"INetworkDefinition::addPooling", {{7, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addQuantizeV2", {{-1, 0, 0}, {66, 100001, 100800}, {63, 110000, 0}, {61, 10701, 0}}},
  {"INetworkDefinition::addQuantize", {{56, 80601, 0}, {50, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addRNNv2", {{29, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::addRaggedSoftMax", {{26, 80601, 0}, {21, 100001, 0}, {21, 110000, 0}, {21, 10701, 0}}},
  {"INetworkDefinition::addReduce", {{23, 80601, 0}, {18, 100001, 0}, {18, 110000, 0}, {18, 10701, 0}}},
  {"INetworkDefinition::addResize", {{46, 80601, 0}, {41, 100001, 0}, {41, 110000, 0}, {39, 10701, 0}}},
  {"INetworkDefinition::addReverseSequence", {{66, 80601, 0}, {60, 100001, 0}, {57, 110000, 0}, {55, 10701, 0}}},
  {"INetworkDefinition::addRotaryEmbedding", {{-1, 0, 0}, {85, 101501, 0}, {82, 110000, 0}, {80, 10701, 0}}},
  {"INetworkDefinition::addScaleNd", {{45, 80601, 0}, {40, 100001, 0}, {40, 110000, 0}, {38, 10701, 0}}},
  {"INetworkDefinition::addScale", {{9, 80601, 0}, {6, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"INetworkDefinition::addScatter", {{59, 80601, 0}, {53, 100001, 0}, {50, 110000, 0}, {48, 10701, 0}}},
  {"INetworkDefinition::addSelect", {{49, 80601, 0}, {43, 100001, 0}, {43, 110000, 0}, {41, 10701, 0}}},
  {"INetworkDefinition::addShape", {{37, 80601, 0}, {32, 100001, 0}, {32, 110000, 0}, {30, 10701, 0}}},
  {"INetworkDefinition::addShuffle", {{16, 80601, 0}, {11, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"INetworkDefinition::addSlice", {{34, 80601, 0}, {29, 100001, 0}, {29, 110000, 0}, {27, 10701, 0}}},
  {"INetworkDefinition::addSoftMax", {{10, 80601, 0}, {7, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"INetworkDefinition::addSqueeze", {{-1, 0, 0}, {75, 100700, 100800}, {72, 110000, 0}, {70, 10701, 0}}},
  {"INetworkDefinition::addTopKV2", {{-1, 0, 0}, {81, 101401, 0}, {78, 110000, 0}, {76, 10701, 0}}},
  {"INetworkDefinition::addTopK", {{24, 80601, 0}, {19, 100001, 0}, {19, 110000, 0}, {19, 10701, 0}}},
  {"INetworkDefinition::addUnary", {{14, 80601, 0}, {10, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"INetworkDefinition::addUnsqueeze", {{-1, 0, 0}, {76, 100700, 100800}, {73, 110000, 0}, {71, 10701, 0}}},
  {"INetworkDefinition::areWeightsMarkedRefittable", {{-1, 0, 0}, {74, 100200, 100800}, {71, 110000, 0}, {69, 10701, 0}}},
  {"INetworkDefinition::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"INetworkDefinition::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"INetworkDefinition::getBuilder", {{69, 80601, 0}, {63, 100001, 100800}, {60, 110000, 0}, {58, 10701, 0}}},
  {"INetworkDefinition::getErrorRecorder", {{54, 80601, 0}, {48, 100001, 0}, {47, 110000, 0}, {45, 10701, 0}}},
  {"INetworkDefinition::getFlag", {{-1, 0, 0}, {65, 100001, 100800}, {62, 110000, 0}, {60, 10701, 0}}},
  {"INetworkDefinition::getFlags", {{-1, 0, 0}, {64, 100001, 100800}, {61, 110000, 0}, {59, 10701, 0}}},
  {"INetworkDefinition::getInput", {{20, 80601, 0}, {15, 100001, 0}, {15, 110000, 0}, {15, 10701, 0}}},
  {"INetworkDefinition::getLayer", {{18, 80601, 0}, {13, 100001, 0}, {13, 110000, 0}, {13, 10701, 0}}},
  {"INetworkDefinition::getName", {{36, 80601, 0}, {31, 100001, 0}, {31, 110000, 0}, {29, 10701, 0}}},
  {"INetworkDefinition::getNbInputs", {{19, 80601, 0}, {14, 100001, 0}, {14, 110000, 0}, {14, 10701, 0}}},
  {"INetworkDefinition::getNbLayers", {{17, 80601, 0}, {12, 100001, 0}, {12, 110000, 0}, {12, 10701, 0}}},
  {"INetworkDefinition::getNbOutputs", {{21, 80601, 0}, {16, 100001, 0}, {16, 110000, 0}, {16, 10701, 0}}},
  {"INetworkDefinition::getOutput", {{22, 80601, 0}, {17, 100001, 0}, {17, 110000, 0}, {17, 10701, 0}}},
  {"INetworkDefinition::hasExplicitPrecision", {{47, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"INetworkDefinition::hasImplicitBatchDimension", {{38, 80601, 0}, {33, 100001, 0}, {33, 110000, 0}, {31, 10701, 0}}},
  {"INetworkDefinition::isDebugTensor", {{-1, 0, 0}, {71, 100001, 100800}, {68, 110000, 0}, {66, 10701, 0}}},
  {"INetworkDefinition::markDebug", {{-1, 0, 0}, {69, 100001, 100800}, {66, 110000, 0}, {64, 10701, 0}}},
  {"INetworkDefinition::markOutputForShapes", {{39, 80601, 0}, {34, 100001, 0}, {34, 110000, 0}, {32, 10701, 0}}},
  {"INetworkDefinition::markOutput", {{3, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"INetworkDefinition::markUnfusedTensorsAsDebugTensors", {{-1, 0, 0}, {79, 101200, 0}, {76, 110000, 0}, {74, 10701, 0}}},
  {"INetworkDefinition::markWeightsRefittable", {{-1, 0, 0}, {72, 100200, 100800}, {69, 110000, 0}, {67, 10701, 0}}},
  {"INetworkDefinition::removeTensor", {{31, 80601, 0}, {25, 100001, 0}, {25, 110000, 0}, {25, 10701, 0}}},
  {"INetworkDefinition::setErrorRecorder", {{53, 80601, 0}, {47, 100001, 0}, {46, 110000, 0}, {44, 10701, 0}}},
  {"INetworkDefinition::setName", {{35, 80601, 0}, {30, 100001, 0}, {30, 110000, 0}, {28, 10701, 0}}},
  {"INetworkDefinition::setWeightsName", {{52, 80601, 0}, {46, 100001, 0}, {45, 110000, 0}, {43, 10701, 0}}},
  {"INetworkDefinition::unmarkDebug", {{-1, 0, 0}, {70, 100001, 100800}, {67, 110000, 0}, {65, 10701, 0}}},
  {"INetworkDefinition::unmarkOutputForShapes", {{40, 80601, 0}, {35, 100001, 0}, {35, 110000, 0}, {33, 10701, 0}}},
  {"INetworkDefinition::unmarkOutput", {{32, 80601, 0}, {26, 100001, 0}, {26, 110000, 0}, {26, 10701, 0}}},
  {"INetworkDefinition::unmarkUnfusedTensorsAsDebugTensors", {{-1, 0, 0}, {80, 101200, 0}, {77, 110000, 0}, {75, 10701, 0}}},
  {"INetworkDefinition::unmarkWeightsRefittable", {{-1, 0, 0}, {73, 100200, 100800}, {70, 110000, 0}, {68, 10701, 0}}},
  {"IOptimizationProfile::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IOptimizationProfile::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IOptimizationProfile::getDimensions", {{3, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IOptimizationProfile::getExtraMemoryTarget", {{8, 80601, 0}, {8, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IOptimizationProfile::getNbShapeValues", {{5, 80601, 0}, {5, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IOptimizationProfile::getShapeValuesV2", {{-1, 0, 0}, {11, 101100, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"IOptimizationProfile::getShapeValues", {{6, 80601, 0}, {6, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IOptimizationProfile::isValid", {{9, 80601, 0}, {9, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"IOptimizationProfile::setDimensions", {{2, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IOptimizationProfile::setExtraMemoryTarget", {{7, 80601, 0}, {7, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IOptimizationProfile::setShapeValuesV2", {{-1, 0, 0}, {10, 101100, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"IOptimizationProfile::setShapeValues", {{4, 80601, 0}, {4, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IOutputAllocator::destroy.complete", {{3, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IOutputAllocator::destroy.deleting", {{4, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IOutputAllocator::getAPILanguage", {{-1, 0, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IOutputAllocator::getInterfaceInfo", {{-1, 0, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IOutputAllocator::getInterfaceVersion", {{0, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IOutputAllocator::notifyShape", {{2, 80601, 0}, {6, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IOutputAllocator::reallocateOutputAsync", {{-1, 0, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IOutputAllocator::reallocateOutput", {{1, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IParserError::code", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IParserError::desc", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IParserError::destroy.complete", {{6, 80601, 0}, {10, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"IParserError::destroy.deleting", {{7, 80601, 0}, {11, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"IParserError::file", {{2, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IParserError::func", {{4, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IParserError::line", {{3, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IParserError::localFunctionStackSize", {{-1, 0, 0}, {9, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"IParserError::localFunctionStack", {{-1, 0, 0}, {8, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"IParserError::nodeName", {{-1, 0, 0}, {6, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IParserError::nodeOperator", {{-1, 0, 0}, {7, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"IParserError::node", {{5, 80601, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IParser::clearErrors", {{8, 80601, 0}, {7, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IParser::clearFlag", {{14, 80601, 0}, {13, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"IParser::destroy", {{5, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IParser::destroy.complete", {{9, 80601, 0}, {8, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IParser::destroy.deleting", {{10, 80601, 0}, {9, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"IParser::getError", {{7, 80601, 0}, {6, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IParser::getFlag", {{16, 80601, 0}, {15, 100001, 0}, {13, 110000, 0}, {13, 10701, 0}}},
  {"IParser::getFlags", {{13, 80601, 0}, {12, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"IParser::getLayerOutputTensor", {{-1, 0, 0}, {16, 100001, 0}, {14, 110000, 0}, {14, 10701, 0}}},
  {"IParser::getNbErrors", {{6, 80601, 0}, {5, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IParser::getNbSubgraphs", {{-1, 0, 0}, {18, 100100, 0}, {16, 110000, 0}, {16, 10701, 0}}},
  {"IParser::getSubgraphNodes", {{-1, 0, 0}, {20, 100100, 0}, {18, 110000, 0}, {18, 10701, 0}}},
  {"IParser::getUsedVCPluginLibraries", {{11, 80601, 0}, {10, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"IParser::isSubgraphSupported", {{-1, 0, 0}, {19, 100100, 0}, {17, 110000, 0}, {17, 10701, 0}}},
  {"IParser::loadInitializer", {{-1, 0, 0}, {22, 101401, 0}, {20, 110000, 0}, {20, 10701, 0}}},
  {"IParser::loadModelProto", {{-1, 0, 0}, {21, 101401, 0}, {19, 110000, 0}, {19, 10701, 0}}},
  {"IParser::parseFromFile", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IParser::parseModelProto", {{-1, 0, 0}, {23, 101401, 0}, {21, 110000, 0}, {21, 10701, 0}}},
  {"IParser::parseWithWeightDescriptors", {{3, 80601, 0}, {3, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IParser::parse", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IParser::setBuilderConfig", {{-1, 0, 0}, {24, 101501, 0}, {22, 110000, 0}, {22, 10701, 0}}},
  {"IParser::setFlag", {{15, 80601, 0}, {14, 100001, 0}, {12, 110000, 0}, {12, 10701, 0}}},
  {"IParser::setFlags", {{12, 80601, 0}, {11, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"IParser::supportsModelV2", {{-1, 0, 0}, {17, 100100, 0}, {15, 110000, 0}, {15, 10701, 0}}},
  {"IParser::supportsModel", {{2, 80601, 0}, {2, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IParser::supportsOperator", {{4, 80601, 0}, {4, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IPluginRegistry::acquirePluginResource", {{-1, 0, 0}, {16, 100001, 0}, {12, 110000, 0}, {12, 10701, 0}}},
  {"IPluginRegistry::deregisterCreator", {{7, 80601, 0}, {7, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"IPluginRegistry::deregisterCreator", {{-1, 0, 0}, {15, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IPluginRegistry::deregisterLibrary", {{11, 80601, 0}, {11, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"IPluginRegistry::destroy.complete", {{3, 80601, 0}, {3, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IPluginRegistry::destroy.deleting", {{4, 80601, 0}, {4, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IPluginRegistry::getAllCreatorsRecursive", {{-1, 0, 0}, {18, 101000, 0}, {14, 110000, 0}, {14, 10701, 0}}},
  {"IPluginRegistry::getAllCreators", {{-1, 0, 0}, {13, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"IPluginRegistry::getCreator", {{-1, 0, 0}, {14, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"IPluginRegistry::getErrorRecorder", {{6, 80601, 0}, {6, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IPluginRegistry::getPluginCreatorList", {{1, 80601, 0}, {1, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IPluginRegistry::getPluginCreator", {{2, 80601, 0}, {2, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IPluginRegistry::isParentSearchEnabled", {{8, 80601, 0}, {8, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IPluginRegistry::loadLibrary", {{10, 80601, 0}, {10, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IPluginRegistry::registerCreator", {{0, 80601, 0}, {0, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"IPluginRegistry::registerCreator", {{-1, 0, 0}, {12, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IPluginRegistry::releasePluginResource", {{-1, 0, 0}, {17, 100001, 0}, {13, 110000, 0}, {13, 10701, 0}}},
  {"IPluginRegistry::setErrorRecorder", {{5, 80601, 0}, {5, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IPluginRegistry::setParentSearchEnabled", {{9, 80601, 0}, {9, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IProfiler::destroy.complete", {{1, 80601, 0}, {1, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IProfiler::destroy.deleting", {{2, 80601, 0}, {2, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IProfiler::getAPILanguage", {{-1, 0, 0}, {-1, 0, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IProfiler::getInterfaceInfo", {{-1, 0, 0}, {-1, 0, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IProfiler::reportLayerTime", {{0, 80601, 0}, {0, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IProgressMonitor::destroy.complete", {{-1, 0, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IProgressMonitor::destroy.deleting", {{-1, 0, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IProgressMonitor::getAPILanguage", {{-1, 0, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IProgressMonitor::getInterfaceInfo", {{-1, 0, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IProgressMonitor::phaseFinish", {{-1, 0, 0}, {6, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IProgressMonitor::phaseStart", {{-1, 0, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IProgressMonitor::stepComplete", {{-1, 0, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IRefitter::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IRefitter::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IRefitter::getAllWeights", {{14, 80601, 0}, {15, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"IRefitter::getAll", {{5, 80601, 0}, {6, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IRefitter::getDynamicRangeMax", {{8, 80601, 0}, {9, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IRefitter::getDynamicRangeMin", {{7, 80601, 0}, {8, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IRefitter::getErrorRecorder", {{11, 80601, 0}, {12, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"IRefitter::getLogger", {{15, 80601, 0}, {16, 100001, 0}, {12, 110000, 0}, {12, 10701, 0}}},
  {"IRefitter::getMaxThreads", {{17, 80601, 0}, {18, 100001, 0}, {14, 110000, 0}, {14, 10701, 0}}},
  {"IRefitter::getMissingWeights", {{13, 80601, 0}, {14, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"IRefitter::getMissing", {{4, 80601, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IRefitter::getNamedWeights", {{-1, 0, 0}, {20, 100001, 0}, {16, 110000, 0}, {16, 10701, 0}}},
  {"IRefitter::getPImpl", {{-1, 0, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IRefitter::getTensorsWithDynamicRange", {{9, 80601, 0}, {10, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IRefitter::getWeightsLocation", {{-1, 0, 0}, {21, 100001, 0}, {17, 110000, 0}, {17, 10701, 0}}},
  {"IRefitter::getWeightsPrototype", {{-1, 0, 0}, {26, 100001, 0}, {22, 110000, 0}, {22, 10701, 0}}},
  {"IRefitter::getWeightsValidation", {{-1, 0, 0}, {24, 100001, 0}, {20, 110000, 0}, {20, 10701, 0}}},
  {"IRefitter::refitCudaEngineAsync", {{-1, 0, 0}, {25, 100001, 0}, {21, 110000, 0}, {21, 10701, 0}}},
  {"IRefitter::refitCudaEngine", {{3, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IRefitter::setDynamicRange", {{6, 80601, 0}, {7, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IRefitter::setErrorRecorder", {{10, 80601, 0}, {11, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"IRefitter::setMaxThreads", {{16, 80601, 0}, {17, 100001, 0}, {13, 110000, 0}, {13, 10701, 0}}},
  {"IRefitter::setNamedWeightsWithLocation", {{-1, 0, 0}, {19, 100001, 0}, {15, 110000, 0}, {15, 10701, 0}}},
  {"IRefitter::setNamedWeights", {{12, 80601, 0}, {13, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"IRefitter::setWeightsValidation", {{-1, 0, 0}, {23, 100001, 0}, {19, 110000, 0}, {19, 10701, 0}}},
  {"IRefitter::setWeights", {{2, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IRefitter::unsetNamedWeights", {{-1, 0, 0}, {22, 100001, 0}, {18, 110000, 0}, {18, 10701, 0}}},
  {"IRuntimeConfig::destroy.complete", {{-1, 0, 0}, {0, 101100, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IRuntimeConfig::destroy.deleting", {{-1, 0, 0}, {1, 101100, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IRuntimeConfig::getExecutionContextAllocationStrategy", {{-1, 0, 0}, {4, 101100, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IRuntimeConfig::getPImpl", {{-1, 0, 0}, {2, 101100, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IRuntimeConfig::setExecutionContextAllocationStrategy", {{-1, 0, 0}, {3, 101100, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IRuntime::deserializeCudaEngineV2", {{-1, 0, 0}, {23, 100700, 0}, {22, 110000, 0}, {22, 10701, 0}}},
  {"IRuntime::deserializeCudaEngine", {{-1, 0, 0}, {4, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IRuntime::deserializeCudaEngine", {{-1, 0, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"IRuntime::deserializeCudaEngine", {{2, 80601, 0}, {-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"IRuntime::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"IRuntime::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"IRuntime::getDLACore", {{4, 80601, 0}, {6, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"IRuntime::getEngineHeaderSize", {{-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {23, 10701, 0}}},
  {"IRuntime::getEngineHostCodeAllowed", {{21, 80601, 0}, {22, 100001, 0}, {21, 110000, 0}, {21, 10701, 0}}},
  {"IRuntime::getEngineValidity", {{-1, 0, 0}, {-1, 0, 0}, {-1, 0, 0}, {24, 10701, 0}}},
  {"IRuntime::getErrorRecorder", {{8, 80601, 0}, {10, 100001, 0}, {9, 110000, 0}, {9, 10701, 0}}},
  {"IRuntime::getLogger", {{9, 80601, 0}, {11, 100001, 0}, {10, 110000, 0}, {10, 10701, 0}}},
  {"IRuntime::getMaxThreads", {{11, 80601, 0}, {13, 100001, 0}, {12, 110000, 0}, {12, 10701, 0}}},
  {"IRuntime::getNbDLACores", {{5, 80601, 0}, {7, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"IRuntime::getPImpl", {{16, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"IRuntime::getPluginRegistry", {{17, 80601, 0}, {18, 100001, 0}, {17, 110000, 0}, {17, 10701, 0}}},
  {"IRuntime::getTempfileControlFlags", {{15, 80601, 0}, {17, 100001, 0}, {16, 110000, 0}, {16, 10701, 0}}},
  {"IRuntime::getTemporaryDirectory", {{13, 80601, 0}, {15, 100001, 0}, {14, 110000, 0}, {14, 10701, 0}}},
  {"IRuntime::loadRuntime", {{19, 80601, 0}, {20, 100001, 0}, {19, 110000, 0}, {19, 10701, 0}}},
  {"IRuntime::setDLACore", {{3, 80601, 0}, {5, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"IRuntime::setEngineHostCodeAllowed", {{20, 80601, 0}, {21, 100001, 0}, {20, 110000, 0}, {20, 10701, 0}}},
  {"IRuntime::setErrorRecorder", {{7, 80601, 0}, {9, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"IRuntime::setGpuAllocator", {{6, 80601, 0}, {8, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"IRuntime::setMaxThreads", {{10, 80601, 0}, {12, 100001, 0}, {11, 110000, 0}, {11, 10701, 0}}},
  {"IRuntime::setPluginRegistryParent", {{18, 80601, 0}, {19, 100001, 0}, {18, 110000, 0}, {18, 10701, 0}}},
  {"IRuntime::setTempfileControlFlags", {{14, 80601, 0}, {16, 100001, 0}, {15, 110000, 0}, {15, 10701, 0}}},
  {"IRuntime::setTemporaryDirectory", {{12, 80601, 0}, {14, 100001, 0}, {13, 110000, 0}, {13, 10701, 0}}},
  {"ISerializationConfig::clearFlag", {{-1, 0, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"ISerializationConfig::destroy.complete", {{-1, 0, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"ISerializationConfig::destroy.deleting", {{-1, 0, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"ISerializationConfig::getFlag", {{-1, 0, 0}, {6, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"ISerializationConfig::getFlags", {{-1, 0, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"ISerializationConfig::setFlag", {{-1, 0, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"ISerializationConfig::setFlags", {{-1, 0, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"ITensor::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"ITensor::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"ITensor::dynamicRangeIsSet", {{15, 80601, 0}, {15, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ITensor::getAllowedFormats", {{20, 80601, 0}, {20, 100001, 0}, {14, 110000, 0}, {10, 10701, 0}}},
  {"ITensor::getBroadcastAcrossBatch", {{12, 80601, 0}, {12, 100001, 0}, {10, 110000, 0}, {-1, 0, 0}}},
  {"ITensor::getDimensionName", {{24, 80601, 0}, {24, 100001, 0}, {18, 110000, 0}, {14, 10701, 0}}},
  {"ITensor::getDimensions", {{5, 80601, 0}, {5, 100001, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"ITensor::getDynamicRangeMax", {{18, 80601, 0}, {18, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ITensor::getDynamicRangeMin", {{17, 80601, 0}, {17, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ITensor::getLocation", {{13, 80601, 0}, {13, 100001, 0}, {11, 110000, 0}, {-1, 0, 0}}},
  {"ITensor::getName", {{3, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"ITensor::getType", {{7, 80601, 0}, {7, 100001, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"ITensor::isExecutionTensor", {{22, 80601, 0}, {22, 100001, 0}, {16, 110000, 0}, {12, 10701, 0}}},
  {"ITensor::isNetworkInput", {{9, 80601, 0}, {9, 100001, 0}, {7, 110000, 0}, {7, 10701, 0}}},
  {"ITensor::isNetworkOutput", {{10, 80601, 0}, {10, 100001, 0}, {8, 110000, 0}, {8, 10701, 0}}},
  {"ITensor::isShapeTensor", {{21, 80601, 0}, {21, 100001, 0}, {15, 110000, 0}, {11, 10701, 0}}},
  {"ITensor::resetDynamicRange", {{16, 80601, 0}, {16, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ITensor::setAllowedFormats", {{19, 80601, 0}, {19, 100001, 0}, {13, 110000, 0}, {9, 10701, 0}}},
  {"ITensor::setBroadcastAcrossBatch", {{11, 80601, 0}, {11, 100001, 0}, {9, 110000, 0}, {-1, 0, 0}}},
  {"ITensor::setDimensionName", {{23, 80601, 0}, {23, 100001, 0}, {17, 110000, 0}, {13, 10701, 0}}},
  {"ITensor::setDimensions", {{4, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"ITensor::setDynamicRange", {{8, 80601, 0}, {8, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ITensor::setLocation", {{14, 80601, 0}, {14, 100001, 0}, {12, 110000, 0}, {-1, 0, 0}}},
  {"ITensor::setName", {{2, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"ITensor::setType", {{6, 80601, 0}, {6, 100001, 0}, {-1, 0, 0}, {-1, 0, 0}}},
  {"ITimingCache::combine", {{3, 80601, 0}, {3, 100001, 0}, {3, 110000, 0}, {3, 10701, 0}}},
  {"ITimingCache::destroy.complete", {{0, 80601, 0}, {0, 100001, 0}, {0, 110000, 0}, {0, 10701, 0}}},
  {"ITimingCache::destroy.deleting", {{1, 80601, 0}, {1, 100001, 0}, {1, 110000, 0}, {1, 10701, 0}}},
  {"ITimingCache::queryKeys", {{-1, 0, 0}, {5, 100800, 0}, {5, 110000, 0}, {5, 10701, 0}}},
  {"ITimingCache::query", {{-1, 0, 0}, {6, 100800, 0}, {6, 110000, 0}, {6, 10701, 0}}},
  {"ITimingCache::reset", {{4, 80601, 0}, {4, 100001, 0}, {4, 110000, 0}, {4, 10701, 0}}},
  {"ITimingCache::serialize", {{2, 80601, 0}, {2, 100001, 0}, {2, 110000, 0}, {2, 10701, 0}}},
  {"ITimingCache::update", {{-1, 0, 0}, {7, 100800, 0}, {7, 110000, 0}, {7, 10701, 0}}},
};

}  // namespace trtforge
