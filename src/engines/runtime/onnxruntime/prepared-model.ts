import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Setting } from '../../../addon/onnx-runtime.js';
import { removeIfAllowed } from '../../../base/files/files.js';
import { makeScratch } from '../../../base/files/scratch.js';
import { TrtforgeError } from '../../../errors.js';
import type { WorkContext } from '../../../events.js';
import { assertWellTyped, inferDtypes } from '../../../formats/onnx/dtype-inference.js';
import { isExternal } from '../../../formats/onnx/external-data.js';
import { visitNodes, visitTensors } from '../../../formats/onnx/graph.js';
import { lowerIrVersion } from '../../../formats/onnx/ir-version.js';
import { editModel, type OnnxModel } from '../../../formats/onnx/model.js';
import type { ValueFacts } from '../../../formats/onnx/model-facts.js';
import type { ModelProto } from '../../../formats/onnx/onnx_pb.js';
import { isPlaceholder } from '../../../formats/onnx/open-dimensions.js';
import { interfaceOf } from '../../../formats/onnx/value-facts.js';
import { wrapsEngine } from '../../../formats/onnx/wrapped-engine.js';
import { writeModel } from '../../../formats/onnx/write.js';
import { drawsNumbers } from '../../../formats/precision/operator-traits.js';
import { type Dtype, dtypes } from '../../../formats/tensor/dtype.js';
import { isArrayDtype } from '../../../formats/tensor/values.js';
import type { Arithmetic } from '../back-end.js';
import type { Binding } from '../session.js';
import { fp4AsInt8 } from './fp4-codes.js';
import type { OrtPlace } from './ort-provider.js';
import { precisionFlags } from './provider-options.js';
import { isWide, type Rounding, roundInFloat32 } from './rounded-model.js';

/** ONNX Runtime rejects larger files, as protobuf does; it takes the same model with its weights in a file of their own. */
const LARGEST_PROTOBUF = 2 ** 31 - 1;

/** A model as ONNX Runtime can load it. */
export interface PreparedModel {
  /** The model file to load: the user's own, or a copy that is rounded, has no FP4, or has its weights beside it, or its shapes inside. */
  readonly path: string;
  /** Where its external data is; undefined: beside it. */
  readonly weightsFolder: string | undefined;
  readonly inputs: readonly Binding[];
  readonly outputs: readonly Binding[];
  readonly rounding: Rounding | undefined;
  readonly arithmetic: Arithmetic;
  /** Whether values are quantized to float8. */
  readonly isFloat8: boolean;
  /** Whether a node draws random numbers: ONNX Runtime draws the same ones in every session of a process. */
  readonly drawsNumbers: boolean;
  /** Options of the TensorRT provider that the model's types need. */
  readonly precisionFlags: readonly Setting[];
  discard(): void;
}

/**
 * Reads a model, by path, and writes a copy where ONNX Runtime cannot load it as it is; messages call it `given`. Throws TF_SESSION_BINDING, TF_ONNX_GRAPH_INVALID, and what
 * opening and writing a model throws.
 */
export async function prepareModel(
  path: string,
  given: string,
  options: Pick<OrtPlace, 'provider'> & WorkContext & { readonly weightsFolder?: string },
): Promise<PreparedModel> {
  const { weightsFolder } = options;
  return editModel(
    path,
    async (model) => {
      assertWellTyped(path, model.proto);
      const isGpu = (options.provider ?? 'cpu') !== 'cpu';
      const { inputs, outputs } = bindingsOf(given, model);
      const replacements = isGpu ? new Map() : fp4AsInt8(model);
      const rounding = isGpu ? undefined : roundInFloat32(model.proto);
      const arithmetic = wrapsEngine(model.proto)
        ? 'as-built'
        : rounding !== undefined
          ? 'rounded'
          : !isGpu || isWide(model.proto)
            ? 'fp32'
            : 'mixed';
      const facts = {
        inputs,
        outputs,
        rounding,
        arithmetic,
        isFloat8: quantizesToFloat8(model.proto),
        drawsNumbers: hasRandomNode(model.proto),
        precisionFlags: options.provider === 'tensorrt' ? precisionFlagsOf(model.proto) : [],
      } as const;
      const isTooLarge = statSync(path).size > LARGEST_PROTOBUF;
      const isTooNew = model.proto.irVersion > NEWEST_IR;
      if (isTooNew) lowerIrVersion(model.proto);
      const isAsItIs = rounding === undefined && replacements.size === 0 && !isTooNew;
      if (isAsItIs && !isTooLarge && !hasShapesOutside(model.proto))
        return { path, weightsFolder, ...facts, discard: () => {} };
      const folder = makeScratch('model');
      const discard = () => removeIfAllowed(folder);
      const copy = join(folder, 'model.onnx');
      try {
        await writeModel(
          model,
          copy,
          {
            externalData: isTooLarge ? 'always' : 'auto',
            replacements,
            signal: options.signal,
          },
          options.emit,
        );
      } catch (error) {
        discard();
        throw error;
      }
      return { path: copy, weightsFolder: undefined, ...facts, discard };
    },
    { weightsFolder },
  );
}

