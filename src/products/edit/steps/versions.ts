import { plural } from '../../../base/text/quantity.js';
import { attributeOf } from '../../../formats/onnx/attributes.js';
import { inferDtypes } from '../../../formats/onnx/dtype-inference.js';
import { nodeLabel, visitNodes } from '../../../formats/onnx/graph.js';
import { neededIrVersion } from '../../../formats/onnx/ir-version.js';
import type { NodeProto } from '../../../formats/onnx/onnx_pb.js';
import { operatorSignature, plainDomain } from '../../../formats/onnx/operators.js';
import { hasChanged, raiseOpset } from '../../../formats/onnx/opset-changes.js';
import { inlineFunctions } from '../../../formats/precision/normalise.js';
import { type Done, type Editing, impossible } from '../edited-model.js';

/** Replaces calls of the model's functions by their nodes. */
export function inline({ model }: Editing): Done {
  const calls = inlineFunctions(model.proto);
  return calls === 0 ? null : plural(calls, 'call');
}

/** From here on the table of changes and the one below have what became of every operator. */
const OLDEST = 13;
const NEWEST = 25;

/** Attributes that came with a version of an operator: before it, a node with one of them has no equivalent. */
const attributesSince: Readonly<Record<number, Readonly<Record<string, readonly string[]>>>> = {
  14: {
    Reshape: ['allowzero'],
    GRU: ['layout'],
    LSTM: ['layout'],
    RNN: ['layout'],
    BatchNormalization: ['training_mode'],
  },
  15: { Shape: ['start', 'end'] },
  16: { ScatterElements: ['reduction'], ScatterND: ['reduction'] },
  18: { Resize: ['axes', 'antialias', 'keep_aspect_ratio_policy'], Split: ['num_outputs'] },
  19: {
    AveragePool: ['dilations'],
    Cast: ['saturate'],
    CastLike: ['saturate'],
    QuantizeLinear: ['saturate'],
  },
  21: { QuantizeLinear: ['block_size', 'output_dtype'], DequantizeLinear: ['block_size'] },
  23: { QuantizeLinear: ['precision'], DequantizeLinear: ['output_dtype'] },
  24: { Cast: ['round_mode'], CastLike: ['round_mode'], Attention: ['qk_matmul_output_mode'] },
};

/** Moves the model to another opset of ONNX's operators. Throws TF_EDIT_IMPOSSIBLE where an operator has no equivalent there. */
export function setOpset(editing: Editing, to: number): Done {
  const { model } = editing;
  const { proto } = model;
  const domain = proto.opsetImport.find((entry) => plainDomain(entry.domain) === '');
  const from = Number(domain?.version ?? 0);
  const rejected = (why: string, remedy?: string) =>
    impossible(`The model cannot move from opset ${from} to ${to}: ${why}.`, remedy);
  if (domain === undefined) throw rejected("it uses none of ONNX's operators");
  if (from === to) return null;
  if (to < OLDEST || to > NEWEST) throw rejected(`moves end at ${OLDEST} and ${NEWEST}`);
  // ONNX Runtime may have other kernels for other versions.
  editing.isRounded = true;
  if (proto.functions.length > 0)
    throw rejected('its functions are written for the old one', 'Replace them first: --inline.');
  if (to > from) {
    const obstacle = raiseOpset(model, to);
    if (obstacle !== undefined) throw rejected(obstacle);
    return `${from} → ${to}`;
  }
  for (const { node } of visitNodes(proto)) {
    const why = plainDomain(node.domain) === '' ? cannotLower(node, from, to) : undefined;
    if (why !== undefined) throw rejected(`${nodeLabel(node)} ${why}`);
  }
  domain.version = BigInt(to);
  const [clash] = inferDtypes(proto).violations;
  if (clash !== undefined) {
    domain.version = BigInt(from);
    throw rejected(`${clash.where}: ${clash.message}`);
  }
  return `${from} → ${to}`;
}

function cannotLower(node: NodeProto, from: number, to: number): string | undefined {
  const { opType } = node;
  const [now, then] = [from, to].map((opset) => operatorSignature('', opType, opset));
  if (now === undefined) return 'is no operator of the old opset';
  if (then === undefined) return `came with opset ${now.since}`;
  if (now.since === then.since) return undefined;
  if (hasChanged(opType, to, from)) return 'means something else there';
  if (node.input.length > then.inputs.length && then.inputs.at(-1)?.variadic === 'no')
    return 'has more inputs than there';
  const added = Object.entries(attributesSince).flatMap(([since, operators]) =>
    Number(since) > to && Number(since) <= from ? (operators[opType] ?? []) : [],
  );
  const used = added.find((name) => attributeOf(node, name) !== undefined);
  return used && `has the attribute ${used}, which there is not`;
}

/** The newest that ONNX has released. */
const NEWEST_IR = 13;

/** States another IR version. Throws TF_EDIT_IMPOSSIBLE where the content of the model needs a newer one. */
export function setIr({ model: { proto } }: Editing, to: number): Done {
  const needed = Number(neededIrVersion(proto));
  const from = Number(proto.irVersion);
  if (to === from) return null;
  if (to < needed || to > NEWEST_IR)
    throw impossible(
      `IR version ${to} is not possible: the model needs ${needed}, and ${NEWEST_IR} is the newest.`,
    );
  proto.irVersion = BigInt(to);
  return `${from} → ${to}`;
}
