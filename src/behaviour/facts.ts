import { always, before, compareVersions, isWithin, majorOf, type Range, since } from './versions.js';

export const products = { tensorrt: 'TensorRT', 'tensorrt-rtx': 'TensorRT-RTX', trtexec: 'trtexec' } as const;
type Product = keyof typeof products;

/** Processors that TensorRT is for on Linux, by Node's name for them, as targets, wheels and folders name them. */
export const processors = { x64: 'x86_64', arm64: 'aarch64' } as const;
export type Processor = (typeof processors)[keyof typeof processors];

/** The processor of an architecture as Node spells it; undefined for one that TensorRT is not for. */
export const processorOf = (architecture: string): Processor | undefined =>
  (processors as Readonly<Record<string, Processor>>)[architecture];

/** Something that holds in some versions only. Where it was measured in one version, its range begins there. */
export interface Fact extends Readonly<Partial<Record<Product, Range>>> {
  /** The fact, in the form that sentences for readers of the row need. */
  readonly holds: string;
  /** A public document, or how it was measured. */
  readonly source: string;
  /** The value that code computes with. */
  readonly value?: unknown;
}

/** A thread of NVIDIA's public TensorRT tracker. */
export const tensorrtIssue = (number: number): string =>
  `https://github.com/NVIDIA/TensorRT/issues/${number}`;
const MIGRATION = "NVIDIA's migration guide from 10.x to 11.x";
const MATRIX = "NVIDIA's support matrices and release notes";
const TRTEXEC = "trtexec's source, tag by tag";
const PACKAGES = "NVIDIA's packages";
const HEADERS = "NVIDIA's public headers";
const PLANS = 'measured: the types in its plans';

const rtx = { 'tensorrt-rtx': since('1') };

