import type { ExplainedIssue, ModelPlace } from '../explained-issue.js';

export { tensorrtIssue } from '../../../behaviour/facts.js';

/** One thing that goes wrong with TensorRT and is known: how it looks in a log, why it happens, what helps. */
export interface KnownIssue {
  /** Stable, kebab-case; scripts match on it. */
  readonly id: string;
  /**
   * `error`: the work fails or its result is wrong. `warning`: it works, worse than it could. `note`: harmless, listed because it looks alarming.
   * TensorRT's own `[E]` does not decide: it prints `[E]` for tactics it only skips.
   */
  readonly severity: 'error' | 'warning' | 'note';
  /** Matched against one line of the log. Named groups may be used in cause and remedy as `{name}`. */
  readonly pattern: RegExp;
  /** First and last TensorRT major the issue belongs to, where the same text means something else elsewhere. */
  readonly majors?: readonly [number, number];
  readonly cause: string;
  readonly remedy: string;
  /** Steps of `trtforge edit` that cure it, with named groups as above; `{sizes}`: what fixes the open dimensions of the model. */
  readonly edit?: string;
  /** A line that takes the issue back wherever in the log it stands: what it fears is then known not to be so. */
  readonly unless?: RegExp;
  /** A run passes with it and is wrong nevertheless. Any other error is a warning where the run went well all the same. */
  readonly hiddenBySuccess?: true;
  /** It reports where the model is rejected and not why: what `inspect` finds of the model stands in its place. */
  readonly isPlace?: true;
  /** Issues of which this one is the mere consequence where the same log shows one of them: it is a note then, and that one has the remedy. */
  readonly follows?: readonly string[];
  /** The meaning of the same lines where another issue follows from them. */
  readonly whenFollowed?: Pick<KnownIssue, 'severity' | 'cause' | 'remedy'>;
  /** The meaning of the same lines in a run that succeeded, where that is something else. */
  readonly whenPassed?: Pick<KnownIssue, 'severity' | 'cause' | 'remedy'>;
  /** Where it has been seen: `all`, `10.14.1 to 10.16.1`, `before 10.11`. */
  readonly versions: string;
  /** Where it is reported: a public thread or document, or `measured` for what trtforge's own fixtures show. */
  readonly source: string;
}

/** The builder of an engine, as far as silent issues depend on it. */
export interface SilentlyBuilt {
  readonly product: 'tensorrt' | 'tensorrt-rtx';
  /** As far as it is known: `10.6.0`. */
  readonly version: string;
}

const RANK = { error: 0, warning: 1, note: 2 } as const;

/** The worst first; equals stay as they came. Apart from the schema of issues, since every command loads this and few load zod. */
export const inOrder = (issues: readonly ExplainedIssue[]): ExplainedIssue[] =>
  issues.toSorted((one, other) => RANK[one.severity] - RANK[other.severity]);

/** Number of operators and nodes that a sentence names. */
const NAMED = 6;

/** The place in the model that an issue names, in sentences; none without a place. */
export function placeSentences(place: ModelPlace | null): string[] {
  if (place === null) return [];
  return [
    whatIsThere(place),
    ...place.suspects.map(({ nodes, why }) => `Look at ${nodes.join(', ')}: ${why}`),
  ];
}

function whatIsThere({ found, total, nodes, operators }: ModelPlace): string {
  const [first] = nodes;
  if (first !== undefined && total === 1) {
    const inputs = first.inputs.map(
      ({ name, dtype, shape }) => `${name} (${dtype ?? '?'} ${shapeText(shape)})`,
    );
    const takes = inputs.length === 0 ? '' : ` and takes ${inputs.slice(0, NAMED).join(', ')}`;
    return `In the model that is ${first.name}: it is a ${first.operator}${takes}.`;
  }
  const types = Object.entries(operators).map(([type, count]) => `${count} ${type}`);
  const more = types.length > NAMED ? ` and ${types.length - NAMED} more types` : '';
  const which =
    found === 'name'
      ? `these are ${total} nodes`
      : found === 'path'
        ? `${total} nodes lie on the way`
        : `no path joins the two; ${total} nodes stand between them`;
  return `In the model ${which}: ${types.slice(0, NAMED).join(', ')}${more}.`;
}

const shapeText = (shape: ModelPlace['nodes'][number]['inputs'][number]['shape']): string =>
  shape === null ? 'of unknown shape' : `[${shape.map((dimension) => dimension ?? '?').join(', ')}]`;

/** A line that the parser prints below an error: the code and the reason of each step that failed. */
export const REASON = /^\[\d{1,3}\] \S/;
