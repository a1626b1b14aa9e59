import { budgetText, PERCENTILES, RUNS_AVERAGED } from './bench-flags.js';
import { enabled } from './log/options.js';
import type { TrtexecLog } from './log/result.js';
import { differing, type Misreading, processMisreadings } from './misreading.js';
import type { TrtexecBenchRequest } from './request.js';

/** Differences between a measurement's options and their echo in its log. 10 and 11 echo nothing of how an engine is loaded, 8.6 and 9 all of it. */
export function benchMisreadings(request: TrtexecBenchRequest, log: TrtexecLog): readonly Misreading[] {
  const { measurement: echo, options } = log;
  const { build, inference, reporting } = options;
  const { exports, runtime } = request;
  return [
    ...differing([
      ['data transfers', request.transfers, echo.transfers],
      ['spin wait', request.spinWait, echo.spinWait],
      ['CUDA graph', request.graph, echo.cudaGraph],
      ['--iterations', request.iterations, echo.iterations],
      ['--infStreams', request.streams, echo.streams],
      ['--idleTime', request.idleMs, echo.idleMs],
      ['--duration', request.durationMs / 1000, echo.durationSeconds],
      ['--warmUp', request.warmUpMs, echo.warmUpMs],
      ['--useProfile', request.profile, inference['Optimization Profile Index']],
      ['--separateProfileRun', exports.profile !== undefined, echo.separateProfileRun],
      ['--avgRuns', RUNS_AVERAGED, echo.averageRuns],
      ['--percentile', PERCENTILES, reporting.Percentiles],
      ['--exportTimes', exports.times ?? '', reporting['Export timing to JSON file']],
      ['--exportOutput', exports.output ?? '', reporting['Export output to JSON file']],
      ['--exportProfile', exports.profile ?? '', reporting['Export profile to JSON file']],
      ['--loadEngine', request.loadEngine, build['Load engine']],
      ['--useRuntime', runtime, build['TensorRT runtime']],
      [
        '--versionCompatible',
        request.allowHostCode || runtime !== 'full',
        enabled(build['Version Compatible']),
      ],
    ]),
    ...shapeMisreadings(request, log),
    ...budgetMisreadings(request, log),
    ...processMisreadings(request, log),
  ];
}

function shapeMisreadings(
  { shapes }: TrtexecBenchRequest,
  { measurement: echo, options: { inference } }: TrtexecLog,
): readonly Misreading[] {
  // A log that does not mention shapes at all is one that does not echo them.
  if (Object.keys(echo.shapes).length === 0 && inference['Input inference shapes'] === undefined) return [];
  return Object.entries(shapes).flatMap(([input, dims]) => {
    const echoed = echo.shapes[input];
    if (echoed?.join('x') === dims.join('x')) return [];
    return [
      { option: `--shapes of "${input}"`, asked: dims.join('x'), echoed: echoed?.join('x') ?? 'nothing' },
    ];
  });
}

/** The echo, and what was then set: only the log knows what the library chose by itself, or what the least is that 10.0 takes. */
function budgetMisreadings(
  { weightBudget }: TrtexecBenchRequest,
  { version, options, engine }: TrtexecLog,
): Misreading[] {
  if (weightBudget === undefined || version === null) return [];
  const asked = budgetText(weightBudget, version);
  const isBytes = /^\d+$/.test(asked);
  const expected = isBytes ? `${asked} bytes` : asked === '-1' ? 'Automatic' : '100.000000%';
  const budget = { option: '--weightStreamingBudget', asked };
  const echoed = options.inference['Weight Streaming Budget'];
  const set = engine.weightBudget;
  return [
    ...(echoed === undefined || echoed === expected ? [] : [{ ...budget, echoed }]),
    ...(set === null || !isBytes || String(set) === asked
      ? []
      : [{ ...budget, echoed: `a limit of ${set}` }]),
  ];
}
