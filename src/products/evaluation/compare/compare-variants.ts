import { join } from 'node:path';
import { ExitCode, TrtforgeError } from '../../../errors.js';
import { defaultFormat } from '../../../formats/precision/formats/index.js';
import { pairOf } from '../../../quality/predictions/prediction.js';
import { packageVersion } from '../../../version.js';
import type { NotRun } from '../run/variant.js';
import { countEdits } from '../wer/edits.js';
import type { ComparedVariant, Comparison } from './result.js';
import { heardBy, type RecordedVariant } from './run-root.js';

/** The facts that only the run has. */
export interface ComparisonFacts {
  readonly root: string;
  /** Names of variants that ran now; the others were there already. */
  readonly ran: ReadonlySet<string>;
  /** Files within the root that should state a variant. */
  readonly damaged: readonly string[];
  readonly warnings: readonly string[];
  readonly repeat: string | null;
}

/** Compares what the folders of a run root state, at least one variant. */
export function compareVariants(
  recorded: readonly [RecordedVariant, ...RecordedVariant[]],
  { root, ran, damaged: files, warnings, repeat }: ComparisonFacts,
): Comparison {
  const [first] = recorded;
  const variants = recorded.map(({ variant: { schema, task, ...variant }, ...rest }): ComparedVariant => {
    const status = rest.figures === null ? 'not-run' : ran.has(variant.name) ? 'run' : 'kept';
    return { ...variant, ...rest, status };
  });
  const damaged = files.map((file) => ({ file, error: errorOf(damagedError(join(root, file))) }));
  const withFigures = variants.filter((each) => each.figures !== null);
  const [reference, ...others] = withFigures;
  const parts = reference === undefined ? [] : others.map((each) => accuracyOf(each, reference));
  const comparable = {
    accuracy: parts.flatMap(({ accuracy }) => accuracy ?? []),
    notCompared: parts.flatMap(({ notCompared }) => notCompared ?? []),
  };
  return {
    schema: 'trtforge.compare-backends/1',
    version: packageVersion(),
    root,
    task: first.variant.task,
    metric: reference?.figures?.metrics[0]?.name ?? '',
    variants,
    damaged,
    reference: reference?.name ?? null,
    ...comparable,
    ...(first.variant.task === 'wer' && { texts: textsApart(root, comparable.accuracy, variants) }),
    latency: withFigures.flatMap((each) => latencyOf(each, withFigures)),
    warnings: [...warnings],
    repeat,
    exitCode: exitCodeOf([...variants, ...damaged], comparable.notCompared.length),
  };
}

/** The error recorded for a variant without figures. */
export const errorOf = ({ code, message, remedy, exitCode }: TrtforgeError): NotRun['error'] => ({
  code,
  message,
  remedy,
  exitCode,
});

export const damagedError = (path: string): TrtforgeError =>
  new TrtforgeError('TF_EVAL_DATA', `${path} is damaged: it does not state a variant.`, {
    remedy:
      'Run the same compare-backends with -o and this run root, which evaluates it again; or remove its folder.',
  });

interface AccuracyPart {
  readonly accuracy?: Comparison['accuracy'][number];
  readonly notCompared?: Comparison['notCompared'][number];
}

function accuracyOf(each: ComparedVariant, reference: ComparedVariant): AccuracyPart {
  const names = { variant: each.name, reference: reference.name };
  if (each.figures?.comparabilityKey !== reference.figures?.comparabilityKey)
    return { notCompared: { ...names, why: whyNot(each, reference) } };
  const [metric, other] = [each.figures?.metrics[0], reference.figures?.metrics[0]];
  if (typeof metric?.value !== 'number' || typeof other?.value !== 'number')
    return { notCompared: { ...names, why: `${metric?.name ?? 'the metric'} was not scored` } };
  const drop = metric.higherIsBetter ? other.value - metric.value : metric.value - other.value;
  const relativeDrop = other.value === 0 ? null : drop / other.value;
  return {
    accuracy: { ...names, metric: metric.name, value: metric.value, of: other.value, drop, relativeDrop },
  };
}

/** In one run root the data is the same; what differs is what a model itself decides. */
const whyNot = ({ figures }: ComparedVariant, { figures: other }: ComparedVariant): string =>
  figures?.dataDigest === other?.dataDigest
    ? 'their comparability keys differ: settings, for one the size of the input, are not the same'
    : 'they were scored on different data';

const HALF = defaultFormat.id;

/** Criteria of quantisation compare with FP16: what is quantised is a candidate. */
function latencyOf(each: ComparedVariant, all: readonly ComparedVariant[]): Comparison['latency'] {
  if (each.role !== 'candidate' || each.label === HALF) return [];
  const reference = all.find(
    ({ label, backEnd, machine }) => label === HALF && backEnd === each.backEnd && machine === each.machine,
  );
  const [ms, of] = [each.figures?.latency?.median_ms, reference?.figures?.latency?.median_ms];
  return reference === undefined || ms === undefined || of === undefined || of === 0
    ? []
    : [{ variant: each.name, reference: reference.name, medianMs: ms, of, share: ms / of }];
}

/** That of the worst reason why a variant has no figures; inconclusive where figures could not be compared. */
function exitCodeOf(
  variants: readonly Pick<ComparedVariant, 'error'>[],
  notCompared: number,
): Comparison['exitCode'] {
  const codes = new Set(variants.flatMap(({ error }) => (error === null ? [] : [error.exitCode])));
  const worst = [ExitCode.internal, ExitCode.badInput, ExitCode.machineCannot].find((code) =>
    codes.has(code),
  );
  const rest = codes.size + notCompared > 0 ? ExitCode.inconclusive : ExitCode.pass;
  return worst ?? rest;
}

/** Utterances of a variant that the page shows. */
const MOST_SHOWN = 12;

/** The utterances of which variants heard other words than the reference that they are compared with, by the scores that their folders have. */
function textsApart(
  root: string,
  pairs: Comparison['accuracy'],
  variants: readonly ComparedVariant[],
): NonNullable<Comparison['texts']> {
  const heard = new Map(variants.map((each) => [each.name, heardBy(root, each)]));
  return pairs.map(({ variant, reference }) => {
    const ours = new Map(heard.get(variant)?.map(({ id, text }) => [id, text]));
    const apart = (heard.get(reference) ?? []).flatMap(({ id, text, file, sha256 }, sample) => {
      const other = ours.get(id);
      if (other === undefined || other === text) return [];
      const edits = countEdits(text.split(' '), other.split(' '));
      const turned =
        edits === null
          ? {}
          : { lost: edits.substitutions + edits.deletions, new: edits.substitutions + edits.insertions };
      const pair = pairOf({ kind: 'text', text }, { kind: 'text', text: other });
      return [{ sample, file, sha256, size: null, share: null, ...pair, ...turned }];
    });
    const samples = apart.toSorted((a, b) => b.lost + b.new - a.lost - a.new).slice(0, MOST_SHOWN);
    return { variant, differ: apart.length, samples };
  });
}
