import { printedNumber } from './performance.js';
import type { LoggedDevice, LoggedEngine, LoggedRun } from './result.js';

type Facts = {
  -readonly [Key in keyof (LoggedDevice & LoggedEngine & LoggedRun)]?: (LoggedDevice &
    LoggedEngine &
    LoggedRun)[Key];
};
type NumberField = { [Key in keyof Facts]-?: number extends Facts[Key] ? Key : never }[keyof Facts];
type TextField = { [Key in keyof Facts]-?: string extends Facts[Key] ? Key : never }[keyof Facts];

const MIB = 1 << 20;

interface NumberRule {
  /** The line begins with it: distinguished without a regular expression, since a verbose log has millions of lines. */
  readonly start: string;
  readonly pattern: RegExp;
  readonly fields: readonly NumberField[];
  readonly unit?: number;
}

const number = String.raw`(-?[\d.]+(?:e[-+]?\d+)?)`;
const rule = (start: string, rest: string, fields: readonly NumberField[], unit = 1): NumberRule => ({
  start,
  pattern: new RegExp(`^${start.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}${rest}`),
  fields,
  unit,
});

/** Lines that give numbers, by their first words; libraries from 8.6 to 11 spell some of them without their unit. */
const NUMBERS: readonly NumberRule[] = [
  rule('Selected Device ID: ', '(\\d+)', ['id']),
  rule('SMs: ', '(\\d+)', ['sms']),
  rule('Device Global Memory: ', '(\\d+) MiB', ['memoryMiB']),
  rule('Finished parsing network model. Parse time: ', number, ['parseSeconds']),
  rule('Engine built in ', `${number} sec`, ['builtSeconds']),
  rule('Engine loaded in ', `${number} sec`, ['loadedSeconds']),
  rule('Engine deserialized in ', `${number} sec`, ['deserializedSeconds']),
  rule('Created engine with size: ', `${number} MiB`, ['bytes'], MIB),
  rule('Loaded engine with size: ', `${number} MiB`, ['bytes'], MIB),
  rule('Detected ', '(\\d+) inputs and (\\d+) output network tensors', ['inputs', 'outputs']),
  rule('[BlockAssignment] Algorithm ', '.* blocks to (\\d+) nodes', ['scheduledLayers']),
  rule('Total Host Persistent Memory: ', number, ['hostPersistentBytes']),
  rule('Total Device Persistent Memory: ', number, ['devicePersistentBytes']),
  rule('Total Scratch Memory: ', number, ['scratchBytes']),
  rule('Max Scratch Memory: ', number, ['scratchBytes']),
  rule('Total Activation Memory: ', number, ['activationBytes']),
  rule('Total Weights Memory: ', number, ['weightsBytes']),
  rule('Weight streaming is enabled with a device memory limit of ', '(\\d+) bytes', ['weightLimit']),
  rule('Created execution context with device memory size: ', `${number} MiB`, ['contextBytes'], MIB),
  rule(
    '[MemUsageStats] Peak memory usage of TRT CPU/GPU memory allocators: CPU ',
    '(\\d+) MiB, GPU (\\d+) MiB',
    ['peakCpuBytes', 'peakGpuBytes'],
    MIB,
  ),
  rule('Loaded ', '(\\d+) bytes of (?:timing )?cache', ['timingCacheLoadedBytes']),
  rule('Saved ', '(\\d+) bytes of (?:timing )?cache', ['timingCacheSavedBytes']),
  rule('Warmup completed ', `(\\d+) queries over ${number} ms`, ['warmUpQueries', 'warmUpMs']),
  rule('Timing trace has ', `(\\d+) queries over ${number} s`, ['queries', 'seconds']),
  rule('=== Profile (', '(\\d+) iterations', ['profiledIterations']),
];

const TEXTS: readonly { readonly start: string; readonly field: TextField }[] = [
  { start: 'Selected Device: ', field: 'name' },
  { start: 'Selected Device UUID: ', field: 'uuid' },
  { start: 'Plan was created with TensorRT version ', field: 'planVersion' },
];

