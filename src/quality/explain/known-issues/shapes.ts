import { type KnownIssue, tensorrtIssue } from './issue.js';

export const shapeIssues: readonly KnownIssue[] = [
  {
    id: 'shapes-overridden',
    severity: 'error',
    hiddenBySuccess: true,
    pattern:
      /Dynamic dimensions required for input: (?<input>[^,]{1,500}), but no shapes were provided[^:]*: (?<shape>\S+)/,
    cause:
      'No shapes were passed for the dynamic input {input}, and trtexec built an engine for {shape} only, with exit code 0.',
    remedy: 'Pass minimum, optimum and maximum shapes. trtforge does not guess them.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'shape-missing-at-run',
    severity: 'warning',
    pattern:
      /(?:Shape missing for input with dynamic shape|Values missing for input shape tensor): (?<input>\S+?)(?:Automatically|\. ?Automatically| |$)/,
    cause:
      'No shape was passed for the dynamic input {input}, or no values for a shape tensor; ones were put in for what is open, so the measurement is of that shape.',
    remedy: 'Pass the shape to measure.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'profile-missing',
    severity: 'error',
    pattern: /Network has dynamic or shape inputs, but no optimization profile has been defined/,
    cause: 'The model has dynamic inputs and the build has no optimization profile.',
    remedy: 'Pass minimum, optimum and maximum shapes for each dynamic input.',
    versions: 'all',
    source: tensorrtIssue(768),
  },
  {
    id: 'ep-profile-incomplete',
    severity: 'error',
    pattern:
      /Following input\(s\) has no associated shape profiles provided: (?<inputs>.{1,500})|input ids for profile (?<profile>\d+) is not set/,
    cause:
      "ONNX Runtime's TensorRT provider was given shapes for some inputs and not for all of its part of the graph, which may begin inside the model.",
    remedy:
      'Name every dynamic input {inputs} in trt_profile_min_shapes, trt_profile_opt_shapes and trt_profile_max_shapes, or none of them; an engine of the whole model (`trtforge build`) has no parts.',
    versions: 'ONNX Runtime',
    source: 'https://github.com/microsoft/onnxruntime/issues/26655',
  },
  {
    id: 'profile-not-ordered',
    severity: 'error',
    pattern: /Specified optimization profiles must satisfy MIN<=OPT<=MAX/,
    cause: 'A profile has a minimum above its optimum or an optimum above its maximum.',
    remedy: 'Order the three shapes dimension by dimension.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'profile-wrong-rank',
    severity: 'error',
    pattern:
      /dynamic input is missing dimensions in profile|(?:number of dimensions is|has) (?<network>-?\d+)(?: dimensions)? but profile \d+ has (?<profile>-?\d+)|does not match network definition|profile has min=[^,]{1,100}, opt=[^,]{1,100}, max=.{1,100}? but tensor has|but profile dimensions are/,
    cause:
      'A profile has another number of dimensions for an input, or other fixed dimensions, than the model does.',
    remedy: '`trtforge inspect MODEL` lists each input with its dimensions.',
    versions: 'all',
    source: tensorrtIssue(532),
  },
  {
    id: 'profile-too-small',
    severity: 'error',
    pattern:
      /(?<which>kMIN|kOPT|kMAX) values for profile (?<profile>\d+) violate shape constraints: (?<node>\S{1,500}): spatial dimension of (?:convolution|pooling)\S* output cannot be negative.{1,2000}?violated: (?<least>\d+) >= (?<size>\d+)/,
    cause:
      'The {which} shapes of profile {profile} are too small for {node}: a size is {size} where it must be more than {least}.',
    remedy: 'Pass larger shapes for that axis.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'several-sizes-inferred',
    severity: 'error',
    isPlace: true,
    pattern: /(?:\) )?\[Shuffle\]: at most one dimension may be inferred/,
    cause:
      'A Reshape has more than one open size: the batch was made dynamic in the file by hand, and the shape inside is still of the export.',
    remedy: 'Export again with that axis dynamic.',
    versions: '7.x and later',
    source: 'https://github.com/SthPhoenix/InsightFace-REST/issues/27',
  },
  {
    id: 'profile-violates-shapes',
    severity: 'error',
    isPlace: true,
    pattern:
      /(?<which>kMIN|kOPT|kMAX) values for profile (?<profile>\d+) violate shape constraints(?:: I\w{1,50}Layer (?<node>[^\s:]{1,500}):)?/,
    cause:
      'With the {which} shapes of profile {profile} some Reshape or Slice of the graph cannot work: inputs that share a dimension disagree, or the exporter fixed it.',
    remedy: 'Use the same number wherever inputs share a dimension; export again with that axis dynamic.',
    versions: 'all',
    source: tensorrtIssue(1947),
  },
  {
    id: 'reshape-changes-volume',
    severity: 'error',
    isPlace: true,
    pattern: /(?:I\w{1,50}Layer (?<node>[^\s:]{1,500}): )?reshape changes volume/,
    cause: 'A Reshape cannot work with the shapes: its target was fixed when the model was exported.',
    remedy: 'Pass shapes whose product fits, or export again with the axis dynamic.',
    versions: 'all',
    source: tensorrtIssue(1947),
  },
  {
    id: 'static-shape-differs',
    severity: 'error',
    pattern:
      /Static dimension mismatch while setting input shape(?: for (?<input>\S{1,300})\.)?|engineDims\.d\[i\] == dims\.d\[i\]|between (?<size>\d{1,9}) and \k<size> but received \d/,
    cause: 'A request has another shape than the input {input} of the engine, whose size is fixed.',
    remedy:
      'Send that shape, or export the model with a dynamic batch (dynamic_axes, dynamic=True) and build with a range: --batch 1/8/32.',
    versions: 'all',
    source: 'https://github.com/triton-inference-server/server/issues/4445',
  },
  {
    id: 'triton-batch-above-engine',
    severity: 'error',
    pattern: /specified max-batch (?<wanted>\d+) but TensorRT engine only supports max-batch (?<has>\d+)/,
    cause: 'config.pbtxt states max_batch_size {wanted}, and the largest batch of the engine is {has}.',
    remedy:
      'Set max_batch_size to {has} (0, where the model has no batch), or build the engine with --batch 1/{wanted}/{wanted}; `trtforge triton check` compares them without a server.',
    versions: 'Triton',
    source: 'https://github.com/triton-inference-server/server/issues/7056',
  },
  {
    id: 'shape-outside-profile',
    severity: 'error',
    pattern:
      /does not satisfy any optimization profile|exceed min ~ max range at index|Supplied binding dimension|model expected the shape of dimension \d{1,2} to be between|built with static shapes for input tensor .{1,500} but the provided shapes do not match|unexpected shape for input '[^']{1,300}' for model|Could not set shape .{1,200} for tensor/,
    cause: "A request has a shape outside the range of the engine's profile.",
    remedy: 'Send a shape within the profile, or build one that includes it.',
    versions: 'all',
    source: tensorrtIssue(2739),
  },
  {
    id: 'input-name-unknown',
    severity: 'error',
    pattern: /Cannot find input tensor with name "(?<input>[^"]*)"|Invalid tensor names found in/,
    cause: 'The shapes name an input the model does not have ({input}).',
    remedy: '`trtforge inspect MODEL` lists the inputs.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'input-file-size',
    severity: 'error',
    pattern:
      /Unexpected file size for input file: (?<file>.{1,500}?)\. Note: (?<facts>.{1,200}?)\. Double|Unexpected file size for input file/,
    cause: 'The input file {file} does not have the bytes the binding needs: {facts}.',
    remedy:
      "Write it again with the binding's type and shape. Beware of int64 data for an int32 input: twice the size is taken without a word and read half.",
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'int64-binding',
    severity: 'note',
    pattern: /Make sure (?<which>input|output) (?<name>\S+) has Int64 binding/,
    cause:
      'The {which} {name} is int64, which TensorRT keeps from 10 on and cast to int32 before. The line is printed for every such binding, whatever the data.',
    remedy: 'Nothing, where the program hands over int64; one written for TensorRT 8 has to be changed.',
    versions: '10.0 and later',
    source: tensorrtIssue(4493),
  },
  {
    id: 'profile-not-self-consistent',
    severity: 'warning',
    pattern: /Profile (?<which>kMIN|kOPT|kMAX) values are not self-consistent\.(?: (?:\w+ )?(?<node>\S+):)?/,
    cause:
      'With the {which} shapes of the profile the node {node} cannot work: inputs that share a dimension disagree there, or the exporter fixed a dimension. The build passes, and the engine rejects those shapes when it runs.',
    remedy:
      'Use the same number wherever inputs share a dimension; if a Reshape has a fixed number in it, export again with that axis dynamic.',
    versions: 'all',
    source: 'measured',
  },
  {
    id: 'shapes-for-static-model',
    severity: 'error',
    pattern: /Static model does not take explicit shapes/,
    cause: 'Shapes were passed for a model whose inputs are all of fixed shape.',
    remedy: 'Leave the shapes out, or export the model with dynamic axes.',
    versions: 'all',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleEngines.cpp',
  },
  {
    id: 'profile-out-of-range',
    severity: 'error',
    pattern: /Selected profile index (?<profile>\d+) exceeds the number of profiles/,
    cause: 'The engine has no optimization profile {profile}.',
    remedy: 'Profiles count from 0; `trtforge engine layers ENGINE` shows how many there are.',
    versions: '9.1 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleInference.cpp',
  },
  {
    id: 'profile-defaulted',
    severity: 'warning',
    pattern: /(?<count>\d+) profiles detected but not set\. Running with profile 0/,
    cause:
      'The engine has {count} profiles and none was chosen: profile 0 is measured, whatever shapes the others are for.',
    remedy: 'Choose with --useProfile=N; trtforge chooses by the shape.',
    versions: '9.1 and later',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleInference.cpp',
  },
  {
    id: 'profile-copied',
    severity: 'note',
    pattern:
      /(?<passed>\w{3}Shapes) is being broadcasted to (?<missing>\w{3}Shapes) for tensor (?<tensor>\S+)/,
    cause:
      'Only {passed} were passed for {tensor}, and {missing} became the same: the engine takes that one shape.',
    remedy: 'Pass minimum, optimum and maximum where the shape is to vary.',
    versions: 'all',
    source: 'https://github.com/NVIDIA/TensorRT/blob/v11.1/samples/common/sampleOptions.cpp',
  },
];
