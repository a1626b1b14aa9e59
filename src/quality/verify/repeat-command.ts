import { shellWord } from '../../base/process/shell-word.js';
import { engineWords } from '../../engines/runtime/tensorrt/engine-options.js';
import { shapeText } from '../../engines/store/build-args.js';
import { prefix, toleranceText } from './option-text.js';
import type { VerifyRequest } from './request.js';

/** The command line that verifies the same thing again, with everything spelled out that decides it. */
export function repeatCommand(request: VerifyRequest): string {
  const { reference, candidate, precision, seed, samples, threads } = request;
  const words = ['trtforge', 'verify', candidate, '--against', reference];
  const add = (option: string, value: string | number | undefined) => {
    if (value !== undefined) words.push(option, String(value));
  };
  add('--precision', precision);
  add('--seed', seed);
  add('--samples', samples);
  for (const [name, dims] of request.shapes ?? []) add('--shapes', shapeText(name, dims));
  for (const { name, low, high } of request.ranges ?? [])
    add('--val-range', `${prefix(name)}[${low},${high}]`);
  for (const { name, path } of request.files ?? []) add('--inputs', `${name}=@${path}`);
  for (const tolerance of request.atol ?? []) add('--atol', toleranceText(tolerance));
  for (const tolerance of request.rtol ?? []) add('--rtol', toleranceText(tolerance));
  add('--device', request.device);
  words.push(...engineWords(request));
  add('--threads', threads);
  return words.map(shellWord).join(' ');
}