const LONGEST_TEXT = 200;

/** Rejection of a CUDA graph: 8.6 to 10.16 go on without `--useCudaGraph`, or omit it where CUDA is before 11.1 or for a DLA; 11 measures without. */
export const GRAPH_REFUSED =
  /not permitted under CUDA graph capture|CUDA graph capture failed|CUDA graph capture on the stream has failed|useCudaGraph flag has been ignored|Ignored --useCudaGraph flag|CUDA graphs and DLA offloading/;

/** Collects what single lines report of device, engine and run; a later line replaces an earlier one of its kind. */
export class LoggedFacts {
  private readonly facts: Facts = {};

  take(message: string): void {
    for (const { start, pattern, fields, unit = 1 } of NUMBERS) {
      if (!message.startsWith(start)) continue;
      const found = pattern.exec(message);
      if (found === null) continue;
      for (const [index, field] of fields.entries()) {
        const value = printedNumber(found[index + 1] ?? '');
        if (value !== null) this.facts[field] = unit === 1 ? value : Math.round(value * unit);
      }
      return;
    }
    const text = TEXTS.find(({ start }) => message.startsWith(start));
    if (text !== undefined) this.facts[text.field] = message.slice(text.start.length, LONGEST_TEXT).trim();
    this.takeCapability(message);
    this.takeGraph(message);
    this.takeWeightBudget(message);
    this.takeTimingCache(message);
  }

  private takeCapability(message: string): void {
    if (!message.startsWith('Compute Capability: ')) return;
    const [, major, minor] = /: (\d{1,2})\.(\d)$/.exec(message) ?? [];
    if (major !== undefined && minor !== undefined)
      this.facts.computeCapability = Number(major) * 10 + Number(minor);
  }

  /** A capture that failed counts although the lines of a capture follow it: trtexec then measures without. */
  private takeGraph(message: string): void {
    if (!/CUDA graph/i.test(message)) return;
    if (GRAPH_REFUSED.test(message)) this.facts.graphCaptured = false;
    else if (message.startsWith('Successfully captured CUDA graph')) this.facts.graphCaptured ??= true;
  }

  /** Where 10.0 sets a budget without saying how many bytes that is. */
  private takeWeightBudget(message: string): void {
    if (message.startsWith('Weight streaming has been disabled at runtime')) this.facts.weightLimit = 'all';
    if (message.startsWith('The weight streaming budget will automatically be chosen'))
      this.facts.weightLimit = 'automatic';
  }

  private takeTimingCache(message: string): void {
    if (message.startsWith('Global timing cache in use')) this.facts.timingCacheInUse = 'global';
    else if (message.startsWith('Local timing cache in use')) this.facts.timingCacheInUse = 'local';
  }

  device(): LoggedDevice {
    return this.pick(['name', 'id', 'uuid', 'computeCapability', 'sms', 'memoryMiB']);
  }

  engine(): LoggedEngine {
    return this.pick([
      'parseSeconds',
      'builtSeconds',
      'loadedSeconds',
      'deserializedSeconds',
      'bytes',
      'inputs',
      'outputs',
      'scheduledLayers',
      'hostPersistentBytes',
      'devicePersistentBytes',
      'scratchBytes',
      'activationBytes',
      'weightsBytes',
      'contextBytes',
      'weightLimit',
      'peakCpuBytes',
      'peakGpuBytes',
      'timingCacheLoadedBytes',
      'timingCacheSavedBytes',
      'timingCacheInUse',
      'planVersion',
    ]);
  }

  run(): LoggedRun {
    return this.pick([
      'warmUpQueries',
      'warmUpMs',
      'queries',
      'seconds',
      'graphCaptured',
      'profiledIterations',
    ]);
  }

  private pick<Key extends keyof Facts>(
    keys: readonly Key[],
  ): { readonly [Each in Key]: NonNullable<Facts[Each]> | null } {
    const picked = keys.map((key) => [key, this.facts[key] ?? null]);
    return Object.fromEntries(picked) as { readonly [Each in Key]: NonNullable<Facts[Each]> | null };
  }
}
