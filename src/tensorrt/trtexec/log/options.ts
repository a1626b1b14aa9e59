import type { EchoedBuild, EchoedMeasurement, EchoedRange, OptionSection } from './result.js';

/** More than any version echoes; what a damaged log may add beyond it is dropped. */
const MOST_OPTIONS = 200;
const LONGEST_VALUE = 4096;

const UNITS: Readonly<Record<string, number>> = { KiB: 1 << 10, MiB: 1 << 20 };

/** As C++ streams print a double: six significant digits, with an exponent where it is large or small. */
const NUMBER = String.raw`-?\d+(?:\.\d+)?(?:e[-+]\d+)?`;
const LEADING = new RegExp(`^\\s*(${NUMBER})`);
const DURATION = new RegExp(`^(${NUMBER})s(?: \\(\\+ (${NUMBER})ms warm up\\))?`);
const POOL = new RegExp(`(\\w+): (?:default|(${NUMBER}) (MiB|KiB))`, 'g');

const SECTIONS: ReadonlyMap<string, OptionSection> = new Map(
  Object.entries({
    'Model Options': 'model',
    'Build Options': 'build',
    'System Options': 'system',
    'Inference Options': 'inference',
    'Reporting Options': 'reporting',
  } as const),
);

/** The section that a heading such as `=== Build Options ===` opens; undefined for other lines, null for another heading. */
export function sectionOf(message: string): OptionSection | null | undefined {
  const heading = /^=== (.+?) ===$/.exec(message)?.[1];
  return heading === undefined ? undefined : (SECTIONS.get(heading) ?? null);
}

/** Collects the echoed options of a log and gives their meaning. */
export class EchoedOptions {
  private readonly sections: Record<OptionSection, Map<string, string>> = {
    model: new Map(),
    build: new Map(),
    system: new Map(),
    inference: new Map(),
    reporting: new Map(),
  };
  private readonly ranges: EchoedRange[] = [];
  private readonly shapes = new Map<string, readonly number[]>();

  take(section: OptionSection, line: string): void {
    const [, key = '', value = ''] = /^(.*?)\s*:\s*(.*)$/s.exec(line.slice(0, LONGEST_VALUE)) ?? [];
    if (key === '') return;
    const options = this.sections[section];
    const before = options.get(key);
    if (before === undefined && options.size >= MOST_OPTIONS) return;
    // Inputs are echoed one a line under the same name.
    options.set(key, (before === undefined ? value : `${before}, ${value}`).slice(0, LONGEST_VALUE));
    const profile = /^Input build shape(?: \(profile (\d+)\))?$/.exec(key);
    if (profile !== null && this.ranges.length < MOST_OPTIONS) this.takeRange(Number(profile[1] ?? 0), value);
    if (key === 'Input inference shape' && this.shapes.size < MOST_OPTIONS) this.takeShape(value);
  }

  private takeRange(profile: number, value: string): void {
    const { name, dims } = namedDims(value);
    const [min, opt = min, max = opt] = dims;
    if (min === undefined || opt === undefined || max === undefined) return;
    this.ranges.push({ profile, input: name, min, opt, max });
  }

  private takeShape(value: string): void {
    const { name, dims } = namedDims(value);
    if (dims[0] !== undefined) this.shapes.set(name, dims[0]);
  }

  /** Every option as printed. */
  printed(): Readonly<Record<OptionSection, Readonly<Record<string, string>>>> {
    const { model, build, system, inference, reporting } = this.sections;
    return {
      model: Object.fromEntries(model),
      build: Object.fromEntries(build),
      system: Object.fromEntries(system),
      inference: Object.fromEntries(inference),
      reporting: Object.fromEntries(reporting),
    };
  }

  build(): EchoedBuild {
    const { build } = this.sections;
    return {
      memoryPools: poolsOf(build.get('Memory Pools') ?? ''),
      precision: build.get('Precision') ?? null,
      profiles: this.ranges,
      skipInference: enabled(build.get('Skip inference')),
      saveEngine: build.get('Save engine') || null,
      loadEngine: build.get('Load engine') || null,
    };
  }

  measurement(): EchoedMeasurement {
    const { inference, reporting } = this.sections;
    const number = (key: string) => leadingNumber(inference.get(key));
    const duration = DURATION.exec(inference.get('Duration') ?? '');
    return {
      iterations: number('Iterations'),
      durationSeconds: leadingNumber(duration?.[1]),
      warmUpMs: leadingNumber(duration?.[2]),
      idleMs: number('Idle time'),
      sleepMs: number('Sleep time'),
      streams: number('Inference Streams'),
      transfers: enabled(inference.get('Data transfers')),
      spinWait: enabled(inference.get('Spin-wait')),
      graph: enabled(inference.get('CUDA Graph')),
      exposeDma: enabled(inference.get('ExposeDMA')),
      separateProfileRun: enabled(inference.get('Separate profiling')),
      shapes: Object.fromEntries(this.shapes),
      averageRuns: leadingNumber(reporting.get('Averages')),
      percentiles: (reporting.get('Percentiles') ?? '').split(',').flatMap((part) => {
        const percent = leadingNumber(part);
        return percent === null ? [] : [percent];
      }),
    };
  }
}

/** Switches are echoed as `Enabled` and `Disabled`; null for another word, and for none. */
export const enabled = (value: string | undefined): boolean | null =>
  value === 'Enabled' ? true : value === 'Disabled' ? false : null;

function leadingNumber(text: string | undefined): number | null {
  const found = LEADING.exec(text ?? '')?.[1];
  return found === undefined ? null : Number(found);
}

/** `x=1x3+8x3+32x3`: the name may hold `=`, `+` and `:`, the dimensions cannot. */
function namedDims(value: string): { readonly name: string; readonly dims: readonly (readonly number[])[] } {
  const [, name = '', list = ''] = /^(.*)=([^=]*)$/s.exec(value) ?? [];
  const dims = list.split('+').map((text) => {
    const parts = text.trim() === '' || text.trim() === 'scalar' ? [] : text.split('x').map(Number);
    return parts.every(Number.isSafeInteger) ? parts : undefined;
  });
  return { name, dims: dims.filter((each) => each !== undefined) };
}

/** All are in MiB but `tacticSharedMem`, which is in KiB from 10.1 on. */
function poolsOf(value: string): Readonly<Record<string, number | null>> {
  const pools = [...value.matchAll(POOL)].slice(0, MOST_OPTIONS);
  return Object.fromEntries(
    pools.map(([, name = '', size, unit = '']) => [
      name,
      size === undefined ? null : Math.round(Number(size) * (UNITS[unit] ?? 1)),
    ]),
  );
}
