import { z } from 'zod';
import { TrtforgeError } from '../../errors.js';
import { valuesAt } from './field-path.js';
import { type GateInput, readResults } from './gate-input.js';
import { numberOf } from './limit.js';
import { ownOutcome } from './own-outcome.js';
import { OWN_OUTCOME } from './result.js';

/** The result of `gate init`: a policy to begin with. */
export const draftedPolicySchema = z.object({
  schema: z.literal('trtforge.gate-init/1'),
  /** The YAML file's content. */
  policy: z.string(),
  /** Where it was written; null where it was only printed. */
  output: z.string().nullable(),
  results: z.array(z.string()),
  checks: z.int().nonnegative(),
});

export interface DraftedPolicy extends z.infer<typeof draftedPolicySchema> {}

interface Measure {
  readonly field: string;
  readonly why: string;
  readonly unit?: string;
  readonly better?: 'higher';
}

/** The measures in results of any command: a result that has the field gets the check. */
const MEASURES: readonly Measure[] = [
  { field: 'failures.length', why: 'Samples, runs or tensors of chunks that failed.' },
  { field: 'drift.max', why: 'The largest error of the main output over the stream.' },
  { field: 'drift.p95', why: '95 % of the chunks are this close or closer.' },
  { field: 'drift.mean', why: 'The mean error over all chunks.' },
  {
    field: 'outputs[*].nonFinite.candidate',
    why: 'NaN and infinities have no error that could be above a limit.',
  },
  {
    field: 'times.rest.total.p95',
    unit: 'ms',
    why: '95 % of the chunks, the first of each size apart, take less.',
  },
  { field: 'gpuMs.median', unit: 'ms', why: 'The time of one inference on the GPU.' },
  { field: 'gpuMs.p99', unit: 'ms', why: '99 % of the inferences take less on the GPU.' },
  { field: 'endToEndMs.p99', unit: 'ms', why: '99 % of the inferences take less, copies included.' },
  { field: 'itemsPerSecond', unit: 'items/s', better: 'higher', why: 'What the batches come to.' },
  {
    field: 'peakGpuStreams',
    unit: 'streams',
    better: 'higher',
    why: 'How many video streams the GPU serves.',
  },
  { field: 'drop.metric', why: 'How much worse the metric is than that of FP32.' },
  { field: 'diverging', why: 'Tensors beyond the limits of verify.' },
  {
    field: 'tensors[*].error.sqnr',
    unit: 'dB',
    better: 'higher',
    why: 'Signal to noise of every tensor of both models.',
  },
  { field: 'bytes', unit: 'bytes', why: 'The size of the engine.' },
  { field: 'build.passport.plan.bytes', unit: 'bytes', why: 'The size of the engine.' },
];

/**
 * A commented policy whose limits are what these results measured: they pass it as far as their own outcome is a pass. Errors: TF_GATE_RESULT_INVALID,
 * TF_FILE_NOT_FOUND, TF_FILE_UNREADABLE, TF_USAGE.
 */
export function draftPolicy(files: readonly string[]): DraftedPolicy {
  const results = readResults(files);
  const ids = new Set<string>();
  const checks = results.flatMap((result) =>
    measuresOf(result).flatMap((measure) =>
      checkLines(result, measure, results.length === 1 ? '' : `${result.name}-`, ids),
    ),
  );
  const policy = [
    '# What the results reported when this policy was drafted is its limits: change each to what may still pass.',
    'schema: trtforge.gate-policy/1',
    '',
    'results:',
    ...results.flatMap((result) => selectionLines(result, results)),
    '',
    `# A result that itself reports fail or inconclusive never passes (${OWN_OUTCOME}); no check is needed for that.`,
    ...(ids.size === 0 ? ['checks: []'] : ['checks:', ...checks]),
    '',
    '# A known miss is excused by a waiver, which needs a reason and a last day:',
    '# waivers:',
    `#   - check: ${OWN_OUTCOME}`,
    '#     at: verdicts.numeric',
    '#     reason: why this may pass until then',
    '#     expires: 2027-01-31',
    '',
  ].join('\n');
  return {
    schema: 'trtforge.gate-init/1',
    policy,
    output: null,
    results: results.map(({ name }) => name),
    checks: ids.size,
  };
}

