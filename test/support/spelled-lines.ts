import { longName } from '../../src/base/options/option.js';
import { everyVerb } from './trtforge.js';

const verbs = new Map((await everyVerb()).map(({ path, command }) => [path, command]));
const firsts = new Set([...verbs.keys()].map((path) => path.split(' ')[0] ?? path));
/** What every verb takes. */
const EVERYWHERE = ['json', 'events', 'quiet', 'verbose', 'config', 'print-config', 'force', 'help'];

/**
 * What is wrong with the command lines of trtforge in a text: a verb that its family lacks, and long options that the verb does not take on the command line.
 * A line ends with what surrounds it in a sentence or with the line of text; words after «trtforge» that are no verb are prose.
 */
export function wrongLines(text: string): readonly string[] {
  const lines = /\btrtforge ([a-z][a-z-]*)\b(?: ([a-z][a-z-]*)(?![\w.:/]))?((?:[^`'"|;>,)\n]|,(?! ))*)/g;
  return [...text.matchAll(lines)].flatMap(([line, first = '', second = '', rest = '']) => {
    const command = verbs.get(`${first} ${second}`) ?? verbs.get(first);
    if (command === undefined) return firsts.has(first) && second !== '' ? [line] : [];
    const known = Object.values(command.options).flatMap((spec) => (spec.configOnly ? [] : [longName(spec)]));
    // Behind -- stands the line of another program.
    const [own = ''] = rest.split(' -- ');
    const options = [...own.matchAll(/(?<= )--([a-zA-Z][a-zA-Z-]*)/g)].map((match) => match[1] ?? '');
    const wrong = options.filter((option) => ![...known, ...EVERYWHERE].includes(option));
    return wrong.length === 0 ? [] : [`${line.trim()}: no --${wrong.join(', --')}`];
  });
}
