import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { placementRules } from '../../../src/formats/precision/quantize/placement-rules.js';
import { betweenRule, rules } from '../../../src/formats/precision/rules.js';

it.each([...rules, betweenRule, ...placementRules])('docs/precision.md explains $id', ({ id }) => {
  const page = readFileSync(new URL('../../../docs/precision.md', import.meta.url), 'utf8');
  expect(page).toContain(`\`${id}\``);
});