/** Every fact that depends on a version of TensorRT, TensorRT-RTX or trtexec. Flags of trtexec and operators of the parser are tables beside this one. */
export const behaviour = {
  generations: {
    holds: 'tables of virtual functions, one for each range',
    source: 'native/abi, derived from the public headers',
    value: [
      { generation: '8', product: 'tensorrt', since: '8.6', until: '8.7' },
      { generation: '10', product: 'tensorrt', since: '10', until: '11' },
      { generation: '11', product: 'tensorrt', since: '11', until: '12' },
      { generation: 'rtx1', product: 'tensorrt-rtx', since: '1.7', until: '2' },
    ],
  },
  'rtx-wheels': {
    'tensorrt-rtx': since('1.7'),
    holds: 'wheels for Linux by processor, newest first: the first is the default of an installation',
    source: 'the public Python package index',
    value: [
      {
        product: 'tensorrt-rtx',
        version: '1.7.1.116',
        packageName: 'tensorrt-rtx-cu13-libs',
        wheels: {
          x86_64: {
            tag: 'manylinux_2_28_x86_64',
            sha256: 'e3fd45fed001240d63304e77a2d4006319b839994237cb294b6e7ad72acaabcd',
            bytes: 95_153_708,
          },
          aarch64: {
            tag: 'manylinux_2_35_aarch64',
            sha256: 'ec8b6cb95a8ea61e31d544dbc5039d35219b311999f92c518a3889aaae74359c',
            bytes: 90_582_711,
          },
        },
      },
    ],
  },
  'served-gpus': {
    tensorrt: always,
    holds:
      'compute capabilities that are served: `oldest` to 90, and `blackwell`; below `oldest`, from `unclear` on, and for other Blackwell GPUs the support matrix of the exact version decides',
    // Thor: JetPack 7 has 10.13, no release from 11.0 to 11.4.0 serves JetPack, 11.4.1 serves 7.2.2.
    source: `${MATRIX}; of Thor https://docs.nvidia.com/deeplearning/tensorrt/11.4.1/api/migration/tensorrt-10x-to-11x-jetson.html, https://github.com/roboflow/inference/pull/1935 (10.13 on JetPack 7.1)`,
    value: [
      { since: '11.4.1', last: '11.4', unclear: 75, oldest: 75, blackwell: [100, 110, 120] },
      { since: '11', last: '11.4.0', unclear: 75, oldest: 75, blackwell: [100, 120] },
      { since: '10.13', last: '10.16', unclear: 75, oldest: 75, blackwell: [100, 110, 120] },
      { since: '10.8', last: '10.12', unclear: 75, oldest: 75, blackwell: [100, 120] },
      { since: '10.5', last: '10.7', unclear: 75, oldest: 75, blackwell: null },
      { since: '10.0', last: '10.4', unclear: 70, oldest: 70, blackwell: null },
      { since: '9.0', last: '9.3', unclear: 60, oldest: 60, blackwell: null },
      { since: '0', last: '8.6', unclear: 50, oldest: 60, blackwell: null },
    ],
  },
  'rtx-gpus': {
    'tensorrt-rtx': since('1.7'),
    holds:
      'compute capabilities it builds for, and its default: every RTX generation since Ampere; it has no code for data-centre Hopper and Blackwell, nor for Jetson',
    source: 'the library, which rejects others',
    value: { served: [75, 80, 86, 89, 120, 121], usual: [80, 86, 89, 120] },
  },
  'number-types': {
    tensorrt: always,
    ...rtx,
    holds: 'formats by the first TensorRT that parses them; those not named are in every version',
    source: "the parser's changelog",
    value: { bf16: '9.0', fp8: '9.0', int4: '10.0', nvfp4: '10.8' },
  },
  'ampere-plus': {
    tensorrt: always,
    holds: 'engines for Ampere and newer are built on such a GPU, and reach neither Turing nor Jetson',
    source: HEADERS,
  },
  'forward-compatible': {
    tensorrt: always,
    holds: 'majors whose version-compatible plans load in another major, besides newer minors of their own',
    source: `${MATRIX} (11.4)`,
    value: { 8: 10, 10: 11 },
  },
  'cuda-driver': {
    holds: 'the oldest driver series that libraries for a CUDA major run on; nothing is known of older ones',
    source: "NVIDIA's release notes of CUDA: minor version compatibility",
    value: { 13: 580 },
  },
  'plan-version': { tensorrt: always, ...rtx, holds: "the version in a plan's header", source: 'measured' },
  'other-platform': {
    tensorrt: always,
    ...rtx,
    holds:
      'whether engines load on another operating system or processor: those of TensorRT do not; of those of TensorRT-RTX NVIDIA states it for operating systems, and small ones from x86-64 and Arm have the same bytes, but none was loaded elsewhere yet',
    source: `${MATRIX}; https://developer.nvidia.com/tensorrt-rtx; measured`,
    value: { tensorrt: 'no', 'tensorrt-rtx': 'unproven' },
  },
  'split-resources': { tensorrt: since('9'), holds: 'builder resources, a file per GPU', source: PACKAGES },
  'progress-monitor': { tensorrt: since('9'), ...rtx, holds: 'builds that can be stopped', source: HEADERS },
  'instance-norm': { tensorrt: since('9'), ...rtx, holds: 'native InstanceNormalization', source: HEADERS },
  'strong-typing': {
    tensorrt: since('9'),
    ...rtx,
    trtexec: since('9.1'),
    holds: 'strong typing',
    source: HEADERS,
  },
  'weak-typing': { tensorrt: before('11'), trtexec: before('11'), holds: 'weak typing', source: MIGRATION },
  'implicit-batch': { tensorrt: before('10'), holds: 'networks without a batch axis', source: HEADERS },
  calibrators: { tensorrt: before('11'), holds: 'calibrators', source: MIGRATION },
  'layer-types': { tensorrt: before('11'), holds: 'types of single layers', source: MIGRATION },
  'foreign-parsers': { tensorrt: before('9', '8'), holds: 'Caffe and UFF models', source: HEADERS },
  int64: { tensorrt: since('9'), ...rtx, holds: '64-bit integers, else made 32-bit', source: HEADERS },
  'int8-inputs': { trtexec: since('10.1'), holds: 'int8 inputs, else made float', source: TRTEXEC },
  'uint8-numbers': { trtexec: since('10.16'), holds: 'uint8 outputs, else as bytes', source: TRTEXEC },
  'shared-profiles': { trtexec: since('10.0'), holds: 'shared profiles without a preview', source: TRTEXEC },
  'onnxruntime-provider': {
    tensorrt: before('11', '10.15'),
    holds: "what onnxruntime-gpu's provider loads: libnvinfer.so.10",
    source: 'measured (docs/onnxruntime.md)',
    value: 'tensorrt-cu13==10.15.*',
  },
  'slow-after-another': {
    tensorrt: before('9', '8'),
    holds: 'an engine of many small layers is up to a tenth slower after another one in the same process',
    source:
      'measured: 0.217 ms, and 0.200 ms where another process had used the GPU since, 98 layers, 8.6.1 on an H200; 10.6 shows nothing of it (docs/evidence/h200.md)',
  },
  'parser-checks': {
    tensorrt: before('11.2'),
    'tensorrt-rtx': since('1.7'),
    holds: 'attributes, types and ranks that are rejected although the operator is imported',
    source: 'onnxOpCheckers.cpp of onnx-tensorrt 10.1; with 1.7.1, one model for each row',
  },
  'rtx-parser': {
    'tensorrt-rtx': since('1.7.1'),
    holds:
      'imports what the parser of this TensorRT does, but plug-ins, DFT, DeformConv, NonMaxSuppression and NonZero',
    source: 'measured, one model for each',
    value: '11.2',
  },
  'flags-need-gpu': {
    'tensorrt-rtx': since('1.7'),
    holds: 'builder flags whose engines its compiler makes only where CUDA is',
    source: 'measured',
    value: ['strip-plan', 'refit', 'refit-identical'],
  },
  'contrib-operators': { 'tensorrt-rtx': since('1.7'), holds: 'contrib operators', source: 'measured' },
  'top-k-limit': {
    tensorrt: before('11'),
    holds: 'TopK takes a constant K of at most 3840',
    source: 'onnxOpCheckers.cpp of onnx-tensorrt 10.1',
    value: 3840,
  },
  'cumsum-merged': {
    tensorrt: since('10.8'),
    holds:
      'Several CumSum nodes differ in their axis, or in exclusive or reverse, and TensorRT is known to compute such nodes as if they were the same. No log line shows it.',
    source: tensorrtIssue(4551),
  },
  'grid-sample-wrong': {
    tensorrt: before('11.2', '10.13'),
    holds:
      'GridSample, above all in the deformable attention of DETR-like models, is known to compute wrong results in engines that build and run without a warning.',
    source: tensorrtIssue(4813),
  },
  'detr-masks': {
    tensorrt: since('10.16'),
    holds: 'no kernel for masks of DETR',
    source: tensorrtIssue(2035),
  },
  'conv-transpose-kernels': {
    tensorrt: since('11.2'),
    holds: 'Grouped FP16 and every BF16 ConvTranspose lack strongly typed kernels',
    source: tensorrtIssue(4838),
  },
  'kernels-16-bits': {
    'tensorrt-rtx': since('1.7.1'),
    holds:
      'ConvTranspose with quantized operands and convolutions with 4-bit weights run in 16 bits, with kernels that dequantize in front',
    source: PLANS,
  },
  'int4-blocks': {
    'tensorrt-rtx': since('1.7.1'),
    holds: 'dequantizes INT4 within the product only where the sum has two blocks or more',
    source: PLANS,
  },
  'block-scales-late': {
    'tensorrt-rtx': since('1.7.1'),
    holds: 'applies those scales after the sum, so its results are wrong without a warning',
    source: 'measured against the model',
  },
  'quantized-attention': {
    tensorrt: since('10.6'),
    holds:
      'fused INT8 attention loses 11 dB for 1 % of the time, and pairs of FP8 end the fusion, which takes 1.24 times as long as attention in 16 bits',
    source: 'measured on an H100',
  },
} as const satisfies Readonly<Record<string, Fact>>;

