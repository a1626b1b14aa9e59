import { describe, expect, test } from 'vitest';
import type { BackEnd } from '../../../src/engines/runtime/back-end.js';
import { quantizedFormatNamed } from '../../../src/formats/precision/formats/index.js';
import { runAnswer } from '../../../src/quality/known-answer/build-or-load.js';
import { recordAnswer, withMeasured } from '../../../src/quality/known-answer/record.js';
import type { VerifyRequest } from '../../../src/quality/verify/options.js';
import type { VerifyPrecision } from '../../../src/quality/verify/result.js';
import { kinds } from '../../models/kinds.js';
import { brokenPromises, type Judged, judgeKind, type Trial } from '../verify/mutation-suite.js';

/** As an engine proves itself at load: the answer is recorded of the reference, of codes with what they are off where it is built. */
async function byAnswer(
  { reference, candidate, precision: asked }: VerifyRequest,
  backEnd: BackEnd,
  { name }: Pick<Trial, 'name'>,
): Promise<Judged> {
  const precision = asked ?? (name as VerifyPrecision);
  const context = { backEnds: [backEnd] };
  const own = await recordAnswer({ reference, precision, profiles: [] }, context);
  const isCoded = quantizedFormatNamed(precision) !== undefined;
  const answer = isCoded ? withMeasured(own, null, (await runAnswer(candidate, own, context)).found) : own;
  const { checks } = await runAnswer(candidate, answer, context);
  const outcomes = checks.map(({ outcome }) => outcome);
  return {
    outcome: outcomes.includes('fail') ? 'fail' : outcomes.includes('inconclusive') ? 'inconclusive' : 'pass',
    reasons: checks.flatMap(({ reasons }) => reasons),
    used: {},
  };
}

// VERDICT_NETWORK: the seed of the weights.
describe('no healthy twin is taken for wrong at load', () => {
  test.each(kinds)(
    '$name',
    async (kind) => {
      const faults = new Set(kind.faults.map(({ name }) => name));
      const trials = await judgeKind(kind, {
        networkSeed: Number(process.env.VERDICT_NETWORK ?? 0),
        judge: byAnswer,
        chooses: (name) => !faults.has(name),
      });
      expect(trials.length).toBeGreaterThan(0);
      // What a conversion makes NaN of is no twin.
      const twins = trials.filter(({ what }) => what === 'twin');
      expect(brokenPromises(twins).map((text, at) => `${text} ${trials[at]?.reasons[0] ?? ''}`)).toEqual([]);
    },
    600_000,
  );
});
