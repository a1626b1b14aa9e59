import * as is from '../../base/options/kinds.js';
import { type OptionsOf, optional } from '../../base/options/option.js';
import { parseShapes, shapesByName } from '../../base/options/readers.js';
import type { WorkContext } from '../../events.js';
import { modelFacts } from './facts-of-model.js';
import { viewModel } from './model.js';
import type { ModelFacts } from './model-facts.js';
import { listNodes } from './node-list.js';
import { requestedSizes } from './requested-sizes.js';
import { costFacts } from './shapes/cost-facts.js';
import { inferShapes } from './shapes/infer.js';
import { feedInputs, valueFacts } from './value-facts.js';
import { listWeights } from './weight-list.js';

export const inspectOptions = {
  /** Shapes of inputs, by name, that FLOPs, memory and the shapes of nodes are for; default: as declared. */
  shapes: optional(is.map<readonly number[]>(), {
    flags: '--shapes <shapes>',
    group: 'Inputs',
    describe: 'shapes of inputs that FLOPs and memory are for, as x:1x3x224x224 (default: as declared)',
    parse: parseShapes,
    repeat: true,
    make: shapesByName,
  }),
  /** Lists the nodes whose name or operator matches. */
  nodes: optional(is.pattern, {
    flags: '--nodes <regex>',
    describe:
      'list the nodes whose name or operator matches, with attributes, output shapes and FLOPs; . for all',
  }),
  /** Lists the weights whose name matches, with the range of their values. */
  weights: optional(is.pattern, {
    flags: '--weights <regex>',
    describe: 'list the weights whose name matches, with range, zeros and 2:4 sparsity; . for all',
  }),
  /** Whether every weight is read; NaN, infinities and values outside FP16 are findings. */
  checkWeights: optional(is.flag, {
    flags: '--check-weights',
    describe: 'read every weight and report NaN, infinities and values outside FP16',
  }),
};

export interface InspectOptions extends OptionsOf<typeof inspectOptions> {}

export type InspectContext = WorkContext;

/**
 * Returns the facts of an ONNX model of any size, one run's cost (FLOPs; bytes of activations), and suspicious parts. Weights are read for `weights`
 * and `checkWeights` only. Defects are findings. Throws what `openModel` throws, TF_SHAPE_INVALID for shapes that do not fit inputs, TF_CANCELLED.
 */
export async function inspectModel(
  path: string,
  { shapes = new Map(), nodes, weights, checkWeights = false }: InspectOptions = {},
  context: InspectContext = {},
): Promise<ModelFacts> {
  return viewModel(path, async (model) => {
    const { graph } = model.proto;
    const sizes = requestedSizes(feedInputs(graph!).map(valueFacts), shapes);
    const inferred = inferShapes(model, shapes, sizes);
    const facts = {
      ...modelFacts(model, inferred),
      cost: costFacts(inferred),
      ...(nodes === undefined ? {} : { nodeList: listNodes(model, nodes, inferred) }),
      ...(weights === undefined ? {} : { weightList: await listWeights(model, weights, context.signal) }),
    };
    if (!checkWeights) return facts;
    const { lintWeights } = await import('./lint/weights.js');
    return { ...facts, findings: [...facts.findings, ...(await lintWeights(model, context))] };
  });
}