export type FactId = keyof typeof behaviour;
/** Facts that have a range of a product. */
type FactOf<P extends Product> = {
  [Id in FactId]: P extends keyof (typeof behaviour)[Id] ? Id : never;
}[FactId];

const rangeOf = (id: FactId, product: Product): Range | undefined => (behaviour[id] as Fact)[product];

/** Whether a fact holds in a version; false for a product that the row does not name. */
export function holds(
  id: FactId,
  { product, version }: { readonly product: Product; readonly version: string },
): boolean {
  const range = rangeOf(id, product);
  return range !== undefined && isWithin(version, range);
}

/** Where it was seen first, for a sentence: `TensorRT-RTX 1.7.1`. */
export const seenOn = <P extends Product>(id: FactOf<P>, product: P): string =>
  `${products[product]} ${rangeOf(id, product)?.since}`;

/** The removal of a feature from a release: `TensorRT 11 removed calibrators`. */
export const removal = (id: FactOf<'tensorrt'>): string =>
  `TensorRT ${majorOf(rangeOf(id, 'tensorrt')?.until ?? '')} removed ${behaviour[id].holds}`;

/** An NVIDIA GPU architecture, by the compute capability that engines are built for. */
interface GpuArchitecture {
  /** 89 for 8.9. */
  readonly computeCapability: number;
  readonly architecture: string;
  /** Well-known GPUs of it. */
  readonly examples: string;
}

