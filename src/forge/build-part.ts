import type { Miss } from '../engines/store/store-miss.js';
import type { ReportBuild } from '../report/result.js';
import type { ForgedEngine } from './run-state.js';

/** Fields named in a sentence; the engine's own `build` command lists more. */
const FIELDS_NAMED = 3;

/** What the report shows of an engine. */
export function buildPart({ passport, identity, source, why }: ForgedEngine): ReportBuild {
  const { target } = passport.identity.document;
  return {
    name: passport.name,
    identity,
    source,
    why: whyFrom(source, why),
    bytes: passport.plan.bytes,
    buildMs: passport.built.ms,
    product: target.product,
    version: target.version,
    computeCapabilities: target.computeCapabilities.map((sm) => `sm_${sm}`),
    platform: `${target.os} ${target.arch}`,
    passport: { ...passport },
  };
}

function whyFrom(source: ForgedEngine['source'], why: readonly Miss[]): string {
  if (source === 'built') return why.map(missSentence).join(' ');
  return `The ${source === 'kept' ? 'folder' : 'store'} had an engine of this identity.`;
}

function missSentence({ from, reason, nearest, differences }: Miss): string {
  const fields = differences.map(({ field }) => field);
  if (nearest === null) return `Not from the ${from} store: ${reason}.`;
  const more = fields.length - FIELDS_NAMED;
  const named = `${fields.slice(0, FIELDS_NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return `Not from the ${from} store: ${reason}; the nearest there, ${nearest.name}, differs in ${named}.`;
}
