import {
  type Comparable,
  comparedPart,
  differ,
  lacks,
  type Names,
  row,
} from '../../../report/comparison/compare.js';
import type { ComparedPair, ComparedPart } from '../../../report/comparison/result.js';
import { environmentDifferences, identityDifferences, modelParts } from '../../../report/comparison/runs.js';
import type { ChainCheck } from '../chain-schema.js';
import type { BundleReport, ComponentReport } from '../result.js';
import { agreementShare, bundleVerdict, isoTime } from './sentences.js';

/** Bundles side by side: each component as two runs of forge are, and the chained checks. */
export const comparableBundles: Comparable<BundleReport> = {
  side: ({ path, result }) => {
    const { outcome, headline } = bundleVerdict(result);
    return {
      run: path,
      startedAt: isoTime(result.started_utc),
      version: result.version,
      model: result.model_name ?? result.meta,
      precision: result.precision,
      target: result.target,
      outcome,
      headline,
      engine: null,
      identity: null,
    };
  },
  pair: (a, b, names) => {
    const components = pairsOf(a.components, b.components, ({ component }) => component);
    const checks = pairsOf(a.checks, b.checks, ({ candidate }) => candidate);
    return {
      identity: identityOf(components),
      environment: environmentDifferences(a, b),
      parts: [
        ...components.flatMap(([name, one, other]) => componentParts(name, one, other, names)),
        ...checks.flatMap(([name, one, other]) => chainPart(name, one, other, names) ?? []),
      ],
    };
  },
};

/** The entries of both sides, paired by name, in order. */
function pairsOf<T>(a: readonly T[], b: readonly T[], nameOf: (each: T) => string) {
  const find = (side: readonly T[], name: string) => side.find((each) => nameOf(each) === name) ?? null;
  return [...new Set([...a, ...b].map(nameOf))].map((name) => [name, find(a, name), find(b, name)] as const);
}

/** Of every component, under its name; null unless both sides have an engine of each. */
function identityOf(
  components: readonly (readonly [string, ComponentReport | null, ComponentReport | null])[],
): ComparedPair['identity'] {
  const each = components.map(([name, a, b]) => {
    const found = a?.forge && b?.forge ? identityDifferences(a.forge, b.forge) : null;
    return (
      found?.differences.map(({ field, ...values }) => ({ field: `${name}: ${field}`, ...values })) ?? null
    );
  });
  const differences = each.filter((one) => one !== null).flat();
  return each.includes(null) ? null : { equal: differences.length === 0, differences };
}

/** A component that a side lacks, or did not come to, has no figures but the size of the other's engine. */
function componentParts(
  name: string,
  a: ComponentReport | null,
  b: ComponentReport | null,
  names: Names,
): readonly ComparedPart[] {
  if (a?.forge && b?.forge) return modelParts(a.forge, b.forge, names, name);
  const sizes = row('size of the plan', 'bytes', a?.engine_bytes, b?.engine_bytes);
  const part = comparedPart('engine', [sizes], [lacks(`run of ${name}`, a?.forge, b?.forge, names)]);
  return part === null ? [] : [{ ...part, of: name }];
}

function chainPart(
  name: string,
  a: ChainCheck | null,
  b: ChainCheck | null,
  names: Names,
): ComparedPart | null {
  const share = (what: string, of: (check: ChainCheck) => number) =>
    row(what, 'share', a && of(a), b && of(b));
  const drift = (component: string) => (check: ChainCheck | null) =>
    check?.components.find((each) => each.component === component)?.relative_rms;
  const drifting = [...(a?.components ?? []), ...(b?.components ?? [])].map(({ component }) => component);
  const part = comparedPart(
    'accuracy',
    [
      share('tokens that agree', (check) => agreementShare(check.token_agreement, check)),
      share('durations that agree', (check) => agreementShare(check.duration_agreement, check)),
      share('equal sequences', ({ equal_sequences, samples }) => equal_sequences / samples),
      ...[...new Set(drifting)].map((component) =>
        row(
          `relative error of the logits, ${component} exchanged alone`,
          'error',
          drift(component)(a),
          drift(component)(b),
        ),
      ),
    ],
    a === null || b === null
      ? [lacks(`chained check of the ${name}`, a, b, names)]
      : [differ('The samples differ', samplesText(a), samplesText(b))],
  );
  return part && { ...part, of: `chained check of the ${name}` };
}

const samplesText = ({ samples, seed, frames }: ChainCheck): string =>
  `${samples} of seed ${seed}, ${frames} frames`;
