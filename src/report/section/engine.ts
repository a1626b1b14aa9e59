import { formatBytes, formatMs } from '../../base/text/quantity.js';
import { markup } from '../markup.js';
import { code, details, facts, type SectionFacts } from '../parts.js';
import type { ForgeResult } from '../result.js';
import { engineSentence } from '../sentences.js';

/** The engine and its passport. `scope` begins the ids where a page has several results. */
export function engineSection({ engine, passport, build }: ForgeResult, scope = ''): SectionFacts | null {
  if (build === null) return null;
  return {
    id: `${scope}engine`,
    title: 'The engine',
    lead: engineSentence(build),
    body: [
      facts([
        ['name', code(build.name), 'wide'],
        ['identity', code(build.identity), 'wide'],
        ['plan', code(engine ?? '–'), 'wide'],
        ['passport', code(passport ?? '–'), 'wide'],
        ['size', formatBytes(build.bytes)],
        ['build', build.buildMs === null ? 'unknown' : formatMs(build.buildMs)],
        ['made with', `${build.product} ${build.version}`],
        ['serves', build.computeCapabilities.join(', ') || 'the GPU it was built on'],
        ['platform', build.platform],
      ]),
      details(
        'The passport in full',
        markup`<pre class="json"><code>${JSON.stringify(build.passport, null, 2)}</code></pre>`,
      ),
    ],
  };
}
