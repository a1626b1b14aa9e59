#!/usr/bin/env python3
"""Measures the tables of a version whose headers are not at hand, and compares them with the committed table.

    pip download --no-deps tensorrt-rtx-cu13-bindings==1.7.1.116    (or tensorrt-cu13-bindings==11.4.0.106; then unzip it)
    python3 native/abi/measure.py rtx1 <folder with tensorrt_rtx_bindings/ or tensorrt_bindings/>

Needs a Python the wheel is for, and g++; no TensorRT and no GPU: the libraries are empty ones made here. NVIDIA's Python bindings were compiled
against the real headers. Each bound object is given a table of functions that only write down which slot was called; then every property and
method is used once. A slot is measured in a process of its own, because some calls do not survive an empty answer.
"""
import ctypes
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

SLOTS = 140
POINTER = ctypes.c_void_p
FUNCTION = ctypes.CFUNCTYPE(POINTER, *[POINTER] * 6)
VALUE_OFFSET = 16  # pybind11: the C++ pointer follows PyObject's head

# What Python calls a function that the C++ name does not give away; "=" is the setter of a property, None a function of the public object's own table.
NAMES = {
    "Builder": ("IBuilder", {"create_network": "createNetworkV2", "num_DLA_cores": "getNbDLACores", "max_DLA_batch_size": "getMaxDLABatchSize"}),
    "INetworkDefinition": (
        "INetworkDefinition",
        {"builder": None, "num_inputs": "getNbInputs", "num_outputs": "getNbOutputs", "num_layers": "getNbLayers"},
    ),
    "IBuilderConfig": (
        "IBuilderConfig",
        {
            "num_optimization_profiles": "getNbOptimizationProfiles",
            "num_compute_capabilities": "getNbComputeCapabilities",
            "num_compute_capabilities=": "setNbComputeCapabilities",
            "max_num_tactics": "getMaxNbTactics",
            "max_num_tactics=": "setMaxNbTactics",
            "plugins_to_serialize": "getNbPluginsToSerialize",
            "DLA_core": "getDLACore",
            "DLA_core=": "setDLACore",
        },
    ),
    "IOptimizationProfile": (
        "IOptimizationProfile",
        {"set_shape": "setDimensions", "get_shape": "getDimensions", "set_shape_input": ["setShapeValuesV2", "setShapeValues"], "get_shape_input": "getNbShapeValues"},
    ),
    "ITensor": ("ITensor", {"dtype": "getType", "shape": "getDimensions", "shape=": "setDimensions"}),
    "IHostMemory": ("IHostMemory", {"dtype": "type", "nbytes": "size"}),
    "ITimingCache": ("ITimingCache", {}),
    "Runtime": ("IRuntime", {"num_DLA_cores": "getNbDLACores", "DLA_core": "getDLACore", "DLA_core=": "setDLACore"}),
    "ICudaEngine": (
        "ICudaEngine",
        {
            "num_io_tensors": "getNbIOTensors",
            "num_layers": "getNbLayers",
            "num_optimization_profiles": "getNbOptimizationProfiles",
            "num_aux_streams": "getNbAuxStreams",
            "get_tensor_name": "getIOTensorName",
            "get_tensor_dtype": "getTensorDataType",
            "get_tensor_mode": "getTensorIOMode",
            "get_tensor_profile_shape": "getProfileShape",
            "is_shape_inference_io": "isShapeInferenceIO",
            "refittable": "isRefittable",
        },
    ),
    "IExecutionContext": (
        "IExecutionContext",
        {"execute_async_v3": "enqueueV3", "active_optimization_profile": "getOptimizationProfile", "set_device_memory": "setDeviceMemoryV2", "all_binding_shapes_specified": "allInputDimensionsSpecified"},
    ),
    "EngineInspector": ("IEngineInspector", {}),
    "IRuntimeConfig": ("IRuntimeConfig", {}),
    "OnnxParser": ("IParser", {"num_errors": "getNbErrors", "num_subgraphs": "getNbSubgraphs", "get_used_vc_plugin_libraries": "getUsedVCPluginLibraries"}),
    "ParserError": ("IParserError", {"local_function_stack": "localFunctionStackSize"}),
}
# Objects without a second object behind them: their own table is the one that counts.
DIRECT = ("OnnxParser", "ParserError")


