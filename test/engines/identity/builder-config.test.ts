import { expect, test } from 'vitest';
import {
  builderConfigTexts,
  defaultRecipe,
  parseBuilderConfig,
} from '../../../src/engines/identity/recipe.js';

test('settings that differ from the defaults are written as they are read', () => {
  expect(builderConfigTexts(defaultRecipe)).toEqual([]);
  const texts = [
    'optimization-level=5',
    'flags=refit,no-tf32',
    'hardware-compatibility=ampere-plus',
    'workspace=1048577B',
  ];
  expect(builderConfigTexts({ ...defaultRecipe, ...parseBuilderConfig(texts) })).toEqual(texts);
});
