import { readText } from '../../base/files/files.js';
import { isRecord, type JsonRecord, parseJson, parseLooseJson } from '../../base/files/json.js';
import { TrtforgeError } from '../../errors.js';
import { type Dtype, dtypes, elementCount, packedBytes } from '../../formats/tensor/dtype.js';
import { originOfLayer } from '../plan/layer-names.js';
import type { EngineBinding, EngineLayer, EngineLayers, LayerTensor } from './result.js';

/** The inspector's names of element types: the long words inside a format's sentence, the compiler's own short ones, and enum names. */
const WORDS: Readonly<Record<string, Dtype>> = {
  fp32: 'float32',
  float: 'float32',
  float32: 'float32',
  fp16: 'float16',
  half: 'float16',
  float16: 'float16',
  bf16: 'bfloat16',
  bfloat16: 'bfloat16',
  fp8: 'float8_e4m3fn',
  float8: 'float8_e4m3fn',
  fp4: 'float4_e2m1fn',
  e8m0: 'float8_e8m0fnu',
  int8: 'int8',
  int32: 'int32',
  int64: 'int64',
  int4: 'int4',
  uint8: 'uint8',
  bool: 'bool',
};

const WIDTHS: Readonly<Record<string, number>> = {
  two: 2,
  four: 4,
  eight: 8,
  sixteen: 16,
  'thirty-two': 32,
};

/** `Channel major FP16 format where channel % 8 == 0` is float16; null where the text names no type (`N/A due to dynamic shapes`). */
export function dtypeOfFormat(format: string): Dtype | null {
  for (const [word] of format.toLowerCase().matchAll(/\b[a-z]+\d*[a-z]*\d*\b/g)) {
    const dtype = Object.hasOwn(WORDS, word) ? WORDS[word] : undefined;
    if (dtype !== undefined) return dtype;
  }
  return null;
}

/** Bytes of a tensor in a layout: the channels are filled up to the layout's multiple. Null where a dimension is open or the type unknown. */
export function bytesInFormat(
  shape: readonly (number | null)[] | null,
  format: string | null,
  dtype: Dtype | null,
): number | null {
  if (shape === null || dtype === null) return null;
  const fixed = shape.filter((dimension) => dimension !== null);
  if (fixed.length !== shape.length) return null;
  const multiple = channelMultiple(format ?? '');
  const channel = fixed.length - (format?.includes('3 spatial dimensions') === true ? 4 : 3);
  const padded = fixed.map((dimension, index) =>
    index === channel ? Math.ceil(dimension / multiple) * multiple : dimension,
  );
  const bytes = packedBytes(dtype, elementCount(padded));
  return Number.isSafeInteger(bytes) ? bytes : null;
}

function channelMultiple(format: string): number {
  const modulo = /channel % (\d{1,4}) ==/i.exec(format)?.[1];
  if (modulo !== undefined) return Math.max(Number(modulo), 1);
  const wide = /^(\S{1,12}) wide channel/i.exec(format)?.[1]?.toLowerCase() ?? '';
  return (Object.hasOwn(WIDTHS, wide) ? WIDTHS[wide] : undefined) ?? 1;
}

/** The layers of the largest engines take some tens of MB. */
export const LARGEST_BYTES = 128 << 20;

/** Fields of a layer that have a place of their own. */
const OWN_FIELDS = new Set([
  ...[
    'Name',
    'LayerType',
    'Inputs',
    'Outputs',
    'TacticName',
    'TacticValue',
    'StreamId',
    'Metadata',
    'Origin',
  ],
]);

/** Layer types that move data and compute nothing. `NoOp` is absent: it does not even move. */
const COPY_TYPES = new Set(['Reformat', 'MyelinReformat', 'Reformatting']);

/** Products of the compiler: their operands come first, then the floats that INT8 or FP8 sums are scaled by. */
const PRODUCT_TYPES = new Set(['gemm', 'correlation']);

/** The text of a file of layer information, for `readLayers`. Errors: TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_LAYERS_INVALID where it is too large. */
export function layersText(path: string): string {
  return readText(path, LARGEST_BYTES, 'TF_LAYERS_INVALID');
}

/**
 * The layers of an engine from the JSON text of `IEngineInspector::getEngineInformation`, which trtexec's `--exportLayerInfo` writes too: every dialect
 * from 8.6 on. `where` is for the message. Errors: TF_LAYERS_INVALID.
 */
