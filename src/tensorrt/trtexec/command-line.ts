import { type TrtexecFlag, type TrtexecValue, trtexecFlags, trtexecValues } from '../../behaviour/trtexec.js';
import { isWithin, type Range, rangeText } from '../../behaviour/versions.js';
import { TrtforgeError } from '../../errors.js';
import type { TrtexecPlugins } from './request.js';

/** A command line for one version of trtexec; what that version lacks is rejected by name. */
export class CommandLine {
  readonly arguments: string[] = [];

  constructor(private readonly version: string) {}

  add(flag: TrtexecFlag, value?: string | number): void {
    this.check(`--${flag}`, trtexecFlags[flag]);
    this.arguments.push(value === undefined ? `--${flag}` : `--${flag}=${value}`);
  }

  takes(flag: TrtexecFlag): boolean {
    return isWithin(this.version, trtexecFlags[flag]);
  }

  takesValue(value: TrtexecValue): boolean {
    return isWithin(this.version, trtexecValues[value]);
  }

  checkValue(value: TrtexecValue): void {
    this.check(`--${value.replace(' ', '=')}`, trtexecValues[value]);
  }

  check(option: string, range: Range): void {
    if (isWithin(this.version, range)) return;
    const availableIn = `trtexec ${rangeText(range)}`;
    throw new TrtforgeError(
      'TF_OPTION_UNSUPPORTED',
      `trtexec ${this.version} has no ${option}; ${availableIn} has it.`,
      { details: { option, version: this.version, availableIn } },
    );
  }
}

/**
 * `x:1x3x224x224`, `x:scalar`. trtexec splits at commas before it looks at quotes, so some names cannot be written.
 * Errors: TF_OPTION_UNSUPPORTED, also for a scalar where the version has no word for it.
 */
export function shapeText(line: CommandLine, name: string, dims: readonly number[]): string {
  if (/[,'*]/.test(name)) {
    throw new TrtforgeError(
      'TF_OPTION_UNSUPPORTED',
      `Input "${name}" cannot be written on trtexec's command line: a comma, quote or star in a name means something else there.`,
      { remedy: 'Use --builder native, or rename the input.' },
    );
  }
  if (dims.length === 0) line.checkValue('shapes scalar');
  return `${name}:${dims.length === 0 ? 'scalar' : dims.join('x')}`;
}

export function addPlugins(line: CommandLine, plugins: TrtexecPlugins): void {
  for (const path of plugins.static) line.add('staticPlugins', path);
  for (const path of plugins.dynamic) line.add('dynamicPlugins', path);
  for (const path of plugins.serialize) line.add('setPluginsToSerialize', path);
}

export function addProcess(
  line: CommandLine,
  { device, verbose }: { readonly device: number; readonly verbose: boolean },
) {
  if (device !== 0) line.add('device', device);
  if (verbose) line.add('verbose');
}
