import { basename, join } from 'node:path';
import { readJson } from '../base/files/files.js';
import { publishFile } from '../base/files/publish.js';
import { ExitCode } from '../errors.js';
import type { Section } from '../report/blocks.js';
import type { ForgeResult } from '../report/forge-result.js';
import { forgeReport, RESULT_FILE } from '../report/pages/forge.js';
import { picturesOf, renderReport } from '../report/pages/report.js';

/** Where the parts of a run lie in its run root. */
export interface RunRoot {
  readonly path: string;
  readonly report: string;
  readonly markdown: string;
  readonly result: string;
  readonly timings: string;
  /** The typed model of a run, `model/resnet50.fp16.onnx`. */
  typedModel(modelPath: string, precision: string): string;
  readonly engines: string;
  /** The full result of one phase, as its own command would print it with `--json`. */
  stepResult(phase: string): string;
  readonly logs: string;
  log(phase: string): string;
}

export function runRootAt(path: string): RunRoot {
  return {
    path,
    report: join(path, 'report.html'),
    markdown: join(path, 'report.md'),
    result: join(path, RESULT_FILE),
    timings: join(path, 'timings.json'),
    typedModel: (modelPath, precision) => join(path, 'model', `${modelNameOf(modelPath)}.${precision}.onnx`),
    engines: join(path, 'engines'),
    stepResult: (phase) => join(path, 'steps', `${fileName(phase)}.json`),
    logs: join(path, 'logs'),
    log: (phase) => join(path, 'logs', `${fileName(phase)}.log`),
  };
}

export const defaultRunRoot = (modelPath: string, precision: string): string =>
  join('runs', `${modelNameOf(modelPath)}-${precision}`);

/** `models/resnet50.onnx` is the model `resnet50`. */
const modelNameOf = (modelPath: string): string => basename(modelPath).replace(/\.onnx$/i, '') || 'model';

const fileName = (phase: string): string => phase.replaceAll(' ', '-');

export function writeJson(path: string, value: unknown): void {
  publishFile(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** Whether the run root has the report of a run that came to its end. */
function hasFinishedReport(root: RunRoot): boolean {
  const content = readJson(root.result);
  return typeof content === 'object' && content !== null && 'error' in content && content.error === null;
}

/** Writes every view of a result, the data first. */
export async function writeReport(
  root: RunRoot,
  result: ForgeResult,
  more: readonly Section[] = [],
): Promise<void> {
  writeJson(root.result, result);
  writeJson(root.timings, timingsOf(result));
  const report = { kind: forgeReport, result };
  publishFile(root.markdown, renderReport(report, 'markdown', more).content);
  publishFile(root.report, renderReport(report, 'html', more, await picturesOf(report, 'html')).content);
}

const timingsOf = ({ startedAt, totalMs, phases }: ForgeResult) => ({
  schema: 'trtforge.timings/1',
  startedAt,
  totalMs,
  phases: phases.map(({ name, status, startMs, ms, steps }) => ({ name, status, startMs, ms, steps })),
});

/** A run that failed and left the engine alone takes no report of a good run away, and none is worth writing of a request that could not begin. */
export function describesTheRoot(
  root: RunRoot,
  {
    error,
    found,
    hasBegun,
  }: {
    readonly error: ForgeResult['error'];
    readonly found: { readonly obtained?: object };
    readonly hasBegun: boolean;
  },
): boolean {
  if (error === null || found.obtained !== undefined) return true;
  return (hasBegun || error.exitCode !== ExitCode.badInput) && !hasFinishedReport(root);
}
