import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { placementRules } from '../../../src/formats/precision/quantize/placement-rules.js';
import { betweenRule, rules } from '../../../src/formats/precision/rules.js';

const pageOf = (name: string) => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8');

it.each([...rules, betweenRule])('docs/precision.md explains $id', ({ id }) => {
  expect(pageOf('precision.md')).toContain(`\`${id}\``);
});

it.each(placementRules)('docs/quantization.md explains $id', ({ id }) => {
  expect(pageOf('quantization.md')).toContain(`\`${id}\``);
});
