import type { z } from 'zod';

/** The fault of a document that is to be corrected first. */
export interface SchemaFault {
  /** Where it stands, from the document's root. */
  readonly place: readonly PropertyKey[];
  /** A key that the schema lacks; `place` is then the object that has it. */
  readonly unknownKey: string | null;
  /** A clause about what stands there: `it is missing`, `number is expected here, not string`. */
  readonly why: string;
}

/** The problem to correct first of all that a schema found. */
export function schemaFault(error: z.ZodError): SchemaFault {
  const issues = error.issues.map(deepest);
  // A misspelt key is also a missing one; the misspelling is what to correct.
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0];
  const unknownKey = issue?.code === 'unrecognized_keys' ? (issue.keys[0] ?? '') : null;
  return {
    place: issue?.path ?? [],
    unknownKey,
    why: unknownKey === null ? complaint(issue) : `"${unknownKey}" is not a known key`,
  };
}

/** The same in one line, cut where a document's own text would make it endless: `"components.encoder": it is missing`. */
export function faultText(error: z.ZodError): string {
  const { place, why } = schemaFault(error);
  return `${place.length === 0 ? '' : `"${place.map(String).join('.')}": `}${why}`.slice(0, LONGEST);
}

const LONGEST = 400;

/** zod's message about a value, as a clause about a document. */
function complaint(issue: z.core.$ZodIssue | undefined): string {
  const { message = 'it is not valid' } = issue ?? {};
  const [, expected, received] =
    /^Invalid (?:input|option): expected (?:one of )?(.+?)(?:, received (.+))?$/.exec(message) ?? [];
  // A sentence of a schema's own; what it stands in ends it.
  if (expected === undefined) return message.replace(/\.$/, '');
  if (received === 'undefined') return 'it is missing';
  const plain = (type: string) => TYPES[type] ?? type;
  const wanted = plain(expected.replaceAll('"|"', '" or "'));
  return received === undefined
    ? `${wanted} is expected here`
    : `${wanted} is expected here, not ${plain(received)}`;
}

/** The parts of a document by zod's names, as the document's author knows them. */
const TYPES: Readonly<Record<string, string>> = {
  record: '`name: value` entries',
  object: '`name: value` entries',
  array: 'a list',
  string: 'text',
  number: 'a number',
  boolean: 'true or false',
  null: 'nothing',
};

/** Of a key what is wrong with it; of a union's complaints the one that got furthest: the branch that was meant. A schema's own message for all of it is preferred. */
function deepest(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code === 'invalid_key') return { ...issue, message: issue.issues[0]?.message ?? issue.message };
  if (issue.code !== 'invalid_union' || issue.message !== 'Invalid input') return issue;
  const inner = issue.errors
    .flat()
    .map((each) => ({ ...deepest(each), path: [...issue.path, ...each.path] }))
    .find((each) => each.code === 'unrecognized_keys' || each.path.length > issue.path.length);
  return inner ?? issue;
}