# Names that TensorRT's libraries export and its bindings ask for.
ENTRY_POINTS = re.compile(r"\bU (\w*(?:Infer|Onnx|nvcaffeparser|nvuffparser|PluginRegistry|InferPlugins|getLogger|setInternal)\w*)$", re.M)


def load(folder):
    """Imports the bindings over libraries that only have the names they ask for."""
    warnings.simplefilter("ignore")
    package = next(name for name in ("tensorrt_rtx_bindings", "tensorrt_bindings") if (folder / name).is_dir())
    extension = next((folder / package).glob("tensorrt*.so"))
    needed = re.findall(rb"lib(?:nv|tensorrt)[a-z_]+\.so\.\d+", extension.read_bytes())
    names = ENTRY_POINTS.findall(subprocess.run(["nm", "-D", "--undefined-only", extension], check=True, capture_output=True, text=True).stdout)
    with tempfile.TemporaryDirectory() as work:
        source = pathlib.Path(work, "empty.cpp")
        source.write_text("".join(f'extern "C" void* {name}() {{ return nullptr; }}\n' for name in names))
        for name in sorted({library.decode() for library in needed}):
            library = pathlib.Path(work, name)
            subprocess.run([os.environ.get("CXX", "g++"), "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", library, source], check=True)
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    sys.path.insert(0, str(folder))
    return importlib.import_module(package)


class Recorder:
    """Objects whose virtual functions note their slot. One that returns a large value by memory is seen by its first argument and gives zeros."""

    def __init__(self, bindings):
        self.bindings = bindings
        self.slots = []
        self.callbacks = [self.callback(slot) for slot in range(SLOTS)]
        self.table = (POINTER * SLOTS)(*[ctypes.cast(callback, POINTER).value for callback in self.callbacks])
        self.worker = (POINTER * 1)(ctypes.addressof(self.table))
        self.facade = (POINTER * 2)(ctypes.addressof(self.table), ctypes.addressof(self.worker))
        self.objects = []

    def callback(self, slot):
        def called(first, *_):
            self.slots.append(slot)
            if first in (ctypes.addressof(self.worker), ctypes.addressof(self.facade)):
                return 0
            ctypes.memset(first, 0, 72)
            return first

        return FUNCTION(called)

    def object(self, class_name):
        instance = getattr(self.bindings, class_name)
        instance = instance.__new__(instance)
        target = self.worker if class_name in DIRECT else self.facade
        POINTER.from_address(id(instance) + VALUE_OFFSET).value = ctypes.addressof(target)
        self.objects.append(instance)
        return instance

    def arguments(self, method):
        enums = self.bindings
        if "memory_pool" in method:
            return [(enums.MemoryPoolType.WORKSPACE, 1), (enums.MemoryPoolType.WORKSPACE,)]
        if method.endswith("_flag"):
            return [(enums.BuilderFlag.REFIT,), (list(enums.OnnxParserFlag.__members__.values())[0],)]
        if "preview_feature" in method:
            feature = list(enums.PreviewFeature.__members__.values())[0]
            return [(feature, True), (feature,)]
        if "timing_cache" in method:
            return [(b"ab",), (self.object("ITimingCache"), False), ()]
        if method == "get_layer_information":
            return [(0, enums.LayerInformationFormat.ONELINE)]
        if method == "get_engine_information":
            return [(enums.LayerInformationFormat.ONELINE,)]
        return {
            "add_optimization_profile": [(self.object("IOptimizationProfile"),)],
            "build_serialized_network": [(self.object("INetworkDefinition"), self.object("IBuilderConfig"))],
            "set_shape": [("x", (1,), (1,), (1,))],
            "set_shape_input": [("x", [1], [1], [1])],
            "set_compute_capability": [(enums.ComputeCapability.CURRENT, 0)] if hasattr(enums, "ComputeCapability") else [],
        }.get(method, [])

    def measure(self, class_name, attribute, setter):
        """The slot the first working use of an attribute calls, or None."""
        member = getattr(getattr(self.bindings, class_name), attribute)
        instance = self.object(class_name)
        if isinstance(member, property):
            uses = [lambda value=value: setattr(instance, attribute, value) for value in SAMPLES] if setter else [lambda: getattr(instance, attribute)]
        else:
            uses = [lambda given=given: getattr(instance, attribute)(*given) for given in self.arguments(attribute) + ARGUMENTS]
        for use in uses:
            self.slots.clear()
            try:
                use()
            except Exception:  # what the use returns does not matter
                pass
            if self.slots:
                return self.slots[0]
        return None


