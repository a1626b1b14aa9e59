import { readFileSync } from 'node:fs';

/** The package's own version, from the package.json it was published with. */
export function packageVersion(): string {
  const content: unknown = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return typeof content === 'object' && content !== null && 'version' in content
    ? String(content.version)
    : 'unknown';
}
