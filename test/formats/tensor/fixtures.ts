import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const fixture = (name: string): string =>
  fileURLToPath(new URL(`../../fixtures/tensors/${name}`, import.meta.url));

export const fixtureBytes = (name: string): Uint8Array => new Uint8Array(readFileSync(fixture(name)));

/** What every `float*` fixture holds. */
export const ramp = Array.from({ length: 24 }, (_, i) => i / 8 - 1);