export function readLayers(text: string, where = 'The layer information'): EngineLayers {
  const document = parsed(text, where);
  const entries = listOf(document.Layers);
  if (entries === undefined) throw layersInvalid(where, 'it has no list `Layers`');
  const layers = entries.map((entry, index) => {
    if (typeof entry === 'string') return toLayer({ Name: entry }, index);
    if (!isRecord(entry) || typeof entry.Name !== 'string')
      throw layersInvalid(where, `layer ${index} has no name`);
    return toLayer(entry, index);
  });
  const tensors = listOf(document['I/O Tensors']);
  return {
    detail: layers.some(({ type }) => type !== null) ? 'detailed' : 'names',
    dialect: tensors === undefined ? 'bindings' : 'io-tensors',
    layers,
    bindings: tensors === undefined ? namedBindings(document.Bindings, layers) : tensors.flatMap(toBinding),
  };
}

const listOf = (value: unknown): readonly unknown[] | undefined => (Array.isArray(value) ? value : undefined);
const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

function parsed(text: string, where: string): JsonRecord {
  const document = parseJson(
    text,
    LARGEST_BYTES,
    (why, cause) => layersInvalid(where, why, cause),
    parseLooseJson,
  );
  if (!isRecord(document)) throw layersInvalid(where, 'it is not a JSON object');
  return document;
}

function toLayer(entry: JsonRecord & { readonly Name?: unknown }, index: number): EngineLayer {
  const { name, profile } = withoutProfile(String(entry.Name));
  const type = textOf(entry.LayerType);
  const metadata = typeof entry.Metadata === 'string' ? entry.Metadata : null;
  const { onnxNodes, region } = originOfLayer(name, metadata, type);
  const inputs = (listOf(entry.Inputs) ?? []).flatMap(toTensor);
  const outputs = (listOf(entry.Outputs) ?? []).flatMap(toTensor);
  const weights = weightsOf(entry);
  const tacticName = textOf(entry.TacticName);
  return {
    index,
    name,
    type,
    profile,
    inputs,
    outputs,
    tactic: { name: tacticName, value: textOf(entry.TacticValue) },
    precision: precisionOf(type, weights, inputs, outputs),
    metadata,
    onnxNodes: [...onnxNodes],
    region: region === null ? null : { ...region },
    origin: textOf(entry.Origin),
    stream: Number.isSafeInteger(entry.StreamId) ? Number(entry.StreamId) : null,
    copies: isCopy(name, type, tacticName),
    weightBytes: weights.reduce((sum, { bytes }) => sum + bytes, 0),
    outputBytes: totalBytes(outputs),
    attributes: Object.fromEntries(Object.entries(entry).filter(([key]) => !OWN_FIELDS.has(key))),
  };
}

/** Layers of the second profile and later are listed again under `name [profile 1]`. */
function withoutProfile(name: string): { name: string; profile: number } {
  const match = / \[profile (\d{1,6})\]$/i.exec(name);
  return match === null
    ? { name, profile: 0 }
    : { name: name.slice(0, match.index), profile: Number(match[1]) };
}

/** Whether a layer only moves data; of compiled kernels the name states it. */
export function isCopy(name: string, type: string | null, tactic: string | null): boolean {
  if (type !== null && COPY_TYPES.has(type)) return true;
  if (type === null) return name.startsWith('Reformatting CopyNode');
  // The compiler names a kernel by what is in it: one that only moves is called Mov.
  return type === 'kgen' && /^__myl_(?:Mov)+_/.test(tactic ?? name);
}

function toTensor(value: unknown): LayerTensor[] {
  if (typeof value === 'string') {
    return [{ name: value, shape: null, format: null, dtype: null, location: null, bytes: null }];
  }
  if (!isRecord(value) || typeof value.Name !== 'string') return [];
  const { format, dtype } = formatOf(value);
  const shape = shapeOf(value.Dimensions);
  const location = textOf(value.Location);
  return [{ name: value.Name, shape, format, dtype, location, bytes: bytesInFormat(shape, format, dtype) }];
}

/** One text before 11, two from 11 on. */
function formatOf(value: JsonRecord): { format: string | null; dtype: Dtype | null } {
  const joint = textOf(value['Format/Datatype']);
  const format = joint ?? textOf(value.Format);
  const type = joint ?? textOf(value.Datatype) ?? textOf(value.DataType) ?? format;
  return { format, dtype: type === null ? null : dtypeOfFormat(type) };
}

function shapeOf(value: unknown): (number | null)[] | null {
  const list = listOf(value);
  if (list === undefined) return null;
  return list.map((dimension) =>
    Number.isSafeInteger(dimension) && Number(dimension) >= 0 ? Number(dimension) : null,
  );
}

