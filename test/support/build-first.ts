import { compile } from '../../scripts/compile.mjs';

/** Children that tests start (the CLI, supervised workers) run from dist/, so it must match src/. */
export function setup(): void {
  compile('dist');
}
