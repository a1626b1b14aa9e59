import { checkDevice } from '../../addon/gpus.js';
import { flagOf, namesOf } from '../../base/options/option.js';
import { TrtforgeError } from '../../errors.js';
import type { WorkContext } from '../../events.js';
import { isEngineFile } from '../plan/header.js';
import { type BackEnd, type OpenedSession, type OpenOptions, openOptions } from './back-end.js';
import { onnxRuntimeCpu, onnxRuntimeCuda, onnxRuntimeTensorrt } from './onnxruntime/back-ends.js';
import { tensorrt } from './tensorrt/back-end.js';

export { onnxRuntimePlain } from './onnxruntime/back-ends.js';

/** Every back end; of those that take the same kind of file the first is the default. */
export const backEnds: readonly BackEnd[] = [tensorrt, onnxRuntimeCpu, onnxRuntimeCuda, onnxRuntimeTensorrt];

/** The values of `provider`. */
export const providers: readonly string[] = backEnds.flatMap(({ provider }) => provider ?? []);

/**
 * Opens an engine or a model with the back end for it: chosen by the first bytes of the file (a plan, or else a model), then by `provider`.
 * Throws what `chooseBackEnd` and loading throw.
 */
export async function openSession(
  path: string,
  options: OpenOptions = {},
  context: WorkContext = {},
  among: readonly BackEnd[] = backEnds,
): Promise<OpenedSession> {
  return chooseBackEnd(path, options, among).open(path, options, context);
}

/** Waits for sessions that open at the same time. Where one cannot be opened the others are closed, and the first error is thrown. */
export async function openTogether<T extends readonly { close(): Promise<void> }[]>(
  opening: { readonly [K in keyof T]: Promise<T[K]> },
): Promise<T> {
  const outcomes = await Promise.allSettled(opening);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  const opened = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
  if (failed === undefined) return opened as unknown as T;
  await Promise.all(opened.map((session) => session.close()));
  throw failed.reason;
}

/**
 * The back end that `openSession` would take, without loading anything. Throws TF_USAGE for an option that it does not honour (`details.option`), a
 * provider that there is not, and a device that is no ordinal; TF_FILE_… for a file that cannot be read.
 */
export function chooseBackEnd(
  path: string,
  options: OpenOptions = {},
  among: readonly BackEnd[] = backEnds,
): BackEnd {
  const kind = isEngineFile(path) ? 'engine' : 'model';
  const able = among.filter(({ takes }) => takes === kind);
  const { provider } = options;
  const chosen =
    able.find((each) => provider !== undefined && each.provider === provider) ??
    able.find((each) => provider === undefined || each.provider === null);
  if (chosen === undefined) {
    const known = able.flatMap((each) => each.provider ?? []);
    throw new TrtforgeError(
      'TF_USAGE',
      `No back end runs ${path} with ${flagOf(openOptions.provider)} ${provider}.`,
      {
        remedy: `Pass one of: ${known.join(', ')}.`,
        details: { option: flagOf(openOptions.provider), known },
      },
    );
  }
  checkDevice(options.device);
  const rejected = requestedOptions(options).find((name) => !chosen.honours.has(name));
  if (rejected === undefined) return chosen;
  const flag = flagOf(openOptions[rejected]);
  const others = among.filter(({ honours }) => honours.has(rejected));
  throw new TrtforgeError('TF_USAGE', `${flag} has no effect on ${path}, which ${chosen.name} runs.`, {
    remedy: `Remove ${flag}: it is for ${others.map(describe).join(' and ')}.`,
    details: { option: flag, backEnd: chosen.id, honouredBy: others.map(({ id }) => id) },
  });
}

const requestedOptions = (options: OpenOptions): readonly (keyof OpenOptions)[] =>
  namesOf(openOptions).filter((name) => {
    const value = options[name];
    return (
      value !== undefined &&
      value !== false &&
      !(typeof value === 'object' && Object.keys(value).length === 0)
    );
  });

const describe = ({ name, takes, provider }: BackEnd): string =>
  `${takes}s on ${name}${provider === null ? '' : ` (${flagOf(openOptions.provider)} ${provider})`}`;
