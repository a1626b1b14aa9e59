import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Contract } from '../../../../src/formats/contract/contract.js';
import { readContract } from '../../../../src/formats/contract/file.js';
import { checkOwnNumbers } from '../../../../src/products/streaming/check/own-numbers.js';

const FIXTURES = join(import.meta.dirname, '../../../fixtures/contracts');

describe('a contract against its own numbers', () => {
  const valid = readContract(join(FIXTURES, 'batch-first.contract.json'));
  const found = (changes: Partial<Contract>) =>
    checkOwnNumbers({ ...valid, ...changes }).map(({ id, wrong, message }) => ({ id, wrong, message }));

  test('a valid one has no findings', () => {
    expect(found({})).toEqual([]);
  });

  test('an assertion of empty state is the contract’s own mistake where the rule makes it grow', () => {
    const assertion = {
      id: 'isolated',
      tensor: 'cache_last_channel_len_out',
      sentence: 'Chunks are isolated.',
      kind: 'equal',
      value: 0,
    } as const;
    const [finding] = checkOwnNumbers({ ...valid, assertions: [assertion] });
    expect(finding).toMatchObject({ id: 'assertion-against-rule', wrong: 'contract', severity: 'error' });
    expect(finding?.message).toContain('[1] where 0 was promised');
    expect(finding?.why).toContain('1, 4, 7, 10, 13, 16');
    expect(finding?.remedy).toContain('never shrinks');
  });

  test('a wrong number of valid steps is named with the right one', () => {
    const findings = checkOwnNumbers({ ...valid, cacheLengthRule: { capacity: 16, dropExtra: 2, drop: 4 } });
    expect(findings.map(({ id, about }) => [id, about])).toEqual([
      ['assertion-against-rule', 'encoded_lengths'],
    ]);
    expect(findings[0]?.remedy).toContain('to 2');
  });

  test('more is dropped than comes in', () => {
    const rule = { capacity: 16, dropExtra: 2, drop: 72 };
    const [finding] = checkOwnNumbers({ ...valid, cacheLengthRule: rule });
    expect(finding).toMatchObject({ id: 'negative-length', wrong: 'contract' });
    expect(finding?.message).toContain('-68');
  });

  test('the legacy contract: empty with the sizes it names, growing with the ones its numbers make', () => {
    const legacy = readContract(join(FIXTURES, 'layer-first.contract.json'));
    expect(legacy.schedule).toMatchObject({ first: 577, rest: 593, stated: [592, 584] });
    expect(checkOwnNumbers(legacy).map(({ id }) => id)).toEqual(
      expect.arrayContaining(['sizes-disagree', 'schedule-outside-profiles', 'negative-length']),
    );
    const asStated = { ...legacy, schedule: { ...legacy.schedule!, first: 592, rest: 592, stated: [] } };
    const isolated = checkOwnNumbers({ ...asStated, profiles: [], assertions: [] });
    expect(isolated).toMatchObject([{ id: 'state-never-grows', severity: 'warning' }]);
    expect(isolated[0]?.why).toContain('with 593 frames it would grow');
  });
});
