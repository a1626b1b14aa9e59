import type { ModelFacts } from '../formats/onnx/model-facts.js';
import type { ConversionResult } from '../formats/precision/conversion.js';
import { betweenRule, rules } from '../formats/precision/rules.js';
import type { ReportConversion, ReportModel } from '../report/result.js';
import { modelNameOf } from './run-root.js';

/** What the report shows of an inspection. */
export function modelPart(facts: ModelFacts): ReportModel {
  const external = facts.externalFiles.reduce((sum, file) => sum + (file.bytes ?? 0), 0);
  return {
    name: modelNameOf(facts.file),
    path: facts.file,
    bytes: facts.fileBytes + external,
    externalFiles: facts.externalFiles.length,
    irVersion: facts.irVersion,
    opsets: facts.opsets,
    producer: [facts.producer, facts.producerVersion].filter((part) => part !== '').join(' ') || null,
    inputs: facts.inputs.map((input) => ({ ...input, dtype: input.dtype ?? 'unknown' })),
    outputs: facts.outputs.map((output) => ({ ...output, dtype: output.dtype ?? 'unknown' })),
    nodesTotal: facts.nodesTotal,
    ops: facts.ops,
    parameters: facts.parameters,
    parameterBytes: facts.initializers.bytes,
    findings: facts.findings,
  };
}

/** What the report shows of a conversion: its kept nodes grouped by the rule that kept them, each with its own reason. */
export function conversionPart(result: ConversionResult): ReportConversion {
  return {
    precision: result.precision,
    path: result.output,
    bytesBefore: result.bytes.before,
    bytesAfter: result.bytes.after,
    convertedNodes: result.nodes.converted,
    keptNodes: result.nodes.kept,
    rules: result.rules.map(({ id, title }) => ({
      id,
      title,
      reason: reasons.get(id) ?? '',
      nodes: result.kept
        .filter((node) => node.rule === id)
        .map((node) => ({ name: node.node, op: node.op, detail: node.reason })),
    })),
    counts: conversionCounts(result),
    warnings: result.warnings,
  };
}

const reasons: ReadonlyMap<string, string> = new Map(
  [...rules, betweenRule].map(({ id, reason }) => [id, reason]),
);

function conversionCounts({ nodes, casts, weights, functionsInlined }: ConversionResult) {
  const all = [
    { name: 'nodes without a floating-point value', count: nodes.untouched },
    { name: 'casts added', count: casts.added },
    { name: 'casts removed', count: casts.removed },
    { name: 'weights converted', count: weights.converted },
    { name: 'weights kept in FP32', count: weights.keptFp32 },
    { name: 'weight values clamped to the largest finite one', count: weights.saturated },
    { name: 'weight values that became zero', count: weights.toZero },
    { name: 'weight values that became subnormal', count: weights.subnormal },
    { name: 'functions inlined', count: functionsInlined },
  ];
  return all.filter(({ count }) => count > 0);
}
