import { markup } from '../markup.js';
import { code, details, facts, type SectionFacts } from '../parts.js';
import { formatBytes, formatMs } from '../quantity.js';
import type { ForgeResult } from '../result.js';
import { engineSentence } from '../sentences.js';

/** The engine and its passport. */
export function engineSection({ engine }: ForgeResult): SectionFacts | null {
  if (engine === null) return null;
  return {
    id: 'engine',
    title: 'The engine',
    lead: engineSentence(engine),
    body: [
      facts([
        ['name', code(engine.name), 'wide'],
        ['identity', code(engine.identity), 'wide'],
        ['plan', code(engine.path), 'wide'],
        ['passport', code(engine.passportPath), 'wide'],
        ['size', formatBytes(engine.bytes)],
        ['build', engine.buildMs === null ? 'unknown' : formatMs(engine.buildMs)],
        ['made with', `${engine.product} ${engine.version}`],
        ['serves', engine.computeCapabilities.join(', ') || 'the GPU it was built on'],
        ['platform', engine.platform],
      ]),
      details(
        'The passport in full',
        markup`<pre class="json"><code>${JSON.stringify(engine.passport, null, 2)}</code></pre>`,
      ),
    ],
  };
}