/** One of its schema is known by it wherever its file lies; several are distinguished by name. */
function selectionLines(result: GateInput, results: readonly GateInput[]): readonly string[] {
  const { name, schema } = result;
  const findings = ownOutcome(result).map(({ finding }) => finding);
  const error = findings.find(({ rule }) => rule === 'error-result');
  if (error !== undefined)
    throw new TrtforgeError('TF_GATE_RESULT_INVALID', error.message, {
      remedy: 'Run the command again until it has a result; an error has nothing to make limits of.',
    });
  const isOnly = schema !== null && results.filter((each) => each.schema === schema).length === 1;
  const parts = [
    ...(schema === null ? [] : [`schema: ${quoted(schema)}`]),
    ...(isOnly ? [] : [`name: ${plain(name)}`]),
  ];
  const bad = findings
    .filter(({ outcome }) => outcome !== 'pass')
    .map(({ at, outcome }) => `${at} ${outcome}`);
  return [
    ...(bad.length === 0 ? [] : [`  # It does not pass now: ${quoted(bad.join(', '))}`]),
    `  ${plain(name)}: { ${parts.join(', ')} }`,
  ];
}

/** Where a result holds that of another command: `forge` those of its steps. */
const PARTS = ['', 'verification.', 'engineVerification.', 'bench.'];

/** The measures that a result has, and what each check of `verify` and `compare` decided by, over all outputs. */
const measuresOf = ({ content }: GateInput): readonly Measure[] =>
  PARTS.flatMap((part) => [
    ...statisticsOf(content, part),
    ...MEASURES.map((each) => ({ ...each, field: `${part}${each.field}` })),
  ]);

function statisticsOf(content: unknown, part: string): readonly Measure[] {
  const checks = valuesAt(content, `${part}outputs[*].checks[*]`).map(({ value }) => value);
  const statistics = new Map<string, Measure>();
  for (const check of checks) {
    const statistic = valuesAt(check, 'statistic')[0]?.value;
    if (typeof statistic !== 'string' || !/^[\w %-]+$/.test(statistic)) continue;
    const isLeast = valuesAt(check, 'bound')[0]?.value === 'at-least';
    statistics.set(statistic, {
      field: `${part}outputs[*].checks[statistic='${statistic}'].measured`,
      why: `The check "${statistic}" of every output.`,
      ...(isLeast ? { better: 'higher' } : {}),
    });
  }
  return [...statistics.values()];
}

/** Nothing where the result has no such field, a value of it is NaN or not a number, which never passes, or none is a finite limit. */
function checkLines(
  { name, content }: GateInput,
  { field, why, unit, better }: Measure,
  prefix: string,
  ids: Set<string>,
): readonly string[] {
  const values = valuesAt(content, field).map(({ value }) => numberOf(value) ?? Number.NaN);
  const limit = better === 'higher' ? Math.min(...values) : Math.max(...values);
  if (!Number.isFinite(limit)) return [];
  const word = `${prefix}${field}`
    .replaceAll('[*]', '')
    .replaceAll(/[^\w.]+/g, '-')
    .replaceAll(/^[^A-Za-z0-9]+|-+$/g, '');
  let id = word;
  for (let again = 2; ids.has(id); again++) id = `${word}-${again}`;
  ids.add(id);
  const several =
    values.length > 1
      ? `the ${better === 'higher' ? 'least' : 'largest'} of ${values.length} now`
      : 'the value now';
  return [
    `  - id: ${id}`,
    `    why: ${quoted(why)}`,
    `    result: ${plain(name)}`,
    `    field: ${plain(field)}`,
    ...(unit === undefined ? [] : [`    unit: ${unit}`]),
    `    fail: { ${better === 'higher' ? 'below' : 'above'}: ${limit} } # ${several}${unit === undefined || unit === 'bytes' ? '' : '; measurements vary: leave room, or write a regression rule'}`,
  ];
}

/** JSON's strings are YAML's, and comments of one line. */
const quoted = (text: string): string => JSON.stringify(text);

/** Text without quotation marks where YAML reads it as text. */
const plain = (text: string): string =>
  /^[a-z][\w.-]*$/i.test(text) && !/^(?:true|false|null|yes|no|on|off|[yn])$/i.test(text)
    ? text
    : quoted(text);