SAMPLES = (0, 1, True, "x", 1.0, (1, 2))
ARGUMENTS = [(), (0,), ("x",), ("x", 0), (0, 0), (0, True), ("x", "y"), ("x", (1,)), (b"ab",), ("x", True)]


def in_child(work):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer = work()
        os.write(writer, b"" if answer is None else str(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return int(answer) if answer else None


def candidates(class_name, attribute, setter, aliases):
    key = attribute + ("=" if setter else "")
    camel = "".join(part[:1].upper() + part[1:] for part in attribute.split("_"))
    plain = camel[:1].lower() + camel[1:]
    if isinstance(aliases.get(key), list):
        return aliases[key]
    return [aliases[key]] if key in aliases else ["set" + camel] if setter else ["get" + camel, plain]


def version_of(text):
    return [int(part) for part in text.split(".")[:3]]


def compare_enums(bindings, committed, there):
    """Numbers that the bindings and the table both name; lines for those that differ, are missing, or are in the table alone."""
    lines = []
    for name, numbers in committed.items():
        bound = getattr(bindings, name, None)
        members = {f"k{key}": int(value) for key, value in getattr(bound, "__members__", {}).items()}
        if not members:
            continue
        known = {key: number["value"] for key, number in numbers.items() if there(number)}
        for key in sorted(members.keys() | known.keys()):
            table = known.get(key)
            if table != members.get(key):
                lines.append(f"{name}.{key} is {members.get(key)}, committed as {table}")
    return lines


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    _, generation, folder = sys.argv
    recorder = Recorder(load(pathlib.Path(folder)))
    committed_file = json.loads((pathlib.Path(__file__).parent / f"{generation}.json").read_text())
    table = committed_file["classes"]
    version = recorder.bindings.__version__

    def there(entry):
        return version_of(entry.get("since", committed_file["from"])) <= version_of(version)

    agreed, wrong, unknown = 0, 0, []
    for class_name, (table_name, aliases) in NAMES.items():
        bound = getattr(recorder.bindings, class_name, None)
        if bound is None or table_name not in table:
            continue
        slots = {}
        for entry in filter(there, table[table_name]["slots"]):
            slots.setdefault(entry["name"], []).append(entry["index"])
        for attribute in sorted(name for name in dir(bound) if not name.startswith("_")):
            if aliases.get(attribute, "") is None:
                continue
            for setter in (False, True) if isinstance(getattr(bound, attribute), property) else (False,):
                slot = in_child(lambda: recorder.measure(class_name, attribute, setter))
                if slot is None:
                    continue
                names = candidates(class_name, attribute, setter, aliases)
                committed = next((slots[name] for name in names if name in slots), None)
                if committed is None:
                    unknown.append(f"{table_name}: {attribute}{'=' if setter else ''} is slot {slot}")
                elif slot in committed:
                    agreed += 1
                else:
                    wrong += 1
                    print(f"{table_name}: {attribute}{'=' if setter else ''} is slot {slot}, committed as {committed[0]}")
    for line in compare_enums(recorder.bindings, committed_file["enums"], there):
        wrong += 1
        print(line)
    for line in unknown:
        print(f"not in the table: {line}")
    print(f"{version}: {agreed} slots as committed, {wrong} otherwise, {len(unknown)} of functions the table does not name")
    sys.stdout.flush()
    os._exit(1 if wrong else 0)


main()
