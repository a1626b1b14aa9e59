import { trtexecValues } from '../../behaviour/trtexec.js';
import { isWithin } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import { addPlugins, addProcess, CommandLine, shapeText } from './command-line.js';
import type { TrtexecBenchRequest } from './request.js';

/** Number of inferences that a line of the trace averages. */
export const RUNS_AVERAGED = 10;

export const PERCENTILES = '90,95,99';

/**
 * The arguments that measure an engine with trtexec of a version. Nothing is left to a version's own default: 11 measures without transfers, with
 * spin wait and a CUDA graph unless specified otherwise, 8.6 to 10 the other way round, so the same request is spelled for each.
 * Errors: TF_OPTION_UNSUPPORTED.
 */
export function benchArguments(request: TrtexecBenchRequest, version: string): readonly string[] {
  const line = new CommandLine(version);
  line.add('loadEngine', request.loadEngine);
  const shapes = Object.entries(request.shapes).map(([name, dims]) => shapeText(line, name, dims));
  if (shapes.length > 0) line.add('shapes', shapes.join(','));
  if (request.profile !== 0) line.add('useProfile', request.profile);
  addMode(line, request);
  line.add('iterations', request.iterations);
  line.add('duration', request.durationMs / 1000);
  line.add('warmUp', request.warmUpMs);
  line.add('infStreams', request.streams);
  line.add('idleTime', request.idleMs);
  line.add('avgRuns', RUNS_AVERAGED);
  line.add('percentile', PERCENTILES);
  addExports(line, request);
  addRuntime(line, request);
  addWeightBudget(line, request, version);
  addProcess(line, request);
  return line.arguments;
}

/** Alike from 8.6 to 11. Without the full runtime trtexec takes the plan for version-compatible with or without the flag, and loads no plug-ins itself. */
function addRuntime(line: CommandLine, { runtime, allowHostCode, plugins }: TrtexecBenchRequest): void {
  if (runtime !== 'full') {
    if (plugins.static.length > 0)
      throw new TrtforgeError(
        'TF_OPTION_UNSUPPORTED',
        `trtexec loads plug-ins (${plugins.static.join(', ')}) only into the full TensorRT, not into the ${runtime} runtime.`,
        { remedy: 'Measure with --with trtforge, or with a full TensorRT.' },
      );
    line.add('useRuntime', runtime);
  }
  if (allowHostCode) line.add('versionCompatible');
  addPlugins(line, plugins);
}

/** Every trtexec that has the flag rejects it alone: what allows streaming in a build must be passed again. */
function addWeightBudget(line: CommandLine, { weightBudget }: TrtexecBenchRequest, version: string): void {
  if (weightBudget === undefined) return;
  line.add('weightStreamingBudget', budgetText(weightBudget, version));
  line.add('allowWeightStreaming');
}

/** A budget in a version's words: bytes as a bare number, -1 for automatic. To 10.0 a 0 turns streaming off and a share is what is streamed: 100 % is the least. */
export function budgetText(budget: number | 'automatic', version: string): string {
  if (budget === 'automatic') return '-1';
  if (budget > 0 || isWithin(version, trtexecValues['weightStreamingBudget 0'])) return String(budget);
  return '100%';
}

/** Each way of measuring has a flag before 11 to turn it on (or off) and one from 11 on to do the opposite. */
function addMode(line: CommandLine, { transfers, graph, spinWait }: TrtexecBenchRequest): void {
  const isNew = line.takes('includeDataTransfers');
  if (isNew && transfers) line.add('includeDataTransfers');
  if (!isNew && !transfers) line.add('noDataTransfers');
  if (isNew && !spinWait) line.add('noSpinWait');
  if (!isNew && spinWait) line.add('useSpinWait');
  if (isNew && !graph) line.add('noCudaGraph');
  if (!isNew && graph) line.add('useCudaGraph');
}

function addExports(line: CommandLine, { inputFiles, exports }: TrtexecBenchRequest): void {
  const inputs = Object.entries(inputFiles).map(([name, path]) => {
    if (/[,':]/.test(path) || /[,']/.test(name)) {
      throw new TrtforgeError(
        'TF_OPTION_UNSUPPORTED',
        `Input file ${path} of "${name}" cannot be written on trtexec's command line: it splits at commas, colons and quotes.`,
      );
    }
    return `${name}:${path}`;
  });
  if (inputs.length > 0) line.add('loadInputs', inputs.join(','));
  if (exports.times !== undefined) line.add('exportTimes', exports.times);
  if (exports.layers !== undefined) line.add('exportLayerInfo', exports.layers);
  if (exports.output !== undefined) line.add('exportOutput', exports.output);
  if (exports.profile === undefined) return;
  line.add('exportProfile', exports.profile);
  // The profiler slows every inference down: the measured run stays without it. 11 always does that.
  if (line.takes('separateProfileRun')) line.add('separateProfileRun');
}
