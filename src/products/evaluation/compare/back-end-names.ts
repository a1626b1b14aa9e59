import type { BackEnd, OpenOptions } from '../../../engines/runtime/back-end.js';
import { isOrtProvider, optionsFor } from '../../../engines/runtime/onnxruntime/provider-options.js';
import { backEnds } from '../../../engines/runtime/open-session.js';
import { TrtforgeError } from '../../../errors.js';

/** The short name of a back end: `ort-cpu`, `ort-cuda`, `trt`. */
export const backEndName = ({ id }: BackEnd): string =>
  id.replace('onnxruntime', 'ort').replace('tensorrt', 'trt');

/** Every back end of the registry, in its order. */
export const backEndNames = (): readonly string[] => backEnds.map(backEndName);

/** Throws TF_USAGE for a name that no back end has. */
export function backEndNamed(name: string): BackEnd {
  const found = backEnds.find((each) => backEndName(each) === name);
  if (found !== undefined) return found;
  throw new TrtforgeError('TF_USAGE', `No back end is called "${name}".`, {
    remedy: `Pass some of: ${backEndNames().join(', ')}.`,
    details: { option: '--backends', known: backEndNames() },
  });
}

/** The options that this back end honours, those of its provider, and the provider. */
export function openOptionsFor(backEnd: BackEnd, options: OpenOptions): OpenOptions {
  const honoured = Object.entries(options).filter(([name]) => backEnd.honours.has(name as keyof OpenOptions));
  const { provider } = backEnd;
  const { providerOptions, ...others }: OpenOptions = Object.fromEntries(honoured);
  if (provider === null) return others;
  const own = isOrtProvider(provider) ? optionsFor(provider, providerOptions ?? {}) : (providerOptions ?? {});
  return { ...others, provider, ...(Object.keys(own).length === 0 ? {} : { providerOptions: own }) };
}
