import { shellWord } from '../../base/process/shell-word.js';
import { quotedName } from '../../engines/store/build-args.js';
import type { CompareRequest } from './compare-request.js';
import { checkText, toleranceText } from './option-text.js';

/** The command line that compares the same thing again. */
export function compareCommand(request: CompareRequest): string {
  const words = ['trtforge', 'compare', request.candidate, request.reference];
  const add = (option: string, value: string | undefined) => {
    if (value !== undefined) words.push(option, value);
  };
  const flag = (option: string, isSet: boolean | undefined) => {
    if (isSet === true) words.push(option);
  };
  add('--precision', request.precision);
  for (const tolerance of request.atol ?? []) add('--atol', toleranceText(tolerance));
  for (const tolerance of request.rtol ?? []) add('--rtol', toleranceText(tolerance));
  for (const check of request.checks ?? []) add('--check', checkText(check));
  for (const [ours, theirs] of request.names ?? []) add('--map', `${ours}=${theirs}`);
  for (const name of request.outputs ?? []) add('--outputs', quotedName(name));
  add('--runner-a', request.candidateRunner);
  add('--runner-b', request.referenceRunner);
  add('--void-type', request.voidDtype);
  flag('--allow-dtype-difference', request.allowDtypeDifference);
  flag('--strict-non-finite', request.strictNonFinite);
  flag('--allow-loose', request.allowLoose);
  return words.map(shellWord).join(' ');
}
