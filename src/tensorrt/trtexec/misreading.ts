import { TrtforgeError } from '../../errors.js';
import type { TrtexecLog } from './log/result.js';
import type { TrtexecBenchRequest, TrtexecBuildRequest } from './request.js';
import type { TrtexecRun } from './run.js';

/** trtexec prints six significant digits. */
export const PRINTED_PRECISION = 1e-5;

/** An option as trtexec reports that it understood it, and as it was passed. */
export interface Misreading {
  readonly option: string;
  readonly asked: string;
  readonly echoed: string;
}

/** A setting and its echo; null and undefined where nothing was asked, or where the log is silent about it. */
export type Compared = readonly [
  option: string,
  asked: string | number | boolean | null,
  echoed: string | number | boolean | null | undefined,
];

/** Throws TF_TRTEXEC_MISREAD when trtexec echoes something else than it was passed. */
export function requireUnderstood(misreadings: readonly Misreading[], run: TrtexecRun): void {
  if (misreadings.length === 0) return;
  const [first] = misreadings;
  const more = misreadings.length > 1 ? ` (and ${misreadings.length - 1} more)` : '';
  throw new TrtforgeError(
    'TF_TRTEXEC_MISREAD',
    `trtexec was passed ${first?.option} ${first?.asked} and echoes ${first?.echoed}${more}.`,
    { details: { misreadings, log: run.logPath, arguments: run.arguments } },
  );
}

/** Those that differ; an option that was not passed, or that the log is silent about, is none. */
export const differing = (compared: readonly Compared[]): readonly Misreading[] =>
  compared.flatMap(([option, asked, echoed]) =>
    asked === null || echoed === null || echoed === undefined || isSame(asked, echoed)
      ? []
      : [{ option, asked: text(asked), echoed: text(echoed) }],
  );

/** Numbers are echoed with six digits; a number in a text counts as one. */
function isSame(asked: string | number | boolean, echoed: string | number | boolean): boolean {
  if (typeof asked !== 'number') return asked === echoed;
  const printed = typeof echoed === 'string' && echoed.trim() === '' ? Number.NaN : Number(echoed);
  return Math.abs(asked - printed) <= Math.abs(asked) * PRINTED_PRECISION;
}

const text = (value: string | number | boolean): string => (value === '' ? 'nothing' : String(value));

/** Misreadings of builds and measurements: the GPU and the plug-ins (`Plugins`, from 10.16 on `Loaded static plugins`), echoed in trtexec's order. */
export function processMisreadings(
  { device, plugins }: TrtexecBuildRequest | TrtexecBenchRequest,
  { options: { system } }: TrtexecLog,
): readonly Misreading[] {
  const sorted = (paths: string | undefined) => paths?.trim().split(' ').sort().join(' ');
  return differing([
    ['--device', device, system.Device],
    [
      '--staticPlugins',
      sorted(plugins.static.join(' ')) ?? '',
      sorted(system.Plugins ?? system['Loaded static plugins']),
    ],
  ]);
}