interface Weights {
  readonly dtype: Dtype | null;
  readonly bytes: number;
}

/** Whatever field holds `{Type, Count}`: `Weights`, `Bias`, a constant's `weights`. */
function weightsOf(entry: JsonRecord): Weights[] {
  return Object.values(entry).flatMap((value) => {
    if (!isRecord(value) || typeof value.Type !== 'string' || !Number.isSafeInteger(value.Count)) return [];
    const dtype = dtypeOfFormat(value.Type);
    const bytes = dtype === null ? 0 : packedBytes(dtype, Math.max(Number(value.Count), 0));
    return Number.isSafeInteger(bytes) && bytes > 0 ? [{ dtype, bytes }] : [];
  });
}

function precisionOf(
  type: string | null,
  weights: readonly Weights[],
  inputs: readonly LayerTensor[],
  outputs: readonly LayerTensor[],
): string | null {
  const ofWeights = type === 'Constant' ? null : weights[0]?.dtype;
  if (ofWeights !== undefined && ofWeights !== null) return ofWeights;
  if (type !== null && PRODUCT_TYPES.has(type) && inputs[0]?.dtype != null) return inputs[0].dtype;
  const isFloating = ({ dtype }: LayerTensor) => dtype !== null && dtypes[dtype as Dtype]?.kind === 'float';
  const telling = inputs.find(isFloating) ?? outputs.find(isFloating) ?? inputs[0] ?? outputs[0];
  return telling?.dtype ?? null;
}

/** Bytes of tensors together; null where one is not known. */
export function totalBytes(tensors: readonly LayerTensor[]): number | null {
  let sum = 0;
  for (const { bytes } of tensors) {
    if (bytes === null) return null;
    sum += bytes;
  }
  return Number.isSafeInteger(sum) ? sum : null;
}

/** Before 11 the bindings are names; their facts are those of the layer that reads or writes them. */
function namedBindings(value: unknown, layers: readonly EngineLayer[]): EngineBinding[] {
  const names = (listOf(value) ?? []).filter((name) => typeof name === 'string');
  const unique = [...new Set(names.map((name) => withoutProfile(name).name))];
  const read = tensorsByName(layers, 'inputs');
  const written = tensorsByName(layers, 'outputs');
  return unique.map((name) => {
    const writer = written.get(name);
    const tensor = writer ?? read.get(name);
    return {
      name,
      mode: tensor === undefined ? null : writer === undefined ? 'input' : 'output',
      dtype: tensor?.dtype ?? null,
      shape: tensor?.shape ?? null,
      format: tensor?.format ?? null,
      location: tensor?.location ?? null,
      shapeTensor: null,
      profiles: [],
    };
  });
}

function tensorsByName(layers: readonly EngineLayer[], side: 'inputs' | 'outputs'): Map<string, LayerTensor> {
  const found = new Map<string, LayerTensor>();
  for (const layer of layers)
    for (const tensor of layer[side]) if (!found.has(tensor.name)) found.set(tensor.name, tensor);
  return found;
}

function toBinding(value: unknown): EngineBinding[] {
  if (!isRecord(value) || typeof value.Name !== 'string') return [];
  const { format, dtype } = formatOf(value);
  const mode = textOf(value.IOMode)?.toLowerCase() ?? '';
  const profiles = (listOf(value.ProfileInfo) ?? []).filter(isRecord).map((profile) => ({
    min: shapeOf(profile.MinShape),
    opt: shapeOf(profile.OptShape),
    max: shapeOf(profile.MaxShape),
    format: textOf(profile.Format),
  }));
  return [
    {
      name: value.Name,
      mode: mode.includes('input') ? 'input' : mode.includes('output') ? 'output' : null,
      dtype,
      shape: shapeOf(value.Dimensions),
      format: format ?? profiles[0]?.format ?? null,
      location: textOf(value.Location),
      shapeTensor: booleanOf(value.IsShapeInferenceIO),
      profiles,
    },
  ];
}

function booleanOf(value: unknown): boolean | null {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return value !== 0;
  const text = textOf(value)?.toLowerCase();
  return text === undefined ? null : text === 'true' || text === 'yes' || text === '1';
}

export const layersInvalid = (where: string, why: string, cause?: unknown) =>
  new TrtforgeError('TF_LAYERS_INVALID', `${where} is not the layer information of an engine: ${why}.`, {
    cause,
  });
