import { isDeepStrictEqual } from 'node:util';
import { type Dtype, dtypes } from '../tensor/dtype.js';
import type { Assertion, Contract } from './contract.js';

/** The subjects of sentences. */
export interface SentenceSubjects {
  readonly tensors: readonly { readonly name: string; readonly dtype: Dtype | null }[];
  /** Numbers of the contract that sentences name: `cache_size`. */
  readonly numbers: Readonly<Record<string, number | null | undefined>>;
  /** The output that is called `state length` in them. */
  readonly stateLength: string | null;
}

/** Where a rule is about: a tensor's values, or the size of one of its dimensions. */
interface Subject {
  readonly tensor: string;
  readonly axis: number | null;
  readonly isInteger: boolean;
}

/** A rule without its name. */
type Rule = Assertion extends infer Each
  ? Each extends Assertion
    ? Omit<Each, 'id' | 'sentence'>
    : never
  : never;

const NUMBER = String.raw`(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|[a-z]\w*)`;
const form = (text: string) => new RegExp(`^${text.replaceAll('N', NUMBER)}$`, 'i');

/** Forms of a sentence after `must always be`: the first that fits makes the rule of its numbers; null where a form does not apply to the subject. */
const FORMS: readonly (readonly [RegExp, (subject: Subject, ...numbers: number[]) => Rule | null])[] = [
  [form('(?:==?|equals?(?: to)?|exactly)? ?N'), equal],
  [form('(?:>=|≥|at least|(?:no|not) less than) ?N'), (subject, low) => within(subject, low, null)],
  [form('(?:<=|≤|at most|up to|(?:no|not) more than) ?N'), (subject, high) => within(subject, null, high)],
  [form('(?:>|above|greater than|more than) ?N'), (subject, low) => beyond(subject, low + 1, null)],
  [form('(?:<|below|less than) ?N'), (subject, high) => beyond(subject, null, high - 1)],
  [form('(?:between|in|within|from)? ?\\[?N ?(?:,|to|and|\\.\\.) ?N\\]?'), within],
  [/^(?:non-?negative|(?:not|never)(?: be)? negative)$/i, (subject) => within(subject, 0, null)],
  [
    form(
      '(?:non-?decreasing|monotonic(?:ally)?(?: (?:increasing|non-?decreasing))?|(?:never|not) (?:shrinks?|decreases?))(?: until N)?',
    ),
    ({ tensor, axis }, until) =>
      axis === null ? { tensor, kind: 'monotonic', than: null, until: until ?? null } : null,
  ],
];

function equal({ tensor, axis }: Subject, value: number): Rule | null {
  if (axis === null) return { tensor, kind: 'equal', value };
  return Number.isInteger(value) ? { tensor, kind: 'dimension-equals', axis, value } : null;
}

function within({ tensor, axis }: Subject, min: number | null, max: number | null): Rule | null {
  return axis === null ? { tensor, kind: 'range', min, max } : null;
}

/** The ends of a range belong to it, so that `> 0` is one only of whole numbers. */
const beyond = (subject: Subject, min: number | null, max: number | null): Rule | null =>
  subject.isInteger ? within(subject, min, max) : null;

/** Words that change nothing about a rule, which holds in every step anyway. */
const MODAL =
  /^(?:(?:should|must|shall|will|has to|needs to) +)?(?:always +)?(?:(?:be|is|are|stays?|remains?) +)?(?:always +)?/i;
const EVERY_STEP = / *\b(?:for|in|at|after) (?:(?:all|each|every|streaming|the) )*(?:chunks?|steps?)$/i;

/**
 * The rules of sentences that are regular (`encoded_lengths == 1`, `y.shape[-1] must always be 3`, `NAME: should be >= 0 and non-decreasing until cache_size`),
 * less those in `known`; what is no rule is listed, a part of a sentence by itself.
 */
