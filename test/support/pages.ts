import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const docs = fileURLToPath(new URL('../../docs', import.meta.url));

/** The pages of the documentation, from the root of the clone. */
export const pages: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(docs)
    .sort()
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];