/** The newest IR that ONNX Runtime 1.30 loads; a file that states more seldom needs it. */
const NEWEST_IR = 13n;

/** Shapes (an input of Reshape, Expand, …) in another file: ONNX Runtime infers shapes before it reads external data, and rejects the model. */
function hasShapesOutside(proto: ModelProto): boolean {
  for (const { tensor } of visitTensors(proto))
    if (isExternal(tensor) && tensor.dataType === dtypes.int64.onnx && tensor.dims.length <= 1) return true;
  return false;
}

const float8: ReadonlySet<number> = new Set(
  Object.entries(dtypes).flatMap(([name, { onnx }]) => (name.startsWith('float8') ? [onnx as number] : [])),
);

export function hasRandomNode(proto: ModelProto): boolean {
  for (const { node } of visitNodes(proto))
    if (drawsNumbers(node.opType) || (node.opType === 'Dropout' && node.input.length > 2)) return true;
  return false;
}

function quantizesToFloat8(proto: ModelProto): boolean {
  for (const { tensor } of visitTensors(proto)) if (float8.has(tensor.dataType)) return true;
  for (const { node } of visitNodes(proto))
    if (node.attribute.some(({ name, i }) => name === 'output_dtype' && float8.has(Number(i)))) return true;
  return false;
}

/**
 * A flag for each narrow type of a model. The provider of ONNX Runtime 1.30 makes weakly typed networks (flags 0 in `createNetworkV2`), which compute in FP32 what no flag
 * allows, and end the build of INT8 pairs beside FP16: "fp16 is not configured in the builder". It has no flag for float8.
 */
function precisionFlagsOf(proto: ModelProto): readonly Setting[] {
  const types = new Set([...inferDtypes(proto).graph.types.values()]);
  const isQuantized = proto.graph?.node.some(({ opType }) => opType === 'DequantizeLinear') ?? false;
  return (['int8', 'float16', 'bfloat16'] as const).flatMap((dtype): Setting[] =>
    types.has(dtype) && (dtype !== 'int8' || isQuantized) ? [[precisionFlags[dtype], '1']] : [],
  );
}

function bindingsOf(path: string, model: OnnxModel): Pick<PreparedModel, 'inputs' | 'outputs'> {
  const declared = interfaceOf(model.proto);
  const binding =
    (what: string) =>
    ({ name, dtype, shape }: ValueFacts): Binding => {
      if (dtype === null || !(dtype in dtypes) || !isArrayDtype(dtype as Dtype)) {
        throw new TrtforgeError(
          'TF_SESSION_BINDING',
          `The ${what} ${name} of ${path} is ${dtype ?? 'of no declared type'}, which cannot be passed to ONNX Runtime.`,
        );
      }
      const unnamed = (dim: number | string | null) =>
        typeof dim === 'string' && isPlaceholder(dim) ? null : dim;
      return { name, dtype: dtype as Dtype, shape: shape?.map(unnamed) ?? null };
    };
  return {
    inputs: declared.inputs.map(binding('input')),
    outputs: declared.outputs.map(binding('output')),
  };
}
