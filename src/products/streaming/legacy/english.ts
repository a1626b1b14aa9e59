import type { Assertion, Contract } from '../contract/contract.js';

interface ContractFacts {
  readonly tensors: readonly string[];
  /** The number that `cache_size` and `capacity` stand for; null when unknown. */
  readonly capacity: number | null;
  readonly stateIn: string | null;
}

interface Understood {
  readonly assertions: readonly Assertion[];
  readonly notExecutable: Contract['notExecutable'];
}

/** What a sentence is about. */
interface Subject {
  readonly tensor: string;
  /** The sentence is about a dimension, not about values. */
  readonly axis: number | null;
}

/**
 * Turns the English assertions of contracts ("Should be >= 0 and non-decreasing until cache_size") into executable ones, clause by clause. What is not
 * understood, or states only what is usual, is listed with the reason; nothing is guessed.
 */
export function executableOf(
  sentences: readonly { readonly about: string; readonly sentence: string }[],
  facts: ContractFacts,
): Understood {
  const assertions: Assertion[] = [];
  const notExecutable: Contract['notExecutable'][number][] = [];
  for (const { about, sentence } of sentences) {
    const subject = subjectOf(about, sentence, facts.tensors);
    if (subject === null) {
      notExecutable.push({ sentence: `${about}: ${sentence}`, why: 'it names no tensor of the contract' });
      continue;
    }
    for (const clause of clausesOf(sentence)) {
      const made = assertionOf(clause, subject, sentence, facts);
      if ('why' in made) notExecutable.push({ sentence: `${about}: ${clause}`, why: made.why });
      else assertions.push(made);
    }
  }
  return { assertions, notExecutable };
}

const DIMENSION = /[_. ]?(?:time|last)[_ ]dim(?:ension)?$/i;

function subjectOf(about: string, sentence: string, tensors: readonly string[]): Subject | null {
  const isDimension = DIMENSION.test(about) || /\b(?:time|last) dim|\.shape\[-1\]/i.test(sentence);
  const axis = isDimension ? -1 : null;
  const stem = about.replace(DIMENSION, '');
  if (tensors.includes(stem)) return { tensor: stem, axis };
  const named = tensors
    .filter((tensor) => new RegExp(`(?<![\\w.])${escaped(tensor)}(?!\\w)`).test(`${about} ${sentence}`))
    .sort((a, b) => b.length - a.length)[0];
  return named === undefined ? null : { tensor: named, axis };
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** "between 0 and 256" is one clause. */
const clausesOf = (sentence: string): readonly string[] =>
  sentence
    .replace(/\bbetween\s+(-?\d+)\s+and\s+(-?\d+|\w+)/gi, '$1..$2')
    .replace(/\s+(?:when|if)\s+\S+\s*(?:=|<|>|<=|>=|==)\s*\S+.*$/i, '')
    .split(/\s+and\s+|;|,(?=\s)/i)
    .map((clause) => clause.trim().replace(/\.$/, ''))
    .filter((clause) => clause !== '');

const NUMBER = '(-?\\d+|cache_size|capacity)';
const VAGUE = /\b(?:typically|usually|normally|often|about|roughly|expected to|ideally)\b/i;

function assertionOf(
  clause: string,
  { tensor, axis }: Subject,
  sentence: string,
  { capacity, stateIn }: ContractFacts,
): Assertion | { readonly why: string } {
  if (VAGUE.test(clause)) return { why: 'it states what is usual, not what must be' };
  const value = (text: string | undefined): number | null =>
    text === undefined ? null : /^-?\d+$/.test(text) ? Number(text) : capacity;
  const base = { tensor, sentence: sentence.includes(tensor) ? sentence : `${tensor}: ${sentence}` };
  const range = rangeIn(clause, value);
  if (/non-?decreasing|not (?:shrink|decrease)|never (?:shrinks|decreases)|monoton/i.test(clause)) {
    const until = /until\s+(?:it (?:is|reaches)\s+)?(\w+)/i.exec(clause)?.[1];
    const end = until === undefined ? null : value(/^\d+$/.test(until) ? until : 'capacity');
    const than = /_len(?:gth)?s?(?:_\w+)?$/.test(tensor) ? stateIn : null;
    return { ...base, id: `${tensor}-grows`, kind: 'monotonic', than, until: end };
  }
  if (range === null) return { why: 'no rule for it is known' };
  if (Number.isNaN(range.min) || Number.isNaN(range.max))
    return { why: 'the contract does not have the size of the state' };
  if (axis !== null) {
    if (range.min === null || range.min !== range.max)
      return { why: 'a dimension can be compared with one number only' };
    return { ...base, id: `${tensor}-time-${range.min}`, kind: 'dimension-equals', axis, value: range.min };
  }
  if (range.min !== null && range.min === range.max)
    return { ...base, id: `${tensor}-equal-${range.min}`, kind: 'equal', value: range.min };
  return { ...base, id: `${tensor}-range`, kind: 'range', ...range };
}

/** The values a clause allows; NaN for an end that it names and that is not known; null when it names none. */
function rangeIn(
  clause: string,
  value: (text: string | undefined) => number | null,
): { readonly min: number | null; readonly max: number | null } | null {
  const found = (pattern: string): RegExpExecArray | null => new RegExp(pattern, 'i').exec(clause);
  const known = (text: string | undefined): number => value(text) ?? Number.NaN;
  const within = found(`${NUMBER}\\s*(?:\\.\\.|to)\\s*${NUMBER}`);
  if (within !== null) return { min: known(within[1]), max: known(within[2]) };
  const least = found(`(?:>=|≥|at least|no(?:t)? less than)\\s*${NUMBER}`);
  if (least !== null) return { min: known(least[1]), max: null };
  const most = found(`(?:<=|≤|at most|no(?:t)? more than|not exceed)\\s*${NUMBER}`);
  if (most !== null) return { min: null, max: known(most[1]) };
  const equal = found(
    `(?:equals?(?: to)?|(?:must|should|shall)(?: always)? be|is(?: always)?|always(?: be)?|==|=)\\s*${NUMBER}\\b`,
  );
  if (equal !== null) return { min: known(equal[1]), max: known(equal[1]) };
  return null;
}
