import { create } from '@bufbuild/protobuf';
import { TrtforgeError } from '../../errors.js';
import { nodeLabel, opsetsOf } from '../onnx/dtype-inference.js';
import { visitMainGraphs } from '../onnx/graph.js';
import { type ModelProto, type NodeProto, ValueInfoProtoSchema } from '../onnx/onnx_pb.js';
import { type OperatorSignature, operatorSignature, plainDomain } from '../onnx/operators.js';
import { declaredType, onnxNumber } from '../onnx/values.js';
import { type Dtype, dtypes } from '../tensor/dtype.js';
import { type Flow, operatorName } from './flow.js';

/** The types that a plug-in takes and returns, by position; one entry of `all` stands for every floating-point input and output. */
type PluginSlots =
  | { readonly all: Dtype }
  | { readonly inputs: readonly Dtype[]; readonly outputs: readonly Dtype[] };

/** The types that a user declares for operators that ONNX does not define, by `Type` or `domain::Type`. */
export type PluginTypes = ReadonlyMap<string, PluginSlots>;

const shortNames: Readonly<Record<string, Dtype>> = {
  fp32: 'float32',
  fp16: 'float16',
  bf16: 'bfloat16',
};
const floats: ReadonlySet<string> = new Set(Object.values(shortNames));

/**
 * Reads one declaration as ModelOpt's `--trt_plugins_precision` has it: `MyNorm:fp16` for all floating-point inputs and outputs, or
 * `Nms:[fp32,fp32]:[fp32,int32]`. Throws TF_USAGE.
 */
export function parsePluginTypes(text: string): readonly [string, PluginSlots] {
  const [, one, type] = /^(.+):(\w+)$/.exec(text) ?? [];
  const all = type === undefined ? undefined : dtypeNamed(type);
  if (one !== undefined && all !== undefined && floats.has(all)) return [one, { all }];
  const [, name, ...sides] = /^(.+):\[([^\]]*)\]:\[([^\]]*)\]$/.exec(text) ?? [];
  const [inputs, outputs] = sides.map((list) => list.split(',').map((each) => dtypeNamed(each.trim())));
  if (name !== undefined && isKnown(inputs) && isKnown(outputs)) return [name, { inputs, outputs }];
  throw new TrtforgeError('TF_USAGE', `"${text}" is not a declaration of an operator's types.`, {
    remedy:
      'Write OPERATOR:fp16, or the type of each input and output: OPERATOR:[fp16,int32]:[fp16]. Types are fp32, fp16, bf16, int32, int64, bool, …',
  });
}

const dtypeNamed = (name: string): Dtype | undefined =>
  shortNames[name] ?? (Object.hasOwn(dtypes, name) ? (name as Dtype) : undefined);

const isKnown = (list: readonly (Dtype | undefined)[] | undefined): list is readonly Dtype[] =>
  list?.every((each) => each !== undefined) ?? false;

/** As `parsePluginTypes` reads it. */
export const pluginTypesText = (types: PluginTypes): readonly string[] =>
  [...types].map(([name, slots]) =>
    'all' in slots
      ? `${name}:${shortNameOf(slots.all)}`
      : `${name}:${[slots.inputs, slots.outputs].map((list) => `[${list.map(shortNameOf).join(',')}]`).join(':')}`,
  );

const shortNameOf = (dtype: Dtype): string =>
  Object.keys(shortNames).find((name) => shortNames[name] === dtype) ?? dtype;

/** The signature of a plug-in where a model becomes `dtype`: what is declared in that type follows, other floats are FP32. Undefined for what is not declared. */
export function pluginSignature(
  node: NodeProto,
  types: PluginTypes,
  dtype: Dtype,
): OperatorSignature | undefined {
  const slots = types.get(nameOf(node));
  if (slots === undefined) return undefined;
  const formal = (declared: Dtype, variadic: 'no' | 'same') => {
    return declared === dtype
      ? { variable: 'T', allowed: new Set(['float32', dtype]), optional: false, variadic }
      : { variable: undefined, allowed: new Set([originalType(declared)]), optional: false, variadic };
  };
  const side = (of: 'inputs' | 'outputs') =>
    'all' in slots ? [formal(slots.all, 'same')] : slots[of].map((declared) => formal(declared, 'no'));
  return { since: 1, inputs: side('inputs'), outputs: side('outputs') };
}