export function rulesOfSentences(
  sentences: readonly string[],
  subjects: SentenceSubjects,
  known: readonly Assertion[],
): Pick<Contract, 'assertions' | 'notExecutable'> {
  const assertions: Assertion[] = [];
  const notExecutable: Contract['notExecutable'][number][] = [];
  for (const sentence of sentences) {
    const [subject, said] = splitSentence(sentence, subjects);
    // Whole first: "between 0 and 16" is one form.
    const whole = subject === null ? null : ruleOf(subject, said, subjects);
    const parts = whole === null && subject !== null ? said.split(/ +and +|, +/) : [said];
    for (const part of parts) {
      const rule = subject === null ? null : (whole ?? ruleOf(subject, part, subjects));
      if (rule === null) {
        notExecutable.push({
          sentence: parts.length === 1 ? sentence : `${subject?.tensor} ${part}`,
          why: PROSE,
        });
        continue;
      }
      const isKnown = [...known, ...assertions].some(({ id: _, sentence: __, ...each }) =>
        isDeepStrictEqual(each, rule),
      );
      if (!isKnown) assertions.push({ ...rule, id: idOf(rule), sentence });
    }
  }
  return { assertions, notExecutable };
}

const PROSE =
  'it has no form of a rule, such as `NAME == 1`, `NAME >= 0` or `NAME.shape[-1] == 3`; rules under `assertions` of a trtforge.contract/1 file have all';

/** The subject of a sentence, and its statement. Python's spelling is read too: `assert np.all(outputs['y'] == 1), "…"`. */
function splitSentence(
  sentence: string,
  { tensors, stateLength }: SentenceSubjects,
): readonly [Subject | null, string] {
  const plain = sentence
    .trim()
    .replace(/^assert +/, '')
    .replace(/, *f?(["']).*\1$/, '')
    .replace(/[.;]$/, '')
    .replace(/\b(?:outputs?|inputs?|out|feeds)\[["']([^"']+)["']\]/g, '$1')
    .replace(/^(?:(?:np|numpy|torch)\.)?all\((.*)\)$/, '$1')
    .replace(/^\((.*)\)\.all\(\)$/, '$1')
    .replace(/^(\S+) *<= *(\S+) *<= *(\S+)$/, '$2 from $1 to $3');
  const names = [...tensors.map(({ name }) => [name, name] as const), ['state length', stateLength] as const];
  const [called, tensor] =
    names
      .filter(([name, of]) => of !== null && plain.startsWith(name) && !/^\w/.test(plain.slice(name.length)))
      .toSorted(([one], [other]) => other.length - one.length)[0] ?? [];
  if (called === undefined || tensor === undefined || tensor === null) return [null, plain];
  const rest = plain.slice(called.length);
  const axis = /^\.(?:shape\[|size\() *(-?\d+) *[\])]/.exec(rest);
  const dtype = tensors.find(({ name }) => name === tensor)?.dtype ?? null;
  return [
    {
      tensor,
      axis: axis === null ? null : Number(axis[1]),
      isInteger: dtype !== null && dtypes[dtype].kind === 'int',
    },
    rest
      .slice(axis?.[0].length ?? 0)
      .replace(/^ *:? */, '')
      .replace(EVERY_STEP, '')
      .replace(/ +/g, ' '),
  ];
}

function ruleOf(subject: Subject, said: string, { numbers }: SentenceSubjects): Rule | null {
  const plain = said.replace(MODAL, '').trim();
  for (const [pattern, rule] of FORMS) {
    const found = pattern.exec(plain);
    if (found === null) continue;
    const values = found
      .slice(1)
      .flatMap((text) => (text === undefined ? [] : [numbers[text.toLowerCase()] ?? Number(text)]));
    return values.some(Number.isNaN) ? null : rule(subject, ...values);
  }
  return null;
}

function idOf(rule: Rule): string {
  const { tensor, kind, ...values } = rule;
  return [tensor, kind, ...Object.values(values).map((value) => value ?? 'any')].join('-');
}
