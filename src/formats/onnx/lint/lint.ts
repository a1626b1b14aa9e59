import { plural } from '../../../base/text/quantity.js';
import { type Dtype, dtypes } from '../../tensor/dtype.js';
import { inferDtypes } from '../dtype-inference.js';
import { editRemedy, settlingSteps } from '../edit-steps.js';
import type { GraphView, TensorPlace } from '../graph.js';
import type { OnnxModel } from '../model.js';
import type { Finding, ValueFacts } from '../model-facts.js';
import { isPlaceholder } from '../open-dimensions.js';
import { QuantizedGraph } from '../quantized-operations.js';
import type { ModelShapes } from '../shapes/infer.js';
import { factsAsWritten, feedInputs, interfaceOf } from '../values.js';
import { MOST_AXES } from './checked-node.js';
import { Findings } from './findings.js';
import { fixedSizes, lintFixedSizes } from './fixed-sizes.js';
import { lintGraphs } from './graphs.js';
import { lintOperators } from './operators.js';
import { lintParserChecks } from './parser-checks.js';
import { lintQuantization } from './quantization.js';
import { lintConstants, lintTensors } from './tensors.js';

/**
 * Returns the suspicious parts of a model, for ONNX or for TensorRT, without reading large weights; `weights.ts` reads them.
 * `views` are all its graphs, `tensors` all its tensors, `inferred` its shapes: the caller that inspects has gathered them already.
 */
export function lintModel(
  model: OnnxModel,
  views: readonly GraphView[],
  tensors: readonly TensorPlace[],
  inferred: ModelShapes,
): Finding[] {
  const findings = new Findings();
  lintTensors(model, tensors, findings);
  lintConstants(views, findings);
  lintGraphs(model.path, views, findings);
  lintOperators(model, views, inferred, findings);
  const { graph, violations } = inferDtypes(model.proto);
  for (const { where, message } of violations) findings.add('type-mismatch', where, `${where}: ${message}.`);
  const quantized = new QuantizedGraph(views, graph);
  lintQuantization(model, quantized, findings);
  const doubles = [...graph.types.values()].filter((type) => type === 'float64').length;
  const { inputs, outputs } = interfaceOf(model.proto);
  // Of an input or an output another finding says so, with the same line.
  if (doubles > 0 && ![...inputs, ...outputs].some(({ dtype }) => dtype === 'float64'))
    findings.add(
      'float64-narrowed',
      'graph',
      `${plural(doubles, 'value')} of float64: TensorRT computes them in FP32, and numbers beyond its range become its largest.`,
      editRemedy(model.path, ['--float32']),
    );
  const fixed = fixedSizes(model, inferred);
  const single = fixed.flatMap(({ symbol, least, most }) =>
    least === most ? [[symbol, most] as const] : [],
  );
  const settling = settlingSteps(model, new Map(single));
  const remedy = settling.length === 0 ? undefined : editRemedy(model.path, settling);
  lintParserChecks(quantized, inferred, remedy, findings);
  lintFixedSizes(fixed, remedy, findings);
  lintInterface(model, remedy, findings);
  return findings.list();
}

/** Findings about graph inputs and outputs: dimensions without a name, zeros, types that TensorRT lacks. */
function lintInterface({ path, proto }: OnnxModel, remedy: string | undefined, findings: Findings): void {
  const graph = proto.graph!;
  const lintValue = (facts: ValueFacts, where: string) =>
    lintBinding(
      facts,
      where,
      facts.dtype === 'float64' ? editRemedy(path, ['--float32']) : undefined,
      findings,
    );
  for (const value of feedInputs(graph)) {
    const facts = factsAsWritten(value);
    const where = `graph input "${facts.name}"`;
    lintValue(facts, where);
    const open = (facts.shape ?? []).flatMap((dim, axis) =>
      dim === null || (typeof dim === 'string' && isPlaceholder(dim)) ? [axis] : [],
    );
    if (open.length > 0) {
      findings.add(
        'dim-without-symbol',
        where,
        `Axis ${open.join(', ')} of input "${facts.name}" is dynamic and has no name: which inputs must agree is unknown. Pass shapes for it when building.`,
        remedy,
      );
    }
    if (facts.shape === null && facts.dtype !== null && facts.dtype in dtypes) {
      findings.add(
        'dim-without-symbol',
        where,
        `Input "${facts.name}" has no shape, not even a rank; TensorRT needs the rank.`,
      );
    }
  }
  for (const value of graph.output) lintValue(factsAsWritten(value), `graph output "${value.name}"`);
}

function lintBinding(facts: ValueFacts, where: string, remedy: string | undefined, findings: Findings): void {
  for (const [axis, dim] of (facts.shape ?? []).entries()) {
    if (dim === 0) {
      findings.add(
        'dim-zero',
        where,
        `Axis ${axis} of "${facts.name}" has the fixed size 0; exporters write 0 where they mean a dynamic axis.`,
      );
    } else if (typeof dim === 'number' && dim < 0) {
      findings.add(
        'dim-negative',
        where,
        `Axis ${axis} of "${facts.name}" has the size ${dim}; ONNX writes dynamic axes as symbols.`,
      );
    }
  }
  if ((facts.shape?.length ?? 0) > MOST_AXES)
    findings.add(
      'io-rank-unsupported',
      where,
      `"${facts.name}" has ${facts.shape?.length} axes; TensorRT takes at most ${MOST_AXES}. Merge axes.`,
    );
  if (facts.dtype !== null && (dtypes[facts.dtype as Dtype]?.tensorrt ?? null) === null) {
    findings.add(
      'io-type-unsupported',
      where,
      `"${facts.name}" is ${facts.dtype}, which TensorRT has no bindings of. Cast it where it is made, to INT32 or a floating-point type.`,
      remedy,
    );
  }
}
