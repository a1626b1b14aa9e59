import { inferDtypes } from '../dtype-inference.js';
import type { GraphView, TensorPlace } from '../graph.js';
import type { OnnxModel } from '../model.js';
import type { Finding } from '../model-facts.js';
import { Findings } from './findings.js';
import { lintGraphs } from './graphs.js';
import { lintInterface } from './interface.js';
import { lintOperators } from './operators.js';
import { lintConstants, lintTensors } from './tensors.js';

/**
 * What looks wrong with a model, for ONNX or for TensorRT, without reading large weights; `lint-weights.ts` reads them.
 * `views` are all its graphs, `tensors` all its tensors: whoever inspects has gathered them already.
 */
export function lintModel(
  model: OnnxModel,
  views: readonly GraphView[],
  tensors: readonly TensorPlace[],
): Finding[] {
  const findings = new Findings();
  lintTensors(model, tensors, findings);
  lintConstants(views, findings);
  lintGraphs(views, findings);
  lintOperators(model.proto, views, findings);
  for (const { where, message } of inferDtypes(model.proto).violations)
    findings.add('type-mismatch', where, `${where}: ${message}.`);
  lintInterface(model.proto, findings);
  return findings.list();
}