/** Compute capabilities as NVIDIA publishes them (developer.nvidia.com/cuda-gpus), from the oldest that TensorRT still serves. */
export const gpuArchitectures: readonly GpuArchitecture[] = [
  { computeCapability: 60, architecture: 'Pascal', examples: 'P100' },
  { computeCapability: 61, architecture: 'Pascal', examples: 'GTX 1080 Ti, P4, P40' },
  { computeCapability: 62, architecture: 'Pascal', examples: 'Jetson TX2' },
  { computeCapability: 70, architecture: 'Volta', examples: 'V100, Titan V' },
  { computeCapability: 72, architecture: 'Volta', examples: 'Jetson Xavier' },
  { computeCapability: 75, architecture: 'Turing', examples: 'RTX 2080 Ti, T4' },
  { computeCapability: 80, architecture: 'Ampere', examples: 'A100, A30' },
  { computeCapability: 86, architecture: 'Ampere', examples: 'RTX 3090, RTX 3080, A10, A10G, A40' },
  { computeCapability: 87, architecture: 'Ampere', examples: 'Jetson Orin' },
  { computeCapability: 89, architecture: 'Ada Lovelace', examples: 'RTX 4090, RTX 4080, L4, L40S' },
  { computeCapability: 90, architecture: 'Hopper', examples: 'H100, H200, GH200' },
  { computeCapability: 100, architecture: 'Blackwell', examples: 'B200, GB200' },
  { computeCapability: 103, architecture: 'Blackwell', examples: 'B300, GB300' },
  { computeCapability: 110, architecture: 'Blackwell', examples: 'Jetson Thor' },
  { computeCapability: 120, architecture: 'Blackwell', examples: 'RTX 5090, RTX 5080, RTX PRO 6000' },
  { computeCapability: 121, architecture: 'Blackwell', examples: 'DGX Spark, GB10' },
];

/** `sm_90 (Hopper: H100, H200, GH200)`, or the bare number for one nobody knows. */
export function describeComputeCapability(computeCapability: number): string {
  const known = gpuArchitectures.find((entry) => entry.computeCapability === computeCapability);
  const name = `sm_${computeCapability}`;
  return known === undefined ? name : `${name} (${known.architecture}: ${known.examples})`;
}

/** Jetson has its own memory and libraries: kAMPERE_PLUS does not reach it, and its containers have a TensorRT of their own. */
export const isJetson = (sm: number): boolean => [53, 62, 72, 87, 101, 110].includes(sm);

/** Whether a GPU is a part of a chip and has no memory of its own: Jetson, DRIVE, and GB10 of DGX Spark. */
export const isIntegrated = (sm: number): boolean => isJetson(sm) || sm === 121;

/** Whether a GPU exists with Arm processors alone: a part of a chip, or a product with Grace (GH200, GB200, GB300), whose capability cards have too. */
export const isArmOnly = (sm: number, product = ''): boolean =>
  isIntegrated(sm) || /^G[HB]\d+$/.test(product);

/**
 * Whether a GPU exists on a platform. Jetson and DRIVE run Linux on Arm alone; GB10 and products with Grace have Arm processors, and are known with Linux. Cards are in x86-64
 * machines of both systems and in Arm servers with Linux; of Windows on Arm nothing is known.
 */
export function existsOn(
  { os, arch }: { readonly os: 'linux' | 'windows'; readonly arch: Processor },
  sm: number,
  product?: string,
): Served {
  if (isArmOnly(sm, product) && arch !== 'aarch64') return 'no';
  if (isJetson(sm) && os !== 'linux') return 'no';
  return os === 'windows' && arch === 'aarch64' ? 'unknown' : 'yes';
}

/** Whether engines of `ampere-plus` are built on a GPU, and run there. */
export const isAmperePlus = (sm: number): boolean => sm >= 80 && !isJetson(sm);

/** Whether a version has kernels for a GPU; `unknown` where nothing is known of it, or the support matrix of that very version has to be asked. */
export type Served = 'yes' | 'no' | 'unknown';

/** Newest first; the last takes every older version. */
const releases = behaviour['served-gpus'].value;
const rtxGpus: readonly number[] = behaviour['rtx-gpus'].value.served;

/** Whether TensorRT of a version has kernels for a compute capability. */
export function serves(
  { product, version }: { readonly product: keyof typeof products; readonly version: string },
  computeCapability: number,
): Served {
  const isKnown = gpuArchitectures.some((known) => known.computeCapability === computeCapability);
  if (product === 'tensorrt-rtx')
    return rtxGpus.includes(computeCapability) ? 'yes' : isKnown ? 'no' : 'unknown';
  const { unclear, oldest, blackwell } = releases.find(({ since }) => compareVersions(version, since) >= 0)!;
  if (computeCapability < oldest) return computeCapability >= unclear ? 'unknown' : 'no';
  if (computeCapability <= 90) return isKnown ? 'yes' : 'unknown';
  if (blackwell === null) return 'no';
  return (blackwell as readonly number[]).includes(computeCapability) ? 'yes' : 'unknown';
}

/** The TensorRT that is known to serve a compute capability: `10.8 and newer`, `up to 9.3`; null where none is. */
export function servedFrom(computeCapability: number): string | null {
  const serving = releases.filter(
    ({ since }) => serves({ product: 'tensorrt', version: since }, computeCapability) === 'yes',
  );
  if (serving.length === 0) return null;
  return serving[0] === releases[0] ? `${serving.at(-1)?.since} and newer` : `up to ${serving[0]?.last}`;
}
