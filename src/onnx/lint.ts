import { Findings } from './findings.js';
import { lintGraphs } from './lint-graphs.js';
import { lintInterface } from './lint-interface.js';
import { lintOperators } from './lint-operators.js';
import { lintTensors } from './lint-tensors.js';
import type { OnnxModel } from './model.js';
import type { Finding } from './model-facts.js';

/** What looks wrong with a model, for ONNX or for TensorRT, without reading large weights; `lint-weights.ts` reads them. */
export function lintModel(model: OnnxModel): Finding[] {
  const findings = new Findings();
  lintTensors(model, findings);
  lintGraphs(model.proto, findings);
  lintOperators(model.proto, findings);
  lintInterface(model.proto, findings);
  return findings.list();
}
