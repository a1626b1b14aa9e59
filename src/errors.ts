/**
 * Every error trtforge can end with, in one place. A code is stable: scripts may match on it.
 * `docs/errors.md` is generated from this table (`npm run docs`) and a test compares the two.
 *
 * Exit codes: 0 pass, 1 a gate or comparison failed, 2 bad usage or bad input, 3 this machine cannot,
 * 4 inconclusive, 5 internal error.
 */
export const ExitCode = {
  pass: 0,
  failed: 1,
  badInput: 2,
  machineCannot: 3,
  inconclusive: 4,
  internal: 5,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** The exit codes of a command that judges. */
export const outcomeExitCodes = {
  pass: ExitCode.pass,
  fail: ExitCode.failed,
  inconclusive: ExitCode.inconclusive,
  /** Nothing was compared: not a failure, and no verification. */
  built: ExitCode.pass,
} as const;

interface CatalogueEntry {
  readonly exitCode: ExitCode;
  /** The meaning of the code, for the documentation; the message names the file, tensor or node. */
  readonly meaning: string;
  /** The remedy where the code that throws has no better one. */
  readonly remedy: string;
}

export const catalogue = {
  TF_USAGE: {
    exitCode: ExitCode.badInput,
    meaning:
      'A command line or a call names an unknown option or command, lacks an option that is needed, or has a value that an option cannot take.',
    remedy: 'Correct what is named.',
  },
  TF_CONFIG_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'The configuration file cannot be read, or has a key or value that no option takes.',
    remedy: 'Correct the key; --print-config shows the options as resolved.',
  },
  TF_FILE_NOT_FOUND: {
    exitCode: ExitCode.badInput,
    meaning: 'A file that the command line names does not exist.',
    remedy: 'Check the path.',
  },
  TF_FILE_UNREADABLE: {
    exitCode: ExitCode.badInput,
    meaning: 'A file exists but cannot be read: permission, a folder, an I/O error.',
    remedy: 'Check the permissions of the file and that it is a regular file.',
  },
  TF_WRITE_FAILED: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'A file could not be written: no space, no permission, a read-only file system. Nothing half-written is left behind.',
    remedy: 'Free space or choose another folder.',
  },
  TF_OUTPUT_IS_INPUT: {
    exitCode: ExitCode.badInput,
    meaning: 'A result would replace a file that the same command reads, under any name or link.',
    remedy: 'Choose another output path.',
  },
  TF_OUTPUT_OF_OTHER_KIND: {
    exitCode: ExitCode.badInput,
    meaning: 'A result would replace a file of another kind, or one that was edited.',
    remedy: 'Choose another output path, or remove the file; --force replaces it.',
  },
  TF_SIZE_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'A size is not a number with an optional unit B, K, M, G, T (or KiB, MiB, GiB, TiB).',
    remedy: 'Write sizes as 4G, 4GiB, 4096M or 4294967296B.',
  },
  TF_SHAPE_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'A shape is not written as name:1x3x224x224 or name:[1,3,224,224] or name:scalar.',
    remedy: 'Write shapes as x:1x3x224x224, several separated by commas.',
  },
  TF_ARCHIVE_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'An archive (a wheel or npz, which are ZIP, or a tar of engines) is cut short, damaged, encrypted, or has members that may not be unpacked.',
    remedy: 'Get the file again and compare its size with the original.',
  },
  TF_ONNX_NOT_A_MODEL: {
    exitCode: ExitCode.badInput,
    meaning:
      'A file passed as a model is something else: empty, text, a Git-LFS pointer, a TensorRT plan, an archive, or bytes without an ONNX graph.',
    remedy: 'Pass the .onnx file itself.',
  },
  TF_ONNX_TRUNCATED: {
    exitCode: ExitCode.badInput,
    meaning: 'An ONNX file ends before what it announces; the message has the byte.',
    remedy: 'Copy or download the file again and compare its size with the original.',
  },
  TF_ONNX_CORRUPT: {
    exitCode: ExitCode.badInput,
    meaning:
      'An ONNX file breaks the rules of the protobuf wire format or nests deeper than protobuf allows; the message has the byte.',
    remedy: 'Export the model again, or check it with the tool that wrote it.',
  },
  TF_ONNX_GRAPH_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A node of a model takes a value of a type that its operator does not take, a declared type contradicts the value, or nodes wait for each other in a cycle; the message names the node and the types.',
    remedy:
      'Export the model again. Where a converter wrote it, convert the FP32 original with `trtforge convert` instead.',
  },
  TF_NOT_QUANTIZABLE: {
    exitCode: ExitCode.badInput,
    meaning:
      'A model cannot be quantized as it is: it holds quantized operators already, no node of it can have the type, or its opset does not know the type and cannot be raised without changing what it computes.',
    remedy: 'Quantize the FP32 original, exported with a newer opset, or pass another precision.',
  },
  TF_NOT_CONVERTIBLE: {
    exitCode: ExitCode.badInput,
    meaning:
      'No node of a model would get the precision of a conversion: it has no FP32 node, rules keep every one, or its opset does not know the type and cannot be raised. Nothing is written, since an engine would bear the name of a type that none of its layers has.',
    remedy: 'Pass another precision, or build the model as it is: --precision as-is.',
  },
  TF_ONNX_TOO_LARGE: {
    exitCode: ExitCode.badInput,
    meaning:
      'What an ONNX file has besides weights is beyond the bounds that keep memory small: 128 MiB, 500,000 nodes and tensors, 2,000,000 messages, 8,000,000 values, 64 dimensions of a tensor.',
    remedy: 'Split the model, or store large constants as tensors instead of attributes.',
  },
  TF_ONNX_TENSOR_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A tensor of a model contradicts itself: unknown element type, impossible dimensions, or not as many bytes as its shape needs.',
    remedy: 'Export the model again.',
  },
  TF_ONNX_EXTERNAL_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'The external_data entry of a tensor has no location, or an offset or length that is not a number.',
    remedy: 'Export the model again.',
  },
  TF_ONNX_EXTERNAL_MISSING: {
    exitCode: ExitCode.badInput,
    meaning: 'An external-data file that a model refers to does not exist or cannot be read.',
    remedy: 'Put the weight files where the model expects them: beside it, under the names in it.',
  },
  TF_ONNX_EXTERNAL_SHORT: {
    exitCode: ExitCode.badInput,
    meaning: 'An external-data file ends before the bytes that a tensor of the model needs.',
    remedy: 'Copy or download the weight file again; it is incomplete or belongs to another model.',
  },
  TF_ONNX_EXTERNAL_OUTSIDE: {
    exitCode: ExitCode.badInput,
    meaning:
      'A model refers to an external-data file outside its own folder (absolute path, .., or a link that leaves it). It is not opened: such a path could read any file of the machine.',
    remedy:
      "Move the weight files into the model's folder and export or re-save the model with relative paths.",
  },
  TF_PLAN_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'A file passed as an engine is not a TensorRT or TensorRT-RTX plan, or is cut short.',
    remedy: 'Pass the .engine, .plan or .trt file that a builder wrote.',
  },
  TF_LICENSE_NOT_ACCEPTED: {
    exitCode: ExitCode.badInput,
    meaning: 'Software of another owner is needed, and its licence has not been accepted.',
    remedy: 'Read the licence named, then run it again with --accept-license.',
  },
  TF_PLATFORM_UNSUPPORTED: {
    exitCode: ExitCode.machineCannot,
    meaning: 'The request cannot be done on this operating system or processor.',
    remedy: 'Use a Linux machine (or container) with an x86-64 or Arm (aarch64) processor for this step.',
  },
  TF_DOWNLOAD_FAILED: {
    exitCode: ExitCode.machineCannot,
    meaning: 'A toolchain could not be downloaded: no python3 or pip, no network, no such version.',
    remedy: 'Download the wheel on another machine, and pass it: --wheel FILE.',
  },
  TF_TOOLCHAIN_MISMATCH: {
    exitCode: ExitCode.badInput,
    meaning:
      'A wheel does not match its name: its digest or that of a member is wrong, or it is another package.',
    remedy: 'Download the wheel again from the index of its publisher.',
  },
  TF_TOOLCHAIN_NOT_FOUND: {
    exitCode: ExitCode.machineCannot,
    meaning: 'No TensorRT of the requested product and version is installed where trtforge looks.',
    remedy:
      'Run `trtforge toolchain list` to see what is found; `trtforge toolchain install tensorrt-rtx` installs one that builds without a GPU.',
  },
  TF_BUNDLED: {
    exitCode: ExitCode.machineCannot,
    meaning: 'A program was bundled into one file together with trtforge, which starts files of its own.',
    remedy:
      'Keep trtforge out of the bundle (esbuild --external:trtforge; in Rollup, Vite and webpack: external), and install it beside the program.',
  },
  TF_NATIVE_UNSUPPORTED: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'The C++ addon does not exist for this operating system; building and running engines needs Linux.',
    remedy: 'Run this command on Linux (x86-64 or Arm); inspect, convert and verify work everywhere.',
  },
  TF_NATIVE_NOT_BUILT: {
    exitCode: ExitCode.machineCannot,
    meaning: 'The C++ addon is not installed, or its file does not load into this Node.',
    remedy:
      'Run npm install @trtforge/linux-x64 (on Arm: @trtforge/linux-arm64) beside trtforge, or node scripts/build-native.mjs in the folder of trtforge (it needs g++).',
  },
  TF_COMPILER_MISSING: {
    exitCode: ExitCode.machineCannot,
    meaning: 'The C++ addon cannot be compiled because no C++ compiler was found.',
    remedy: 'Install g++ (Debian and Ubuntu: apt install g++), or name another compiler in CXX.',
  },
  TF_COMPILE_FAILED: {
    exitCode: ExitCode.internal,
    meaning: 'The C++ compiler rejected the sources of the addon.',
    remedy: "Use g++ 9 or newer; the compiler's own lines are printed above.",
  },
  TF_LIBRARY_LOAD_FAILED: {
    exitCode: ExitCode.machineCannot,
    meaning: "A library of a TensorRT installation cannot be loaded; the message has the loader's text.",
    remedy: 'Check that the installation is whole: `trtforge doctor` lists what it finds.',
  },
  TF_LIBRARY_UNSUPPORTED: {
    exitCode: ExitCode.machineCannot,
    meaning: 'The library is of a version whose virtual functions trtforge has no table for.',
    remedy:
      'Use a version that docs/versions.md lists; docs/adding-a-tensorrt-version.md describes how to add one.',
  },
  TF_LIBRARY_TOO_OLD: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'The request needs a function that this version of the library does not have yet; the message names the first version that has it.',
    remedy: 'Use the version named, or leave out the option that needs it.',
  },
  TF_OPTION_UNSUPPORTED: {
    exitCode: ExitCode.badInput,
    meaning:
      'A build option does not exist in this version of TensorRT; the message names the versions that have it.',
    remedy: 'Leave the option out, or use a version that has it.',
  },
  TF_TARGET_UNSUPPORTED: {
    exitCode: ExitCode.badInput,
    meaning:
      'This TensorRT cannot build for a requested compute capability, or lacks a number type or an operator of the model.',
    remedy:
      'tensorrt-rtx builds for sm_75, sm_80, sm_86, sm_89, sm_120, sm_121; TensorRT builds for the GPU it runs on.',
  },
  TF_PROFILE_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'An optimization profile does not fit the model: unknown input, wrong rank, min > opt or opt > max, a missing dynamic input, a size that the model does not run with.',
    remedy:
      'Pass min, opt and max for every input with open dimensions (x:1x3/8x3/32x3), and values for every shape tensor (k=1/1/1); `trtforge inspect` lists the inputs.',
  },
  TF_TARGET_UNAVAILABLE: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'TensorRT builds for the GPU and the platform it runs on, and this machine has none or another one.',
    remedy:
      'Build on a machine that has it. To find its engine in stores, name version and GPU in the target: tensorrt@VERSION:sm_89.',
  },
  TF_PROFILE_MISSING: {
    exitCode: ExitCode.badInput,
    meaning:
      'Inputs of the model have open dimensions, and the request has no minimum, optimum and maximum for them.',
    remedy: 'Pass a range for every open dimension: --profile NAME:MIN/OPT/MAX.',
  },
  TF_BUNDLE_META_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A file passed as the model_meta.json of a bundle is not one: not JSON, or a field of the wrong kind. Missing fields and nulls are legal.',
    remedy: 'Pass the file that the exporter wrote beside the models, or correct the field named.',
  },
  TF_BUNDLE_COMPONENT_MISSING: {
    exitCode: ExitCode.badInput,
    meaning:
      'A component of a bundle has no ONNX file in the folder of the models; the message names each one.',
    remedy:
      'Pass the meta file that has NAME.onnx beside it; build and forge also take --onnx-dir, and a --profiles file that lists other components.',
  },
  TF_BUNDLE_MISMATCH: {
    exitCode: ExitCode.badInput,
    meaning:
      'The models of a bundle contradict its meta file or each other: mel bins, vocabulary, layouts, ranks, widths. The message lists every mismatch; nothing was built.',
    remedy: 'Export the bundle again as a whole: its files come from different models or exports.',
  },
  TF_BUNDLE_PROFILES_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'A file passed with --profiles is not YAML of the form that docs/bundles.md describes.',
    remedy: 'Write symbols and inputs as NAME: MIN/OPT/MAX; docs/bundles.md has an example.',
  },
  TF_ENGINE_TOO_SMALL: {
    exitCode: ExitCode.badInput,
    meaning:
      'A builder reported success and left an engine much smaller than the weights in it. It is not kept.',
    remedy:
      'Read the build log named: the builder may have been cut short, or most of the model does not lead to an output (`trtforge inspect` shows it).',
  },
  TF_PASSPORT_MISSING: {
    exitCode: ExitCode.badInput,
    meaning: 'An engine has no passport beside it, so its model, recipe and target are unknown.',
    remedy: 'Keep FILE.passport.json beside FILE, or build the engine again.',
  },
  TF_PASSPORT_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'A passport is not the JSON that trtforge writes, or its digest does not match its identity.',
    remedy: 'Build the engine again; a passport is never edited by hand.',
  },
  TF_ENGINE_SIZE_MISMATCH: {
    exitCode: ExitCode.badInput,
    meaning:
      'An engine has another size than its passport states: it was cut short, replaced or has bytes in front.',
    remedy: 'Copy the engine and its passport again, together, or build it again.',
  },
  TF_ENGINE_DIGEST_MISMATCH: {
    exitCode: ExitCode.badInput,
    meaning: 'An engine has the size in its passport but other bytes (SHA-256).',
    remedy: 'Copy the engine and its passport again, together, or build it again.',
  },
  TF_ENGINE_HEADER_MISMATCH: {
    exitCode: ExitCode.badInput,
    meaning: 'The header of an engine names another product or version than its passport.',
    remedy: 'The passport belongs to another engine: build the engine again.',
  },
  TF_FLEET_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'An engines file has a key or value that it cannot have, or a plan in a store was changed, was cut short, is not there, or asks without a signature for code or for paths outside of its folder.',
    remedy: 'Correct the line named (docs/fleet.md), or plan again: trtforge fleet plan engines.yaml',
  },
  TF_FLEET_CHANGED: {
    exitCode: ExitCode.badInput,
    meaning: 'The model, its samples or its options are not those that the plan of a fleet was made of.',
    remedy: 'Plan again: trtforge fleet plan engines.yaml',
  },
  TF_FLEET_REFUSED: {
    exitCode: ExitCode.failed,
    meaning: 'An engine was built for a fleet, and its known answer or its policy failed; it is not kept.',
    remedy: 'The record in the store has the reasons: trtforge fleet status engines.yaml',
  },
  TF_FLEET_UNDECIDED: {
    exitCode: ExitCode.inconclusive,
    meaning:
      'An engine was built for a fleet, and its policy could not be decided; it is not kept. Or the `heal` of an entry did not come to a verdict.',
    remedy: 'Build it where the checks of its policy can run, or set `missing: skip` in the policy.',
  },
  TF_STORE_UNWRITABLE: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'The engine store cannot keep an engine, or remove one: it is read-only or belongs to another user; or signatures are required, and no key is here that signs what is made, also with -o.',
    remedy:
      'Pass a path for the engine with -o FILE, or another store with --cache-dir or TENSORRT_CACHE_DIR.',
  },
  TF_REMOTE_ADDRESS_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: "The remote store's address, or what the environment states of it, is not valid.",
    remedy: 'Write s3://bucket/prefix or http://host:9000/bucket/prefix; keys belong in the environment.',
  },
  TF_REMOTE_UNREACHABLE: {
    exitCode: ExitCode.machineCannot,
    meaning: 'The remote store does not answer: DNS, rejected or cut connections, TLS, time-outs, overload.',
    remedy: 'Check the address and the network; builds go on without the remote store.',
  },
  TF_REMOTE_DENIED: {
    exitCode: ExitCode.machineCannot,
    meaning: 'The remote store denies the request: keys, permissions, region or the clock of this machine.',
    remedy: "Check the credentials and the bucket's policy.",
  },
  TF_REMOTE_BUCKET_MISSING: {
    exitCode: ExitCode.machineCannot,
    meaning: 'The bucket of the remote store does not exist.',
    remedy: 'Create the bucket, or correct its name.',
  },
  TF_REMOTE_NOT_FOUND: {
    exitCode: ExitCode.badInput,
    meaning: 'The remote store has no such object.',
    remedy: 'List its engines: trtforge cache ls --remote s3://BUCKET/PREFIX',
  },
  TF_REMOTE_CONFLICT: {
    exitCode: ExitCode.machineCannot,
    meaning: 'Another writer changed an object of the remote store at the same moment.',
    remedy: 'Run it again.',
  },
  TF_REMOTE_FAILED: {
    exitCode: ExitCode.machineCannot,
    meaning: 'A request to the remote store failed for a reason of its own, which the message quotes.',
    remedy: "Look at the server's answer in the details.",
  },
  TF_REMOTE_DAMAGED: {
    exitCode: ExitCode.badInput,
    meaning: 'An object of the remote store does not match its digest or passport.',
    remedy: 'Remove the object and upload the engine again; nothing of it was kept.',
  },
  TF_TIMING_CACHE_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'A timing cache of a store is not what its description states, or the description is none.',
    remedy: 'Nothing needs to be done: it is not used, and the next build replaces it.',
  },
  TF_KEY_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'A file passed as a signing or trusted key has no Ed25519 key of that kind.',
    remedy:
      'Make a pair with `trtforge cache keygen`; engines are signed with the private half and checked with the public one.',
  },
  TF_SIGNATURE_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A signature is required, and the engine, or a plan or record of a fleet, has none that a trusted key made for its content.',
    remedy:
      'Trust the key that signed it (--trust-key, TRTFORGE_TRUSTED_KEYS), have it signed (`trtforge cache sign`), or build or plan it with TRTFORGE_SIGNING_KEY set.',
  },
  TF_MODEL_REJECTED: {
    exitCode: ExitCode.badInput,
    meaning: "TensorRT's ONNX parser rejected the model; the message lists every rejected node.",
    remedy:
      'Change or export the nodes named another way, or use a newer TensorRT; `trtforge explain` knows common causes.',
  },
  TF_BUILDER_UNAVAILABLE: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'The library loads but cannot create a builder or runtime on this machine; the message has its lines.',
    remedy: 'TensorRT needs an NVIDIA GPU and driver to build; tensorrt-rtx builds without one.',
  },
  TF_BUILD_FAILED: {
    exitCode: ExitCode.badInput,
    meaning: 'The library parsed the model but could not build a plan; the message has its last error lines.',
    remedy: "Read the library's lines; `trtforge explain` knows common causes.",
  },
  TF_ENGINE_NOT_REFITTABLE: {
    exitCode: ExitCode.badInput,
    meaning:
      'An engine takes no other weights: it was built without --refit, its weights are quantized, or nothing states its graph.',
    remedy: 'Build it from its model with --refit, and refit that engine.',
  },
  TF_REFIT_MODEL_MISMATCH: {
    exitCode: ExitCode.badInput,
    meaning:
      'The model to refit an engine from has another graph than the one that it was built from, or other values where the engine keeps its own.',
    remedy: 'Build an engine from the model: `trtforge build MODEL --refit`.',
  },
  TF_REFIT_FAILED: {
    exitCode: ExitCode.badInput,
    meaning:
      'The library did not take the weights of a model, or the engine computes something else with them.',
    remedy: 'Build an engine from the model: `trtforge build MODEL --refit`.',
  },
  TF_TRTEXEC_NOT_FOUND: {
    exitCode: ExitCode.machineCannot,
    meaning: 'The request needs trtexec, and the toolchain has none, or the file may not be run.',
    remedy:
      "Put trtexec beside the toolchain (bin/trtexec) or on PATH, or name it in TRTEXEC; it comes with TensorRT's tar, deb and container, not with its wheels. --builder native and --with trtforge need none.",
  },
  TF_TRTEXEC_VERSION: {
    exitCode: ExitCode.machineCannot,
    meaning: 'trtexec has another version than the toolchain it is used with, by its first line.',
    remedy: 'Use the trtexec that came with the toolchain: `trtforge toolchain list` shows which is which.',
  },
  TF_TRTEXEC_MISREAD: {
    exitCode: ExitCode.internal,
    meaning:
      'trtexec echoes other options than were passed, so it built or measured something else; its result is not used.',
    remedy: 'Please report it with the log; --builder native and --with trtforge do without trtexec.',
  },
  TF_TRTEXEC_FAILED: {
    exitCode: ExitCode.machineCannot,
    meaning: 'trtexec ended without measuring; the message has its last lines.',
    remedy: 'Read its lines; `trtforge explain LOG` knows common causes.',
  },
  TF_TRTEXEC_EXPORT_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A file passed as an export of trtexec (times, profile, output) is not one: cut short, or something else.',
    remedy: 'Write it again with `trtexec --exportTimes`, `--exportProfile` or `--exportOutput`.',
  },
  TF_PLAN_LOAD_FAILED: {
    exitCode: ExitCode.machineCannot,
    meaning: "The library's runtime rejected a plan; the message has its last error lines.",
    remedy: 'Load the plan with the version and on the GPU architecture it was built for, or build it again.',
  },
  TF_LAYERS_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A text passed as the layer information of an engine is not valid: not JSON, or without the list of layers that IEngineInspector writes.',
    remedy:
      'Pass what `trtexec --exportLayerInfo=FILE` wrote, from an engine built with `--profilingVerbosity=detailed`.',
  },
  TF_LAYERS_MISMATCH: {
    exitCode: ExitCode.badInput,
    meaning:
      'A file of layer information belongs to another engine: plan, inputs, outputs or profiles differ.',
    remedy:
      'Export the layers of this engine where it runs: `trtforge engine layers ENGINE --json`, or trtexec --exportLayerInfo=FILE.',
  },
  TF_LIBRARY_INVALID: {
    exitCode: ExitCode.machineCannot,
    meaning: 'A file with the name of a shared library is not one, is damaged, or is for another processor.',
    remedy: 'Install the package that the library came from again.',
  },
  TF_REPORT_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'A file passed as the result of a run is not one: not JSON, cut short, or of another schema.',
    remedy: 'Pass the run root that forge printed, or the report.json in it.',
  },
  TF_GATE_POLICY_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      "A gate's policy is not YAML, has a key or value that policies do not have, or contradicts itself; the message names the line.",
    remedy: 'Correct the line named; docs/gate.md lists the keys.',
  },
  TF_GATE_RESULT_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'A file passed to a gate as a result is empty, cut short or not a JSON object.',
    remedy: "Pass what a command wrote with --json; look at that command's exit code and stderr.",
  },
  TF_GATE_BASELINE_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'A file passed to a gate as its baseline is not one, or is damaged.',
    remedy: 'Write it again with `trtforge gate POLICY RESULT… --baseline FILE --update-baseline`.',
  },
  TF_EVAL_DATA: {
    exitCode: ExitCode.badInput,
    meaning:
      'Data that is to be scored is damaged or contradicts itself: not JSON, records without a field or with an impossible value, ids used twice, detections of images that the truth lacks. All of it is counted, with the first places.',
    remedy: 'Correct the records named, or write the file again with the tool that made it.',
  },
  TF_EVAL_MIXED: {
    exitCode: ExitCode.badInput,
    meaning:
      'A run root has results of other data or settings than the ones requested; beside one another they would look comparable. Nothing was run.',
    remedy: 'Pass another folder with -o, or the data and options that the folder was made with.',
  },
  TF_EVAL_HEAD: {
    exitCode: ExitCode.badInput,
    meaning:
      'The outputs of a model are not those of a detector, classifier or embedding that trtforge knows with that number of labels, are not finite, change from image to image, have boxes of no known form, or have been through a sigmoid twice.',
    remedy: 'Check that --labels belongs to this model; the message has the shapes of the outputs.',
  },
  TF_AUDIO_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A file cannot be used as audio: it is not WAV or FLAC, of an unknown sample format, damaged, cut short, silent by antiphase, or beyond a bound of SECURITY.md.',
    remedy: 'Convert it: ffmpeg -i FILE -ac 1 -ar 16000 -c:a pcm_s16le FILE.wav.',
  },
  TF_IMAGE_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A file cannot be used as an image: damaged, cut short, CMYK, beyond a bound of SECURITY.md, or not JPEG, PNG or WebP.',
    remedy: 'Replace or convert the file, or take it out of the list.',
  },
  TF_DECODER_MISSING: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'The optional package that reads this kind of file is not installed: sharp for images, @audio/decode-flac for FLAC.',
    remedy: 'Install it: npm install sharp @audio/decode-flac.',
  },
  TF_ONNXRUNTIME_MISSING: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'ONNX Runtime (the optional package onnxruntime-node, or a library that ORT_HOME or --onnxruntime names), or a provider that is requested, is not installed or cannot be loaded.',
    remedy:
      "Run npm install --ignore-scripts in your project's folder; for a global trtforge: npm install -g --ignore-scripts onnxruntime-node@1.30.0.",
  },
  TF_PROVIDER_FALLBACK: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'A provider of ONNX Runtime did not take every node of a model; the message names them. Nodes that run elsewhere change what is measured and compared.',
    remedy:
      'Pass --allow-fallback to run them elsewhere, which results then record; or use another provider.',
  },
  TF_ONNXRUNTIME_FAILED: {
    exitCode: ExitCode.badInput,
    meaning: 'ONNX Runtime rejected a model or failed while running it; the message has its text.',
    remedy: 'Run `trtforge inspect` on the model: its findings name what is wrong with the file.',
  },
  TF_GPU_UNAVAILABLE: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'Building with TensorRT, running an engine, or a model on CUDA, needs an NVIDIA GPU, and the driver shows none, or not the requested one, or ONNX Runtime left it unused; the message has the reason.',
    remedy: 'Run `trtforge doctor` to see what the driver shows; CUDA_VISIBLE_DEVICES may hide a GPU.',
  },
  TF_GPU_MEMORY: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'The GPU has no room for an engine, the activations of a context or the buffers of a call, or to build: the message has what is needed and what is free, where both are known.',
    remedy:
      'End other processes on this GPU, use a smaller batch or fewer contexts, or build the engine with weight streaming.',
  },
  TF_CONTEXT_FAILED: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'The library could not make an execution context of an engine; the message has its last error lines.',
    remedy:
      'Read the library\'s lines. "Inconsistent setting of NVIDIA_TF32_OVERRIDE": set that variable as it was at the build, where -1 is unset. Older libraries let one context at a time use a profile of an engine, unless it was built with --builder-config preview-features=profile-sharing-0806.',
  },
  TF_RUN_FAILED: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'The GPU or the library failed while an engine ran; the message has the text of the driver or library.',
    remedy:
      "Run it again alone on the GPU; if it fails again, open the engine anew in a new process (the GPU's context may be lost).",
  },
  TF_SESSION_CLOSED: {
    exitCode: ExitCode.badInput,
    meaning:
      'A session, an engine, a context, a prepared call or device memory was used after it was closed.',
    remedy: 'Keep it open until its last use is over.',
  },
  TF_SESSION_BUSY: {
    exitCode: ExitCode.badInput,
    meaning:
      'A run was requested while another one used the same activation pool, or while the engine was refitted; or an engine was to be refitted while it ran.',
    remedy:
      'Await each run, and each session.refit(), before the next; engines that run at once are opened without `memory`.',
  },
  TF_SESSION_BINDING: {
    exitCode: ExitCode.badInput,
    meaning:
      'An input or output of a model has a type that cannot be passed to the runtime: int4, float8, a sequence.',
    remedy: 'Put a Cast to a plain type before that output or after that input.',
  },
  TF_SESSION_INPUT: {
    exitCode: ExitCode.badInput,
    meaning:
      'The tensors passed to a model do not fit its inputs: a name, a type or a shape is wrong or missing.',
    remedy:
      'Run `trtforge inspect` on the model, or `trtforge engine inspect` on the engine, to see its inputs.',
  },
  TF_PROFILE_MISFIT: {
    exitCode: ExitCode.badInput,
    meaning:
      'Shapes (or values of a shape tensor) passed to an engine lie outside every optimization profile it was built with; the message has the valid ranges.',
    remedy: 'Use shapes within one profile, or build the engine with a profile that includes these.',
  },
  TF_SESSION_NOT_PREPARED: {
    exitCode: ExitCode.badInput,
    meaning: 'A blocking run has shapes whose buffers are not prepared, and preparing them does not block.',
    remedy: 'Await session.run() once with these shapes, or use the call that session.prepare() returns.',
  },
  TF_PLAN_FOREIGN_HEADER: {
    exitCode: ExitCode.badInput,
    meaning:
      'An exporter put its own header in front of a plan. TensorRT ends the whole process on such a file, so it is not loaded.',
    remedy: 'Write the plan alone: trtforge engine strip-header FILE -o model.plan',
  },
  TF_ENGINE_GPU_MISMATCH: {
    exitCode: ExitCode.machineCannot,
    meaning: 'An engine was built for GPUs of another compute capability than the one it should run on.',
    remedy: 'Build the engine on this GPU, or choose another with --device.',
  },
  TF_ENGINE_WRONG_ANSWER: {
    exitCode: ExitCode.failed,
    meaning:
      'An engine does not give its known answer on this GPU with this driver and library: it was just built, and is not kept, or the check at load was set to refuse it.',
    remedy:
      'Build the engine again for this machine, and look for the cause: trtforge bisect ENGINE --against MODEL -o bisect',
  },
  TF_ENGINE_VERSION_MISMATCH: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'An engine was built by another product or version than the TensorRT that should load it, or for another platform.',
    remedy: 'Use the version that built it, or build it again with this one.',
  },
  TF_OUTPUT_SIZE: {
    exitCode: ExitCode.badInput,
    meaning:
      'An output of a model has another size than the model declares of it by the name of an open dimension: an exporter stored the size that it had.',
    remedy:
      'Run `trtforge inspect` on the model, which names the size that is stored. Pass that size (--shapes), or export again with that axis dynamic.',
  },
  TF_VERIFY_MISMATCH: {
    exitCode: ExitCode.badInput,
    meaning:
      'Two models, or two sets of recorded outputs, cannot be compared: they have no output in common, or inputs that do not agree.',
    remedy: 'Compare models with the same inputs and outputs, or pass compare --map, which pairs outputs.',
  },
  TF_EDIT_UNKNOWN: {
    exitCode: ExitCode.badInput,
    meaning: 'A step of `edit` names a tensor, a dimension or an axis that the model does not have.',
    remedy: 'Run `trtforge inspect` on the model, which lists them.',
  },
  TF_EDIT_IMPOSSIBLE: {
    exitCode: ExitCode.badInput,
    meaning:
      'A step of `edit` cannot be done without changing what the model computes: a cut leaves a value without a source, a size is stored as another, or an operator means something else in the other opset.',
    remedy: 'Correct the step, or leave it out.',
  },
  TF_BUDGET_UNREACHABLE: {
    exitCode: ExitCode.failed,
    meaning:
      'No choice of quantized nodes keeps the budget of accuracy, not even none of them: what is around the codes alone goes beyond it. The message has the best that was reached.',
    remedy: 'Pass a wider --budget, or --high-precision fp32.',
  },
  TF_BISECT_REFERENCE: {
    exitCode: ExitCode.badInput,
    meaning: 'The reference of a bisection or of convert advise fails against itself: two runs differ.',
    remedy:
      'Pass a reference that repeats: replace nodes that draw random numbers by constants, or pass a command that judges a candidate: --check-command.',
  },
  TF_PARITY_MISFIT: {
    exitCode: ExitCode.badInput,
    meaning:
      'A model or engine cannot be run on a reference, or not judged by it: the reference lacks one of its inputs, has no chunk, or does not record the output that the task is about.',
    remedy: 'Record a reference of the same model: trtforge stream record MODEL -o ref.jsonl',
  },
  TF_PARITY_SUMMARY_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A file that stands for another run over a reference is not what `stream verify --json` printed.',
    remedy: 'Pass the JSON that `stream verify --json` printed.',
  },
  TF_TENSOR_FILE_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'An npy, npz, safetensors or Polygraphy JSON file is damaged, cut short or not what its name stands for.',
    remedy: 'Write the file again, for example with numpy.save or numpy.savez.',
  },
  TF_CALIBRATION_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A calibration cannot be made or used: data without a sample, of a form that no reader knows, or that make an activation NaN or infinite, or an output of the FP32 model NaN; a tensor that is not an activation of the model; a cache that is damaged or was made from other data, by another method or for another model.',
    remedy:
      'Pass samples as the model takes them: --calibration FILE.npz, FILE.npy, a folder of images, a list of WAV files or a reference.',
  },
  TF_CONTRACT_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A file passed as a streaming contract is not valid: an unknown type, an impossible shape, state without its tensors.',
    remedy: 'Correct the field named, or draft one from the model: trtforge stream draft MODEL -o FILE',
  },
  TF_CONTRACT_BROKEN: {
    exitCode: ExitCode.failed,
    meaning: 'A step of a guarded session broke its streaming contract: a length, a shape or a type differs.',
    remedy:
      'Stop this stream and begin it anew; `trtforge stream verify` shows which of engine, state and contract is wrong.',
  },
  TF_REFERENCE_INVALID: {
    exitCode: ExitCode.badInput,
    meaning:
      'A recorded reference is damaged, cut short or not one; the message names the line. Tensors whose bytes do not fill their shape count as damaged.',
    remedy: 'Record it again, or remove the line that is named.',
  },
  TF_TENSOR_UNSUPPORTED: {
    exitCode: ExitCode.badInput,
    meaning: 'A tensor has an element type that this operation cannot take: text, objects, complex numbers.',
    remedy: 'Convert the tensor to a numeric type first.',
  },
  TF_TENSOR_NOT_FOUND: {
    exitCode: ExitCode.badInput,
    meaning: 'The file has no tensor of a requested name.',
    remedy: 'Use one of the names listed.',
  },
  TF_SCHEDULER_FAILED: {
    exitCode: ExitCode.machineCannot,
    meaning:
      'sbatch, kubectl or ssh is not installed here, or did not take the jobs of a fleet; the message has its words.',
    remedy:
      'Correct `where` of the target, or the cluster; then submit again: what was taken is not sent twice.',
  },
  TF_CHILD_DIED: {
    exitCode: ExitCode.internal,
    meaning:
      'A supervised child process (a library call that can abort) died; the message has the signal and its last lines.',
    remedy: 'Read the last lines; they come from the library that died.',
  },
  TF_CANCELLED: {
    exitCode: ExitCode.inconclusive,
    meaning: 'The work was cancelled before it was done. Nothing half-written is left behind.',
    remedy: 'Run the command again.',
  },
  TF_TIMEOUT: {
    exitCode: ExitCode.inconclusive,
    meaning:
      'The work took longer than --timeout allows, and was ended with every process it had started. Nothing half-written is left behind.',
    remedy: 'Pass a longer time. A large model may be silent for ten minutes after its last line.',
  },
  TF_SERVING_CONFIG: {
    exitCode: ExitCode.badInput,
    meaning:
      'A configuration of Triton or DeepStream cannot be read: an unknown field, a value of another type, text of another form.',
    remedy: 'Correct the line named.',
  },
  TF_SERVING_REFUSED: {
    exitCode: ExitCode.badInput,
    meaning:
      'An engine cannot be served as asked: Triton and DeepStream would reject it, build it again at every start, or answer wrongly.',
    remedy: 'Correct what the message names.',
  },
  TF_TRITON_UNAVAILABLE: {
    exitCode: ExitCode.machineCannot,
    meaning: "Triton's server is not installed here, does not start, or does not answer.",
    remedy:
      'Install it with `pip install nvidia-pytriton==0.7.0`, or pass the address of a running server with --url.',
  },
  TF_INVENTORY_INVALID: {
    exitCode: ExitCode.badInput,
    meaning: 'An inventory of machines is not YAML, or has a key or value that inventories do not have.',
    remedy: 'Correct the line named; docs/which.md lists the keys.',
  },
  TF_INTERNAL: {
    exitCode: ExitCode.internal,
    meaning: 'A fault of trtforge itself.',
    remedy:
      'Report it: `trtforge report-bug -o bug.tar.gz -- COMMAND` packs the command, its log and the stack.',
  },
} as const satisfies Record<string, CatalogueEntry>;