/**
 * Declares the outputs of plug-ins in an FP32 model where it does not itself, so that what reads them is typed: 16-bit floats are FP32 there. Throws TF_USAGE
 * for an operator that the model does not have or that ONNX defines, and for a node with more inputs or outputs than declared.
 */
export function declarePlugins(model: ModelProto, types: PluginTypes): void {
  const opsets = opsetsOf(model.opsetImport);
  const missing = new Map(types);
  for (const { graph, nodes } of visitMainGraphs(model)) {
    for (const node of nodes) {
      const name = nameOf(node);
      const slots = types.get(name);
      if (slots === undefined || graph === undefined) continue;
      missing.delete(name);
      const domain = plainDomain(node.domain);
      if (operatorSignature(domain, node.opType, opsets.get(domain) ?? 0) !== undefined)
        throw wrong(`ONNX defines the types of ${name}`, 'Remove the declaration.');
      for (const side of ['input', 'output'] as const) {
        const count = 'all' in slots ? Number.POSITIVE_INFINITY : slots[`${side}s`].length;
        if (node[side].length > count)
          throw wrong(
            `${nodeLabel(node)} has ${node[side].length} ${side}s, and ${count} of ${name} are declared`,
            'Declare the type of each input and output.',
          );
      }
      for (const [index, output] of node.output.entries()) {
        const known = [...graph.output, ...graph.valueInfo].some(
          (info) => info.name === output && declaredType(info.type) !== undefined,
        );
        if (output !== '' && !known)
          graph.valueInfo.push(valueInfo(output, originalType(declaredAt(slots, 'outputs', index))));
      }
    }
  }
  const [absent] = missing.keys();
  if (absent !== undefined)
    throw wrong(`The model has no operator ${absent}`, 'Operators of other domains are DOMAIN::NAME.');
}

/** Throws TF_USAGE where a value of a plug-in has another type than declared. */
export function assertPluginTypes({ operations }: Flow, types: PluginTypes): void {
  for (const operation of operations) {
    const slots = types.get(operatorName(operation));
    if (slots === undefined || 'all' in slots) continue;
    for (const side of ['inputs', 'outputs'] as const)
      for (const [index, value] of operation[side].entries()) {
        const declared = slots[side][index];
        if (value?.type === undefined || declared === undefined) continue;
        if (value.type === declared || value.type === originalType(declared)) continue;
        throw wrong(
          `"${value.name}" of ${operation.label} is ${value.type} in the model, and declared ${declared}`,
          'Declare what the plug-in takes there; FP32 values can be fp32, fp16 or bf16.',
        );
      }
  }
}

const nameOf = (node: NodeProto): string => {
  const domain = plainDomain(node.domain);
  return domain === '' ? node.opType : `${domain}::${node.opType}`;
};

const declaredAt = (slots: PluginSlots, side: 'inputs' | 'outputs', index: number): Dtype =>
  'all' in slots ? slots.all : slots[side][index]!;

/** The type in the FP32 model for a declared type. */
const originalType = (declared: Dtype): Dtype => (floats.has(declared) ? 'float32' : declared);

const valueInfo = (name: string, dtype: Dtype) =>
  create(ValueInfoProtoSchema, {
    name,
    type: { value: { case: 'tensorType', value: { elemType: onnxNumber(dtype) } } },
  });

const wrong = (message: string, remedy: string) =>
  new TrtforgeError('TF_USAGE', `--plugin-types: ${message}.`, { remedy });
