import { shellWord } from '../../base/process/shell-word.js';
import { engineWords } from '../runtime/tensorrt/engine-options.js';
import { quotedName, shapeText } from '../store/build-args.js';
import type { RunRequest } from './run-request.js';

/** The command line that runs the same thing again, with everything spelled out that decides it. */
export function repeatRun(request: RunRequest): string {
  const words = ['trtforge', 'run', request.file];
  const add = (option: string, value: string | number | undefined) => {
    if (value !== undefined) words.push(option, String(value));
  };
  for (const source of request.sources) {
    if (source.kind === 'random') add('--inputs', 'random');
    else words.push(source.kind === 'tensor' ? `${quotedName(source.name)}=@${source.path}` : source.path);
  }
  add('--seed', request.seed);
  for (const [name, dims] of request.shapes ?? []) add('--shapes', shapeText(name, dims));
  for (const { name, low, high } of request.ranges ?? [])
    add('--val-range', `${name === null ? '' : `${quotedName(name)}:`}[${low},${high}]`);
  add('--iterations', request.iterations);
  add('--profile', request.profile);
  add('--provider', request.provider);
  add('--device', request.device);
  words.push(...engineWords(request));
  add('--threads', request.threads);
  add('-o', request.output);
  return words.map(shellWord).join(' ');
}