export type ErrorCode = keyof typeof catalogue;

export interface ErrorDetails {
  /** Replaces the catalogue's remedy where the code that throws has a better one. */
  readonly remedy?: string;
  readonly cause?: unknown;
  /** Machine-readable facts about the error; appears in `--json` beside code, message and remedy. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The only error class that crosses the interface of a room. `message` is one sentence that names the file, tensor or node. */
export class TrtforgeError extends Error {
  override readonly name = 'TrtforgeError';
  readonly code: ErrorCode;
  readonly remedy: string;
  readonly exitCode: ExitCode;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(code: ErrorCode, message: string, more: ErrorDetails = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.code = code;
    this.remedy = more.remedy ?? catalogue[code].remedy;
    this.exitCode = catalogue[code].exitCode;
    this.details = more.details;
  }
}

/** The `code` of a Node system error (`ENOENT`, `ENOSPC`, …), or undefined. */
export function systemErrorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** The error of a process that may open no more files, with the system's code: EMFILE or ENFILE. */
export const noMoreFiles = (code: string, cause?: unknown): TrtforgeError =>
  new TrtforgeError('TF_FILE_UNREADABLE', `No more files can be opened (${code}).`, {
    remedy: 'Raise the limit of open files: ulimit -n 1024.',
    cause,
  });
